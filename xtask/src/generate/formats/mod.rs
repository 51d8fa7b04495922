//! Reads `formats.toml`: sizes, words made of bit fields, enumerations, structures.
//!
//! Order is kept as written, because what is generated is read by people too. [`check`] says everything that is wrong
//! with a file at once.

mod check;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::failure::{Context, Failure, Outcome};

/// Everything in the file, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formats {
    /// Sizes in bytes and counts.
    pub sizes: Vec<(String, Size)>,
    /// 64-bit words.
    pub words: Vec<(String, Word)>,
    /// Enumerations of small numbers.
    pub enums: Vec<(String, Enum)>,
    /// Structures in memory.
    pub structs: Vec<(String, Struct)>,
    /// The default end-of-packet signature of kPIO+WC.
    pub kpio_eop_default: Signature,
}

/// A size or a count.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    pub value: u64,
    pub doc: String,
}

/// A 64-bit value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The bits.
    pub value: u64,
    pub doc: String,
}

/// A 64-bit word of bit fields.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Word {
    pub doc: String,
    /// Fields, from the lowest bit up.
    pub fields: Vec<BitField>,
}

/// Bits of a word.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BitField {
    pub name: String,
    /// Lowest bit.
    pub lsb: u32,
    pub width: u32,
    /// What it holds.
    pub doc: String,
}

/// An enumeration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enum {
    /// What it enumerates.
    pub doc: String,
    pub values: Vec<EnumValue>,
}

/// One value of an enumeration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnumValue {
    pub name: String,
    /// Number, below 256.
    pub value: u64,
    /// What it means.
    pub doc: String,
}

/// A structure in memory, little-endian.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Struct {
    pub doc: String,
    pub bytes: u64,
    /// Fields, by offset.
    pub fields: Vec<ByteField>,
}

/// Bytes of a structure.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByteField {
    pub name: String,
    pub offset: u64,
    /// Bytes: 1, 2, 4 or 8.
    pub bytes: u64,
    /// What it holds.
    pub doc: String,
}

impl BitField {
    /// Mask of the field before shifting.
    pub fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.width)
    }
}

impl Formats {
    /// Reads and checks `text`, the contents of `formats.toml`.
    pub fn parse(text: &str) -> Outcome<Formats> {
        let formats = Formats::read(text)?;
        formats.check()?;
        Ok(formats)
    }

    fn read(text: &str) -> Outcome<Formats> {
        let mut root: toml::Table = text.parse().while_doing("read spec/formats.toml")?;
        let formats = Formats {
            sizes: section(&mut root, "sizes")?,
            words: section(&mut root, "word")?,
            enums: section(&mut root, "enum")?,
            structs: section(&mut root, "struct")?,
            kpio_eop_default: signature(&mut root)?,
        };
        match root.keys().next() {
            None => Ok(formats),
            Some(other) => Err(Failure::new(format!(
                "spec/formats.toml: `{other}` is none of the sections sizes, word, enum, struct and kpio"
            ))),
        }
    }

    /// The size called `name`.
    pub fn size(&self, name: &str) -> Outcome<u64> {
        self.sizes
            .iter()
            .find(|(size, _)| size == name)
            .map(|(_, size)| size.value)
            .ok_or_else(|| Failure::new(format!("spec/formats.toml: [sizes] has no `{name}`")))
    }
}

/// The entries of a section, in file order.
fn section<T: DeserializeOwned>(root: &mut toml::Table, name: &str) -> Outcome<Vec<(String, T)>> {
    let value =
        root.remove(name).ok_or_else(|| Failure::new(format!("spec/formats.toml: no section `{name}`")))?;
    let toml::Value::Table(table) = value else {
        return Err(Failure::new(format!("spec/formats.toml: `{name}` is not a section")));
    };
    let read = |(key, value): (String, toml::Value)| {
        let entry = value.try_into().while_doing(format!("read `{name}.{key}` in spec/formats.toml"))?;
        Ok((key, entry))
    };
    table.into_iter().map(read).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kpio {
    eop_default: SignatureText,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignatureText {
    value: String,
    doc: String,
}

fn signature(root: &mut toml::Table) -> Outcome<Signature> {
    let value = root.remove("kpio").ok_or_else(|| Failure::new("spec/formats.toml: no section `kpio`"))?;
    let kpio: Kpio = value.try_into().while_doing("read `kpio` in spec/formats.toml")?;
    let SignatureText { value, doc } = kpio.eop_default;
    // TOML integers are signed 64-bit, so a signature with its top bit set has to be text.
    let digits = value.strip_prefix("0x").unwrap_or_default();
    let value = u64::from_str_radix(digits, 16).while_doing(format!(
        "read kpio.eop_default = \"{value}\" in spec/formats.toml as 0x and 16 hexadecimal digits"
    ))?;
    Ok(Signature { value, doc })
}
