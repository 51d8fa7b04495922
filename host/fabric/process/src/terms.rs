//! On which terms a member makes memory for its segments, and takes that of others.

use std::path::PathBuf;

use beeline_mmio::{MemoryOptions, SYSFS};

/// What memory of segments is made of. The default is ordinary pages, and devices as the kernel shows them in `/sys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Segments of this member are made of huge pages that the administrator has reserved, and those of others are taken, too. A peer that
    /// gives such pages back ends whoever has them mapped, so all members that share such segments trust each other.
    pub huge_pages: bool,
    /// Segments of this member are locked into RAM when they are made.
    pub locked: bool,
    /// Where the kernel shows devices.
    pub sysfs: PathBuf,
}

impl Default for Terms {
    fn default() -> Self {
        Terms { huge_pages: false, locked: false, sysfs: PathBuf::from(SYSFS) }
    }
}

impl Terms {
    /// How memory of a segment is made.
    pub(crate) fn memory(&self) -> MemoryOptions {
        MemoryOptions { huge_pages: self.huge_pages, locked: self.locked }
    }

    /// Whether segments need memory of their own for it: the bank has pages of one kind, which are made when they are touched.
    pub(crate) fn are_of_own_memory(&self) -> bool {
        self.memory() != MemoryOptions::default()
    }
}
