//! `spec/generated/sv/nic_pkg.sv`: the same constants and layouts for the RTL.
//!
//! Localparams are UpperCamel, types end in `_t` and `_e`, fields keep their names; packed structs list the highest
//! bits first, so a struct's value is the word's value. Structures wider than a line stay offsets only.

use std::fmt::Write;

use crate::generate::formats::{Enum, Formats, Struct, Word};
use crate::generate::naming::{camel, plain};
use crate::generate::registers::{Array, Field, Item, Map, Register};

/// The whole file.
pub fn emit(formats: &Formats, map: &Map) -> String {
    let mut out = format!("// {}\n//\n", super::origin("spec/nic.rdl and spec/formats.toml"));
    out += "// Registers, words and structures of the Beeline NIC. Used by scoped name (nic_pkg::name).\n\n";
    out += "`default_nettype none\n\npackage nic_pkg;\n";
    out += "\n  // Sizes.\n";
    for (name, size) in &formats.sizes {
        comment(&mut out, &size.doc);
        let _ = writeln!(out, "  localparam int unsigned {} = {};", camel(name), size.value);
    }
    let eop = &formats.kpio_eop_default;
    comment(&mut out, &eop.doc);
    let _ = writeln!(out, "  localparam logic [63:0] KpioEopDefault = {};", hex(64, eop.value));
    emit_offsets(&mut out, map);
    for (name, enumeration) in &formats.enums {
        emit_enum(&mut out, name, enumeration);
    }
    for register in map.register_types() {
        for field in register.fields.iter().filter(|field| !field.values.is_empty()) {
            emit_values(&mut out, register, field);
        }
        emit_register(&mut out, register);
    }
    for (name, word) in &formats.words {
        emit_word(&mut out, name, word);
    }
    for (name, structure) in &formats.structs {
        emit_struct(&mut out, name, structure);
    }
    out += "\nendpackage\n\n`default_nettype wire\n";
    out
}

fn comment(out: &mut String, text: &str) {
    const COLUMNS: usize = 98;
    let mut line = String::from("  //");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > COLUMNS {
            let _ = writeln!(out, "{line}");
            line = String::from("  //");
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(out, "{line}");
}

fn hex(bits: u32, value: u64) -> String {
    format!("{bits}'h{value:x}")
}

fn range(width: u64) -> String {
    if width == 1 { "logic".to_owned() } else { format!("logic [{}:0]", width - 1) }
}

fn emit_offsets(out: &mut String, map: &Map) {
    out.push_str("\n  // Byte offsets in the BAR.\n");
    let mut inside = String::new();
    for item in &map.items {
        match item {
            Item::Register(register) => {
                emit_place(out, &camel(&register.name), register.offset, register.array)
            }
            Item::Block(block) => {
                emit_place(out, &camel(&block.name), block.offset, block.array);
                let _ = writeln!(inside, "\n  // Byte offsets in `{}`.", block.name);
                for register in &block.registers {
                    let name = format!("{}{}", camel(&block.type_name), camel(&register.name));
                    emit_place(&mut inside, &name, register.offset, register.array);
                }
            }
        }
    }
    out.push_str(&inside);
    out.push_str("\n  // Values after reset.\n");
    for register in map.register_types() {
        let reset =
            register.fields.iter().fold(0, |word, field| word | field.reset.unwrap_or(0) << field.lsb);
        if reset != 0 {
            let _ = writeln!(
                out,
                "  localparam logic [63:0] {}Reset = {};",
                camel(&register.type_name),
                hex(64, reset)
            );
        }
    }
}

fn emit_place(out: &mut String, name: &str, offset: u64, array: Option<Array>) {
    let _ = writeln!(out, "  localparam logic [31:0] {name}Offset = {};", hex(32, offset));
    if let Some(Array { count, stride }) = array {
        let _ = writeln!(out, "  localparam int unsigned {name}Count = {count};");
        let _ = writeln!(out, "  localparam logic [31:0] {name}Stride = {};", hex(32, stride));
    }
}

fn emit_enum(out: &mut String, name: &str, enumeration: &Enum) {
    let values: Vec<_> =
        enumeration.values.iter().map(|v| (v.name.as_str(), v.value, v.doc.as_str())).collect();
    emit_enum_of(out, &enumeration.doc, name, 8, &values);
}

fn emit_values(out: &mut String, register: &Register, field: &Field) {
    let values: Vec<_> = field.values.iter().map(|v| (v.name.as_str(), v.value, v.doc.as_str())).collect();
    emit_enum_of(
        out,
        &field.doc,
        &format!("{}_{}", register.type_name, plain(&field.name)),
        field.width,
        &values,
    );
}

fn emit_enum_of(out: &mut String, doc: &str, name: &str, width: u32, values: &[(&str, u64, &str)]) {
    out.push('\n');
    comment(out, doc);
    let _ = writeln!(out, "  typedef enum {} {{", range(u64::from(width)));
    for (index, (value_name, value, doc)) in values.iter().enumerate() {
        let end = if index + 1 == values.len() { "" } else { "," };
        comment_inside(out, doc);
        let _ = writeln!(out, "    {}{} = {}{end}", camel(name), camel(value_name), hex(width, *value));
    }
    let _ = writeln!(out, "  }} {name}_e;");
}

fn comment_inside(out: &mut String, text: &str) {
    let mut lines = String::new();
    comment(&mut lines, text);
    for line in lines.lines() {
        let _ = writeln!(out, "  {line}");
    }
}

/// Members of a packed struct: (highest bit first) name, lowest bit, width; holes become `unused_` members.
fn emit_packed(out: &mut String, name: &str, bits: u64, mut members: Vec<(String, u64, u64)>) {
    members.sort_by_key(|(_, lsb, _)| *lsb);
    let mut filled = Vec::new();
    let mut end = 0;
    for (member, lsb, width) in members {
        if lsb > end {
            filled.push((format!("unused_{end}"), lsb - end));
        }
        filled.push((member, width));
        end = lsb + width;
    }
    if bits > end {
        filled.push((format!("unused_{end}"), bits - end));
    }
    let longest = filled.iter().map(|(_, width)| range(*width).len()).max().unwrap_or(0);
    let _ = writeln!(out, "  typedef struct packed {{");
    for (member, width) in filled.iter().rev() {
        let _ = writeln!(out, "    {:longest$} {member};", range(*width));
    }
    let _ = writeln!(out, "  }} {name}_t;");
}

fn emit_register(out: &mut String, register: &Register) {
    out.push('\n');
    comment(out, &format!("Register `{}`. {}", register.type_name, register.doc));
    let members = register.fields.iter().map(|f| (f.name.clone(), u64::from(f.lsb), u64::from(f.width)));
    emit_packed(out, &format!("reg_{}", register.type_name), 64, members.collect());
}

fn emit_word(out: &mut String, name: &str, word: &Word) {
    out.push('\n');
    comment(out, &word.doc);
    let members = word.fields.iter().map(|f| (f.name.clone(), u64::from(f.lsb), u64::from(f.width)));
    emit_packed(out, &format!("{name}_word"), 64, members.collect());
}

fn emit_struct(out: &mut String, name: &str, structure: &Struct) {
    const LINE_BYTES: u64 = 64;
    out.push('\n');
    comment(out, &structure.doc);
    let camel_name = camel(name);
    let _ = writeln!(out, "  localparam int unsigned {camel_name}Bytes = {};", structure.bytes);
    for field in &structure.fields {
        let _ = writeln!(
            out,
            "  localparam int unsigned {camel_name}{}Offset = {};",
            camel(&field.name),
            field.offset
        );
    }
    if structure.bytes <= LINE_BYTES {
        let members = structure.fields.iter().map(|f| (f.name.clone(), f.offset * 8, f.bytes * 8));
        emit_packed(out, name, structure.bytes * 8, members.collect());
    }
}
