//! `spec/generated/docs/`: the register map and the formats as pages to read.

use std::fmt::Write;

use crate::generate::formats::Formats;
use crate::generate::naming::plain;
use crate::generate::registers::{Array, Block, Field, Item, Map, Register};

/// `registers.md`.
pub fn registers(map: &Map) -> String {
    let mut out = format!("<!-- {} -->\n# {}\n\n{}\n\n", super::origin("spec/nic.rdl"), map.title, map.doc);
    let _ = writeln!(
        out,
        "Every register is 64 bits wide, little-endian, at a multiple of 8 bytes. Bits that no field names read as zero\n\
         and are written as zero. The map covers {:#x} bytes.\n",
        map.bytes
    );
    out += "| offset | name | what |\n|---|---|---|\n";
    for item in &map.items {
        match item {
            Item::Register(register) => {
                row(&mut out, &register.name, register.offset, register.array, &register.doc)
            }
            Item::Block(block) => row(&mut out, &block.name, block.offset, block.array, &block.doc),
        }
    }
    for item in &map.items {
        match item {
            Item::Register(register) => register_section(&mut out, "", register),
            Item::Block(block) => block_section(&mut out, block),
        }
    }
    out
}

fn row(out: &mut String, name: &str, offset: u64, array: Option<Array>, doc: &str) {
    let place = match array {
        Some(Array { count, stride }) => format!("{offset:#x} + {stride:#x} × 0..{}", count - 1),
        None => format!("{offset:#x}"),
    };
    let _ = writeln!(out, "| {place} | `{}` | {} |", plain(name), cell(doc));
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn block_section(out: &mut String, block: &Block) {
    let _ = writeln!(out, "\n## {} (`{}`)\n\n{}\n", block.title, block.name, block.doc);
    out.push_str("| offset in block | name | what |\n|---|---|---|\n");
    for register in &block.registers {
        row(out, &register.name, register.offset, register.array, &register.doc);
    }
    for register in block.registers.iter().filter(|register| !is_plain_number(register)) {
        register_section(out, &block.name, register);
    }
}

/// A register that is one 64-bit number has nothing to say beyond its row.
fn is_plain_number(register: &Register) -> bool {
    matches!(register.fields.as_slice(), [Field { width: 64, .. }])
}

fn register_section(out: &mut String, block: &str, register: &Register) {
    let (level, prefix) = if block.is_empty() { ("##", String::new()) } else { ("###", format!("{block}.")) };
    let _ = writeln!(
        out,
        "\n{level} {} (`{prefix}{}`)\n\n{}\n",
        register.title,
        plain(&register.name),
        register.doc
    );
    out.push_str("| bits | field | software | reset | what |\n|---|---|---|---|---|\n");
    for field in &register.fields {
        let bits = bits(u64::from(field.lsb), u64::from(field.width));
        let reset = field.reset.map_or("—".to_owned(), |reset| format!("{reset:#x}"));
        let _ = writeln!(
            out,
            "| {bits} | `{}` | {} | {reset} | {} |",
            plain(&field.name),
            access(field),
            cell(&described(field))
        );
    }
}

fn access(field: &Field) -> String {
    let effect = field.write_effect.as_deref().map(|effect| match effect {
        "oneToClear" => ", write 1 to clear",
        "oneToSet" => ", write 1 to set",
        _ => ", with a write effect",
    });
    format!("{}{}", field.access, effect.unwrap_or_default())
}

fn described(field: &Field) -> String {
    let mut text = field.doc.clone();
    for value in &field.values {
        let _ = write!(text, " **{}** `{}`: {}", value.value, plain(&value.name), value.doc);
    }
    text
}

fn bits(lsb: u64, width: u64) -> String {
    if width == 1 { lsb.to_string() } else { format!("{}:{lsb}", lsb + width - 1) }
}

/// `formats.md`.
pub fn formats(formats: &Formats) -> String {
    let mut out = format!("<!-- {} -->\n# Formats\n\n", super::origin("spec/formats.toml"));
    out += "What crosses a window or lies in shared memory. All integers are little-endian. A *word* is 8 aligned bytes, \
            a *line* 64.\n\n## Sizes\n\n| name | value | what |\n|---|---|---|\n";
    for (name, size) in &formats.sizes {
        let _ = writeln!(out, "| `{name}` | {} | {} |", size.value, cell(&size.doc));
    }
    let eop = &formats.kpio_eop_default;
    let _ = writeln!(out, "| `kpio_eop_default` | {:#x} | {} |", eop.value, cell(&eop.doc));
    for (name, word) in &formats.words {
        let _ = writeln!(out, "\n## Word `{name}`\n\n{}\n\n| bits | field | what |\n|---|---|---|", word.doc);
        for field in &word.fields {
            let bits = bits(u64::from(field.lsb), u64::from(field.width));
            let _ = writeln!(out, "| {bits} | `{}` | {} |", field.name, cell(&field.doc));
        }
    }
    for (name, enumeration) in &formats.enums {
        let _ = writeln!(
            out,
            "\n## Values of `{name}`\n\n{}\n\n| value | name | what |\n|---|---|---|",
            enumeration.doc
        );
        for value in &enumeration.values {
            let _ = writeln!(out, "| {} | `{}` | {} |", value.value, value.name, cell(&value.doc));
        }
    }
    for (name, structure) in &formats.structs {
        let _ = writeln!(out, "\n## Structure `{name}` ({} bytes)\n\n{}\n", structure.bytes, structure.doc);
        out += "| bytes | field | what |\n|---|---|---|\n";
        for field in &structure.fields {
            let _ = writeln!(
                out,
                "| {} | `{}` | {} |",
                bits(field.offset, field.bytes),
                field.name,
                cell(&field.doc)
            );
        }
    }
    out
}
