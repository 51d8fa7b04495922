//! Names of register types, which IP-XACT does not carry.
//!
//! PeakRDL's C header, when asked for bit-field unions, declares each register with its type:
//! `beeline_nic__queue_control_r_t control;`. Registers whose text was overridden get a hash behind the type
//! (`count_r_desc_cf2384b9`), which is cut off again: register types end in `_r`, block types in `_block`.

use crate::failure::{Failure, Outcome};

/// Registers and their types: (instance, type).
pub type Members = Vec<(String, String)>;

/// A block, its type and the registers inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockTypes {
    /// Name of the instance.
    pub instance: String,
    pub type_name: String,
    /// What lies inside.
    pub registers: Members,
}

/// Instances and the types they have, endings removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeNames {
    /// Registers that lie in no block.
    pub of_map: Members,
    pub blocks: Vec<BlockTypes>,
}

impl TypeNames {
    /// Type of block `name` and of its registers.
    pub fn block(&self, name: &str) -> Outcome<&BlockTypes> {
        self.blocks
            .iter()
            .find(|block| block.instance == name)
            .ok_or_else(|| Failure::new(format!("PeakRDL's C header does not declare block `{name}`")))
    }

    /// Reads a header that `peakrdl c-header --bitfields ltoh` wrote for the map called `map`.
    pub fn parse(header: &str, map: &str) -> Outcome<TypeNames> {
        let structs = structures(header, &format!("{map}__"));
        let top = format!("{map}_t");
        let (_, members) = structs
            .iter()
            .find(|(name, _)| *name == top)
            .ok_or_else(|| Failure::new(format!("PeakRDL's C header does not declare `{top}`")))?;
        let mut names = TypeNames::default();
        for (instance, type_name) in members {
            if let Some(register) = register_type(type_name) {
                names.of_map.push((instance.clone(), register));
                continue;
            }
            let inside = structs.iter().find(|(name, _)| name == type_name);
            let registers = inside.map(|(_, members)| members.as_slice()).unwrap_or_default();
            let registers =
                registers.iter().filter_map(|(name, kind)| Some((name.clone(), register_type(kind)?)));
            names.blocks.push(BlockTypes {
                instance: instance.clone(),
                type_name: block_type(type_name)?,
                registers: registers.collect(),
            });
        }
        Ok(names)
    }
}

/// Every structure with its members of a type of the map: (name, [(member, type)]), prefix removed.
fn structures(header: &str, prefix: &str) -> Vec<(String, Members)> {
    let mut found = Vec::new();
    let mut members = Vec::new();
    for line in header.lines() {
        if line.starts_with("typedef ") {
            members.clear();
        } else if let Some(name) = line.strip_prefix("} ").and_then(|rest| rest.strip_suffix(';')) {
            found.push((name.strip_prefix(prefix).unwrap_or(name).to_owned(), std::mem::take(&mut members)));
        } else if let Some(member) = line.trim().strip_prefix(prefix)
            && let Some((kind, name)) = member.trim_end_matches(';').split_once(' ')
        {
            let name = name.split('[').next().unwrap_or(name);
            members.push((name.to_owned(), kind.to_owned()));
        }
    }
    found
}

/// `queue_control` for `queue_control_r_t` and for `queue_control_r_desc_0123abcd_t`.
fn register_type(c_type: &str) -> Option<String> {
    let name = c_type.strip_suffix("_t")?;
    let overridden = ["_r_desc_", "_r_name_"].iter().filter_map(|mark| name.find(mark)).min();
    match overridden {
        Some(at) => Some(name[..at].to_owned()),
        None => name.strip_suffix("_r").map(str::to_owned),
    }
}

/// `queue` for `queue_block__stride100_t`.
fn block_type(c_type: &str) -> Outcome<String> {
    let name = c_type.strip_suffix("_t").unwrap_or(c_type);
    let name = name.split("__stride").next().unwrap_or(name);
    name.strip_suffix("_block").map(str::to_owned).ok_or_else(|| {
        Failure::new(format!(
            "type `{name}` in spec/nic.rdl ends neither in `_r` (a register) nor in `_block`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\
typedef union {
    struct __attribute__ ((__packed__)) {
        uint64_t value :64;
    } f;
    uint64_t w;
} nic__count_r_desc_cf2384b9_t;
typedef struct __attribute__ ((__packed__)) {
    nic__count_r_desc_cf2384b9_t frames;
    nic__queue_control_r_t control;
    uint8_t RESERVED_88_ff[0x78];
} nic__queue_block__stride100_t;
typedef struct __attribute__ ((__packed__)) {
    nic__magic_r_t magic;
    nic__word_r_t capabilities[256];
    nic__queue_block__stride100_t queue[1024];
} nic_t;
";

    #[test]
    fn types_are_found_without_their_endings() {
        let names = TypeNames::parse(HEADER, "nic").unwrap();
        assert_eq!(names.of_map, [("magic".into(), "magic".into()), ("capabilities".into(), "word".into())]);
        let queue = names.block("queue").unwrap();
        assert_eq!(queue.type_name, "queue");
        let expected = [("frames".into(), "count".into()), ("control".into(), "queue_control".into())];
        assert_eq!(queue.registers, expected);
    }

    #[test]
    fn a_header_without_the_map_or_a_type_without_an_ending_is_an_error() {
        assert!(TypeNames::parse("", "nic").unwrap_err().to_string().contains("`nic_t`"));
        let odd = HEADER.replace("queue_block", "queue");
        assert!(TypeNames::parse(&odd, "nic").unwrap_err().to_string().contains("_block"));
        assert!(TypeNames::parse(HEADER, "nic").unwrap().block("dma").is_err());
    }
}
