//! The table `fabric` of the file: the memory of members that share a file or a BAR and no kernel (`host/fabric/bar`).

use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

/// The environment variable that names the memory.
pub const MEMORY_VARIABLE: &str = "BEELINE_FABRIC_MEMORY";

const PATH_KEY: &str = "fabric.memory";
const DEFAULT_MEMBERS: usize = 4;
const MEMBERS: RangeInclusive<u64> = 2..=16;

/// A memory that is the fabric: whoever has mapped it is a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneMemory {
    /// A file on tmpfs or hugetlbfs, or a BAR as sysfs shows it.
    pub path: PathBuf,
    /// Members at the same time, 2 to 16: said by the first who uses the memory, and not asked of others.
    pub members: usize,
    /// The size of the file, for whoever makes it; `None`: it is there.
    pub bytes: Option<u64>,
    /// The part of the memory that this process has; `None`: one that is free.
    pub slot: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfFabric {
    /// Said here, or by the environment.
    memory: Option<Spanned<PathBuf>>,
    members: Option<Spanned<u64>>,
    bytes: Option<Spanned<u64>>,
    slot: Option<Spanned<u64>>,
}

/// A key whose value means nothing.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) key: &'static str,
    pub(super) value: String,
    pub(super) span: Range<usize>,
    pub(super) why: &'static str,
}

impl Wrong {
    fn new(key: &'static str, value: &Spanned<u64>, why: &'static str) -> Self {
        Wrong { key, value: value.get_ref().to_string(), span: value.span(), why }
    }
}

impl OneMemory {
    /// That of a process without a table `fabric`.
    pub(super) fn at(path: PathBuf) -> Self {
        OneMemory { path, members: DEFAULT_MEMBERS, bytes: None, slot: None }
    }
}

impl OfFabric {
    /// What the table says; `variable` is the path that the environment names, before that of the table. `span` is where the table is.
    pub(super) fn read(&self, variable: Option<PathBuf>, span: Range<usize>) -> Result<OneMemory, Wrong> {
        let of_file = match &self.memory {
            Some(path) if path.get_ref().as_os_str().is_empty() => {
                let why = "it is the path of a file or a BAR";
                return Err(Wrong { key: PATH_KEY, value: "\"\"".to_owned(), span: path.span(), why });
            }
            Some(path) => Some(path.get_ref().clone()),
            None => None,
        };
        let mut memory = match variable.or(of_file) {
            Some(path) => OneMemory::at(path),
            None => {
                let why = "the table or BEELINE_FABRIC_MEMORY names the path of a file or a BAR";
                return Err(Wrong { key: PATH_KEY, value: "nothing".to_owned(), span, why });
            }
        };
        if let Some(members) = &self.members {
            let wrong = || Wrong::new("fabric.members", members, "a memory has 2 to 16 members");
            memory.members = inside(*members.get_ref(), MEMBERS).ok_or_else(wrong)?;
        }
        if let Some(bytes) = &self.bytes {
            let why = "a file has at least one byte; without this key it is there already";
            memory.bytes = Some(*bytes.get_ref()).filter(|bytes| *bytes != 0);
            memory.bytes.ok_or_else(|| Wrong::new("fabric.bytes", bytes, why))?;
        }
        if let Some(slot) = &self.slot {
            let why = "slots have numbers from 0 to one less than `fabric.members`";
            let slots = 0..=memory.members as u64 - 1;
            let found = inside(*slot.get_ref(), slots).ok_or_else(|| Wrong::new("fabric.slot", slot, why))?;
            memory.slot = Some(found);
        }
        Ok(memory)
    }
}

fn inside(number: u64, range: RangeInclusive<u64>) -> Option<usize> {
    usize::try_from(number).ok().filter(|_| range.contains(&number))
}
