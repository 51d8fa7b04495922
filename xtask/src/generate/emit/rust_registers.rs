//! `spec/generated/rust/regs.rs`: offsets, field masks and named values as constants.
//!
//! Constants and not typed registers: who may touch a register, and how, is the business of the links (`beeline-mmio`
//! on real memory, `Device` in the model), which all want plain numbers.

use std::fmt::Write;

use crate::generate::naming::{plain, upper, upper as constant_name};
use crate::generate::registers::{Array, Block, Field, Item, Map, Register};

/// The whole file.
pub fn emit(map: &Map) -> String {
    let mut out = format!("//! Register offsets and fields. {}\n\n", super::origin("spec/nic.rdl"));
    out += &constant("", "Bytes that the map covers.", "BYTES", "u32", &format!("{:#x}", map.bytes));
    for item in &map.items {
        match item {
            Item::Register(register) => out += &offset("", register),
            Item::Block(block) => {
                out += &place("", &block.name, &block.doc, block.offset, block.array);
            }
        }
    }
    for block in map.blocks() {
        out += &emit_block(block);
    }
    out += "/// Bit fields of the registers, a module for each register type: `LSB`, `MASK` (unshifted), reset values, \
            named values.\npub mod field {\n";
    for register in map.register_types() {
        out += &emit_fields(register);
    }
    out += "}\n";
    out + &walk(map)
}

/// Every register as data, for programs that walk the map: a register that is added later is met without an edit there.
fn walk(map: &Map) -> String {
    let mut out = String::from(WALK);
    for item in &map.items {
        match item {
            Item::Register(register) => out += &walked("", 0, None, register),
            Item::Block(block) => {
                for register in &block.registers {
                    out += &walked(&format!("{}.", block.name), block.offset, block.array, register);
                }
            }
        }
    }
    out + "];\n"
}

/// The types of [`walk`], and how its table begins.
const WALK: &str = "/// How often something lies in the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// Number of them.
    pub count: u32,
    /// Bytes from one to the next.
    pub stride_bytes: u32,
}
/// A register of the map: where it lies, what software may do with it and what a reset does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its block, if it lies in one, and its name: `queue.control`.
    pub name: &'static str,
    /// Byte offset of the first one.
    pub offset: u32,
    /// Blocks that have it; 1 if it lies in none.
    pub blocks: Copies,
    /// Elements in each block.
    pub elements: Copies,
    /// Bits that software may write.
    pub writable: u64,
    /// Bits that the device changes.
    pub volatile: u64,
    /// Bits of which the map says what they are after a reset.
    pub documented: u64,
    /// What those are.
    pub reset: u64,
}
/// Every register, by offset.
pub const REGISTERS: &[Register] = &[
";

fn walked(block: &str, base: u64, blocks: Option<Array>, register: &Register) -> String {
    let bits = |of: &dyn Fn(&Field) -> Option<u64>| {
        register.fields.iter().filter_map(|field| of(field).map(|bits| bits << field.lsb)).sum::<u64>()
    };
    let copies = |array: Option<Array>| {
        let Array { count, stride } = array.unwrap_or(Array { count: 1, stride: 0 });
        format!("Copies {{ count: {count}, stride_bytes: {stride:#x} }}")
    };
    format!(
        "    Register {{\n        name: \"{block}{}\", offset: {:#06x}, blocks: {}, elements: {},\n        \
         writable: {:#x}, volatile: {:#x}, documented: {:#x}, reset: {:#x},\n    }},\n",
        plain(&register.name),
        base + register.offset,
        copies(blocks),
        copies(register.array),
        bits(&|field| (field.access == "read-write").then(|| field.mask())),
        bits(&|field| field.volatile.then(|| field.mask())),
        bits(&|field| field.reset.map(|_| field.mask())),
        bits(&|field| field.reset),
    )
}

fn emit_block(block: &Block) -> String {
    let mut out = format!("/// {} Offsets are relative to the block's base.\n", block.doc);
    let _ = writeln!(out, "pub mod {} {{", block.type_name);
    out += &constant(
        "    ",
        "Bytes from the first register to the end of the last.",
        "BYTES",
        "u32",
        &format!("{:#x}", block.bytes),
    );
    for register in &block.registers {
        out += &offset("    ", register);
    }
    let names = block.registers.iter().map(|register| register.name.as_str());
    out += &all("    ", "register of the block: name, byte offset", "u32", names);
    out += "}\n";
    out
}

/// A table of every constant of a module by name, for programs that meet the names as text.
fn all<'a>(indent: &str, what: &str, kind: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut out = format!("{indent}/// Every {what}.\n{indent}pub const ALL: &[(&str, {kind})] = &[\n");
    for name in names {
        let _ = writeln!(out, "{indent}    (\"{}\", {}),", plain(name), upper(name));
    }
    out + indent + "];\n"
}

fn constant(indent: &str, doc: &str, name: &str, kind: &str, value: &str) -> String {
    format!("{indent}/// {doc}\n{indent}pub const {name}: {kind} = {value};\n")
}

fn offset(indent: &str, register: &Register) -> String {
    place(indent, &register.name, &register.doc, register.offset, register.array)
}

/// Where something lies and how often.
fn place(indent: &str, name: &str, doc: &str, offset: u64, array: Option<Array>) -> String {
    let upper = upper(name);
    let mut out = constant(
        indent,
        &format!("Byte offset of `{}`: {doc}", plain(name)),
        &upper,
        "u32",
        &format!("{offset:#06x}"),
    );
    if let Some(Array { count, stride }) = array {
        out += &constant(
            indent,
            &format!("Number of `{name}`."),
            &format!("{upper}_COUNT"),
            "u32",
            &count.to_string(),
        );
        let doc = format!("Bytes from one `{name}` to the next.");
        out += &constant(indent, &doc, &format!("{upper}_STRIDE"), "u32", &format!("{stride:#x}"));
    }
    out
}

fn emit_fields(register: &Register) -> String {
    let mut out = format!("    /// Fields of `{0}`.\n    pub mod {0} {{\n", register.type_name);
    for field in &register.fields {
        out += &emit_field(field);
    }
    out += "    }\n";
    out
}

fn emit_field(field: &Field) -> String {
    const INDENT: &str = "        ";
    let (upper, name) = (upper(&field.name), plain(&field.name));
    let mut out = constant(
        INDENT,
        &format!("Lowest bit of `{name}`: {}", field.doc),
        &format!("{upper}_LSB"),
        "u32",
        &field.lsb.to_string(),
    );
    out += &constant(
        INDENT,
        &format!("Mask of `{name}` before shifting."),
        &format!("{upper}_MASK"),
        "u64",
        &format!("{:#x}", field.mask()),
    );
    if let Some(reset) = field.reset {
        out += &constant(
            INDENT,
            &format!("`{name}` after reset."),
            &format!("{upper}_RESET"),
            "u64",
            &format!("{reset:#x}"),
        );
    }
    if !field.values.is_empty() {
        let _ = writeln!(out, "{INDENT}/// Values of `{name}`.\n{INDENT}pub mod {} {{", field.name);
        for value in &field.values {
            out += &constant(
                "            ",
                &value.doc,
                &constant_name(&value.name),
                "u64",
                &value.value.to_string(),
            );
        }
        let names = field.values.iter().map(|value| value.name.as_str());
        out += &all("            ", "value: name, number", "u64", names);
        let _ = writeln!(out, "{INDENT}}}");
    }
    out
}
