//! An interrupt of this member.

use super::{InterruptKind, Place};
use crate::board::layout::{EntryState, Phase};
use crate::ids::{Name, Slot};

/// The number that the first interrupt without a number gets: programs fix small ones.
pub(crate) const FIRST_AUTO_NUMBER: u32 = 1 << 16;

#[derive(Debug)]
pub(crate) struct OwnInterrupt {
    pub(crate) name: Name,
    pub(crate) kind: InterruptKind,
    pub(crate) slot: Slot,
    /// What the board says.
    pub(crate) entry: EntryState,
}

impl OwnInterrupt {
    /// An interrupt that everybody may connect to, over every adapter.
    pub(crate) fn new(name: Name, kind: InterruptKind, slot: Slot, entry: EntryState) -> Self {
        let entry = EntryState { phase: Phase::Open, available: u16::MAX, ..entry };
        OwnInterrupt { name, kind, slot, entry }
    }

    pub(crate) fn place(&self) -> Place {
        Place { slot: self.slot, incarnation: self.entry.incarnation }
    }
}
