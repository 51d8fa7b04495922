//! `spec/generated/c/beeline_formats.h`: what PeakRDL's `beeline_nic.h` does not hold: formats, and the named values
//! of register fields. And the C file that proves PeakRDL's header and the register map agree.

use std::fmt::Write;

use crate::generate::formats::{Enum, Formats, Struct, Word};
use crate::generate::naming::{plain, upper};
use crate::generate::registers::{Field, Item, Map, Register};

/// `beeline_formats.h`.
pub fn emit(formats: &Formats, map: &Map) -> String {
    let mut out = format!("/* {} */\n", super::origin("spec/formats.toml and spec/nic.rdl"));
    out +=
        "/* Integers in memory are little-endian; on a big-endian host, swap what is loaded and stored. */\n";
    out += "#ifndef BEELINE_FORMATS_H\n#define BEELINE_FORMATS_H\n\n";
    out += "#ifdef __KERNEL__\n#include <linux/types.h>\n#else\n#include <stdint.h>\n#endif\n\n";
    for (name, size) in &formats.sizes {
        let _ = writeln!(out, "/* {} */\n#define BEELINE_{} {}", size.doc, upper(name), size.value);
    }
    let eop = &formats.kpio_eop_default;
    let _ = writeln!(out, "/* {} */\n#define BEELINE_KPIO_EOP_DEFAULT 0x{:016x}ULL", eop.doc, eop.value);
    for (name, word) in &formats.words {
        emit_word(&mut out, name, word);
    }
    for (name, enumeration) in &formats.enums {
        emit_enum(&mut out, name, enumeration);
    }
    for register in map.register_types() {
        for field in register.fields.iter().filter(|field| !field.values.is_empty()) {
            emit_values(&mut out, register, field);
        }
    }
    for (name, structure) in &formats.structs {
        emit_struct(&mut out, name, structure);
    }
    out += "\n#endif /* BEELINE_FORMATS_H */\n";
    out
}

fn emit_word(out: &mut String, name: &str, word: &Word) {
    let _ = writeln!(out, "\n/* {} */", word.doc);
    let prefix = format!("BEELINE_{}", upper(name));
    for field in &word.fields {
        let upper = upper(&field.name);
        let _ = writeln!(out, "/* {} */", field.doc);
        let _ = writeln!(out, "#define {prefix}_{upper}_LSB {}", field.lsb);
        let _ = writeln!(out, "#define {prefix}_{upper}_MASK 0x{:x}ULL", field.mask());
    }
}

fn emit_enum(out: &mut String, name: &str, enumeration: &Enum) {
    let _ = writeln!(out, "\n/* {} */", enumeration.doc);
    for value in &enumeration.values {
        let define = format!("#define BEELINE_{}_{} {}", upper(name), upper(&value.name), value.value);
        let _ = writeln!(out, "{define} /* {} */", value.doc);
    }
}

fn emit_values(out: &mut String, register: &Register, field: &Field) {
    let (register_name, field_name) = (&register.type_name, plain(&field.name));
    let _ = writeln!(out, "\n/* Values of field `{field_name}` of `{register_name}`. {} */", field.doc);
    for value in &field.values {
        let name = format!("BEELINE_{}_{}_{}", upper(register_name), upper(field_name), upper(&value.name));
        let _ = writeln!(out, "#define {name} {} /* {} */", value.value, value.doc);
    }
}

fn emit_struct(out: &mut String, name: &str, structure: &Struct) {
    let _ = writeln!(out, "\n/* {} */\nstruct beeline_{name} {{", structure.doc);
    let mut end = 0;
    let gap = |out: &mut String, end: u64, to: u64| {
        if to > end {
            let _ = writeln!(out, "\tuint8_t unused_{end}[{}];", to - end);
        }
    };
    for field in &structure.fields {
        gap(out, end, field.offset);
        let _ = writeln!(out, "\tuint{}_t {}; /* {} */", field.bytes * 8, field.name, field.doc);
        end = field.offset + field.bytes;
    }
    gap(out, end, structure.bytes);
    out.push_str("};\n");
    for field in &structure.fields {
        let (offset, field) = (field.offset, &field.name);
        let _ = writeln!(out, "#define BEELINE_{}_{}_OFFSET {offset}", upper(name), upper(field));
    }
}

/// A C (and C++) file that includes both headers and asserts, in the compiler's own arithmetic, that each register of
/// PeakRDL's header lies where the map says, that each mask agrees, and that each structure of ours has its layout.
pub fn emit_proof(formats: &Formats, map: &Map) -> String {
    let mut out = String::from(
        "#include <stddef.h>\n#include <assert.h>\n#include \"beeline_nic.h\"\n#include \"beeline_formats.h\"\n",
    );
    let mut prove = |what: String| {
        let _ = writeln!(out, "static_assert({what}, \"generated headers disagree\");");
    };
    for item in &map.items {
        match item {
            Item::Register(register) => prove_register(&mut prove, "", "", 0, register),
            Item::Block(block) => {
                let (member, element) = match block.array {
                    Some(_) => (format!("{}[0].", block.name), format!("{}X__", upper(&block.name))),
                    None => (format!("{}.", block.name), format!("{}__", upper(&block.name))),
                };
                if let Some(array) = block.array {
                    let second = block.offset + array.stride;
                    prove(format!("offsetof(beeline_nic_t, {}[1]) == {second:#x}", block.name));
                }
                for register in &block.registers {
                    prove_register(&mut prove, &member, &element, block.offset, register);
                }
            }
        }
    }
    prove(format!("sizeof(beeline_nic_t) == {:#x}", map.bytes));
    for (name, structure) in &formats.structs {
        prove(format!("sizeof(struct beeline_{name}) == {}", structure.bytes));
        for field in &structure.fields {
            prove(format!("offsetof(struct beeline_{name}, {}) == {}", field.name, field.offset));
        }
    }
    out
}

fn prove_register(
    prove: &mut impl FnMut(String),
    member: &str,
    element: &str,
    base: u64,
    register: &Register,
) {
    let offset = base + register.offset;
    prove(format!("offsetof(beeline_nic_t, {member}{}) == {offset:#x}", register.name));
    let array = if register.array.is_some() { "X" } else { "" };
    let name = register.name.to_uppercase();
    for field in &register.fields {
        let mask = field.mask() << field.lsb;
        prove(format!(
            "BEELINE_NIC__{element}{name}{array}__{}_bm == {mask:#x}ULL",
            field.name.to_uppercase()
        ));
    }
}
