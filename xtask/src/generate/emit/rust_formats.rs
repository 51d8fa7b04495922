//! `spec/generated/rust/formats.rs`: sizes, bit fields, enumerations and structure offsets as constants.

use std::fmt::Write;

use crate::generate::formats::{Enum, Formats, Struct, Word};
use crate::generate::naming::upper;

/// The whole file.
pub fn emit(formats: &Formats) -> String {
    let mut out = format!("//! Formats that are not registers. {}\n\n", super::origin("spec/formats.toml"));
    for (name, size) in &formats.sizes {
        let _ = writeln!(out, "/// {}\npub const {}: usize = {};", size.doc, upper(name), size.value);
    }
    let eop = &formats.kpio_eop_default;
    let _ = writeln!(out, "/// {}\npub const KPIO_EOP_DEFAULT: u64 = {:#018X};", eop.doc, eop.value);
    for (name, word) in &formats.words {
        emit_word(&mut out, name, word);
    }
    for (name, enumeration) in &formats.enums {
        emit_enum(&mut out, name, enumeration);
    }
    for (name, structure) in &formats.structs {
        emit_struct(&mut out, name, structure);
    }
    out
}

fn emit_word(out: &mut String, name: &str, word: &Word) {
    let _ = writeln!(out, "/// {}\npub mod {name} {{", word.doc);
    for field in &word.fields {
        let (field_name, upper) = (&field.name, upper(&field.name));
        let _ = writeln!(out, "    /// Lowest bit of `{field_name}`: {}", field.doc);
        let _ = writeln!(out, "    pub const {upper}_LSB: u32 = {};", field.lsb);
        let _ = writeln!(out, "    /// Mask of `{field_name}` before shifting.");
        let _ = writeln!(out, "    pub const {upper}_MASK: u64 = {:#x};", field.mask());
    }
    out.push_str("}\n");
}

fn emit_enum(out: &mut String, name: &str, enumeration: &Enum) {
    let _ = writeln!(out, "/// {}\npub mod {name} {{", enumeration.doc);
    for value in &enumeration.values {
        let _ = writeln!(
            out,
            "    /// {}\n    pub const {}: u8 = {};",
            value.doc,
            upper(&value.name),
            value.value
        );
    }
    out.push_str("}\n");
}

fn emit_struct(out: &mut String, name: &str, structure: &Struct) {
    let _ = writeln!(out, "/// {}\npub mod {name} {{", structure.doc);
    let _ =
        writeln!(out, "    /// Bytes of the structure.\n    pub const BYTES: usize = {};", structure.bytes);
    for field in &structure.fields {
        let _ =
            writeln!(out, "    /// Byte offset of `{}` ({} bytes): {}", field.name, field.bytes, field.doc);
        let _ = writeln!(out, "    pub const {}_OFFSET: usize = {};", upper(&field.name), field.offset);
    }
    out.push_str("}\n");
}
