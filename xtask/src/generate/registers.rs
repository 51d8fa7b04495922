//! The register map as the emitters see it: blocks of 64-bit registers with fields, in address order.
//!
//! Filled by [`super::ipxact`] from what PeakRDL makes of `nic.rdl`; knows no output language.

use super::naming;
use crate::failure::{Failure, Outcome};

pub const REGISTER_BYTES: u64 = 8;

/// The whole map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// Heading.
    pub title: String,
    /// What the map covers.
    pub doc: String,
    /// Bytes it covers.
    pub bytes: u64,
    /// Registers and blocks, by offset.
    pub items: Vec<Item>,
}

/// Something at an offset of the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// One register, or an array of them.
    Register(Register),
    /// A block of registers, or an array of blocks.
    Block(Block),
}

/// A block of registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Name of the instance: `queue`.
    pub name: String,
    /// Name of the type without its ending: `queue` for `queue_block`.
    pub type_name: String,
    /// Heading.
    pub title: String,
    pub doc: String,
    /// Byte offset of the first one in the map.
    pub offset: u64,
    /// How many there are and the bytes from one to the next; `None` for a single one.
    pub array: Option<Array>,
    /// Bytes that one block covers.
    pub bytes: u64,
    /// Registers, offsets relative to the block.
    pub registers: Vec<Register>,
}

/// Repetition of a block or a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Array {
    /// Number of elements.
    pub count: u64,
    /// Bytes from one to the next.
    pub stride: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// Name of the instance: `tx_moderation`.
    pub name: String,
    /// Name of the type without its ending: `moderation` for `moderation_r`. Registers of one type share fields.
    pub type_name: String,
    /// Heading.
    pub title: String,
    pub doc: String,
    /// Byte offset in the map or block.
    pub offset: u64,
    /// Repetition.
    pub array: Option<Array>,
    /// Fields, from the lowest bit up.
    pub fields: Vec<Field>,
}

/// A field of a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    /// What it holds.
    pub doc: String,
    /// Lowest bit.
    pub lsb: u32,
    /// Bits.
    pub width: u32,
    /// What software may do: `read-only`, `read-write`, as IP-XACT says it.
    pub access: String,
    /// What a write does when it is not plain: `oneToClear`.
    pub write_effect: Option<String>,
    /// Whether the device changes it.
    pub volatile: bool,
    /// Value after reset, where there is one.
    pub reset: Option<u64>,
    /// Named values.
    pub values: Vec<Value>,
}

/// A named value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    pub name: String,
    /// What it means.
    pub doc: String,
    pub value: u64,
}

impl Field {
    /// Mask of the field before shifting.
    pub fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.width)
    }
}

impl Map {
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.items.iter().filter_map(|item| match item {
            Item::Block(block) => Some(block),
            Item::Register(_) => None,
        })
    }

    /// Every register that lies in no block.
    pub fn registers(&self) -> impl Iterator<Item = &Register> {
        self.items.iter().filter_map(|item| match item {
            Item::Register(register) => Some(register),
            Item::Block(_) => None,
        })
    }

    /// The first register of each type, in address order.
    pub fn register_types(&self) -> Vec<&Register> {
        let mut types: Vec<&Register> = Vec::new();
        for item in &self.items {
            let registers = match item {
                Item::Register(register) => std::slice::from_ref(register),
                Item::Block(block) => &block.registers,
            };
            for register in registers {
                if types.iter().all(|known| known.type_name != register.type_name) {
                    types.push(register);
                }
            }
        }
        types
    }

    /// Checks what SystemRDL allows but this project does not: the rules at the head of `nic.rdl`.
    pub fn check(&self) -> Outcome {
        let mut findings = Vec::new();
        for item in &self.items {
            match item {
                Item::Register(register) => check_register("", register, &mut findings),
                Item::Block(block) => check_block(block, &mut findings),
            }
        }
        for first in self.register_types() {
            for item in self.blocks().flat_map(|b| &b.registers).chain(self.registers()) {
                let same_shape =
                    |a: &Field, b: &Field| (&a.name, a.lsb, a.width) == (&b.name, b.lsb, b.width);
                if item.type_name == first.type_name
                    && !(item.fields.len() == first.fields.len()
                        && item.fields.iter().zip(&first.fields).all(|(a, b)| same_shape(a, b)))
                {
                    findings.push(format!(
                        "register `{}` has the type of `{}` ({}) but other fields",
                        item.name, first.name, first.type_name
                    ));
                }
            }
        }
        crate::failure::none_found("spec/nic.rdl breaks the rules written at its head", findings)
    }

    /// The block called `name`.
    pub fn block(&self, name: &str) -> Outcome<&Block> {
        self.blocks().find(|block| block.name == name).ok_or_else(|| {
            Failure::new(format!("spec/nic.rdl has no block `{name}`, which other parts of the spec need"))
        })
    }
}

fn check_block(block: &Block, findings: &mut Vec<String>) {
    check_text("block", &block.name, &block.doc, findings);
    if block.array.is_some_and(|array| array.stride < block.bytes) {
        findings.push(format!("block `{}` is longer than the step to the next one", block.name));
    }
    for register in &block.registers {
        check_register(&block.name, register, findings);
    }
}

fn check_register(block: &str, register: &Register, findings: &mut Vec<String>) {
    let name = if block.is_empty() { register.name.clone() } else { format!("{block}.{}", register.name) };
    check_text("register", &name, &register.doc, findings);
    if !register.offset.is_multiple_of(REGISTER_BYTES) {
        findings.push(format!("register `{name}` is at {:#x}, not a multiple of 8 bytes", register.offset));
    }
    for field in &register.fields {
        check_text("field", &format!("{name}.{}", field.name), &field.doc, findings);
        for value in &field.values {
            if let Err(why) = naming::check_constant(&value.name) {
                findings.push(format!("value `{}` of field `{name}.{}`: {why}", value.name, field.name));
            }
            if value.value > field.mask() {
                findings.push(format!(
                    "value `{}` = {} does not fit the {} bits of `{name}.{}`",
                    value.name, value.value, field.width, field.name
                ));
            }
        }
    }
}

fn check_text(what: &str, name: &str, doc: &str, findings: &mut Vec<String>) {
    if let Err(why) = naming::check(name.rsplit('.').next().unwrap_or(name)) {
        findings.push(format!("{what} `{name}`: {why}"));
    }
    if doc.trim().is_empty() {
        findings.push(format!("{what} `{name}` has no desc"));
    }
}
