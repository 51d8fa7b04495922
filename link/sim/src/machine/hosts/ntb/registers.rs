//! Registers of a side of a bridge, and where they are: each is a word, and each kind has a page.

use super::settings::{NtbSettings, REGISTERS_OF_A_KIND};

const WORD_BYTES: u64 = 8;
const PAGE_BYTES: u64 = WORD_BYTES * REGISTERS_OF_A_KIND as u64;

/// A register, as its side sees it. It is stored to and loaded a word at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Doorbells of this side that are set. What is stored clears the bits that it has set.
    Doorbells,
    /// Doorbells of this side that interrupt nobody. At first all.
    DoorbellMask,
    /// Sets doorbells of the other side; it shows nothing.
    PeerDoorbells,
    /// Bit 0: this side has enabled the link. Bit 1, which cannot be stored: the link is up.
    Link,
    /// Of 32 bits.
    Scratchpad(u16),
    /// A scratchpad of the other side.
    PeerScratchpad(u16),
    /// Which memory of this side a window of the other side is.
    Translation(u16),
    /// How many bytes of it there are; zero: none.
    Limit(u16),
    /// A requester of this side whose requests go through windows: its ID, and [`Register::VALID`].
    Requester(u16),
}

impl Register {
    /// In an entry of the table of requesters: there is one.
    pub const VALID: u64 = 1 << 16;
    /// In [`Register::Link`]: what is stored.
    pub const ENABLED: u64 = 1;
    /// In [`Register::Link`]: what it shows when both sides have enabled it and both links are up.
    pub const UP: u64 = 2;

    /// Bytes from the first register to it.
    pub(in super::super) fn offset(self) -> u64 {
        let (page, nth) = match self {
            Register::Doorbells => (0, 0),
            Register::DoorbellMask => (0, 1),
            Register::PeerDoorbells => (0, 2),
            Register::Link => (0, 3),
            Register::Scratchpad(nth) => (1, nth),
            Register::PeerScratchpad(nth) => (2, nth),
            Register::Translation(nth) => (3, nth),
            Register::Limit(nth) => (4, nth),
            Register::Requester(nth) => (5, nth),
        };
        page * PAGE_BYTES + u64::from(nth) * WORD_BYTES
    }

    /// The register at an offset, if the bridge has it.
    pub(super) fn at(offset: u64, settings: &NtbSettings) -> Option<Register> {
        if !offset.is_multiple_of(WORD_BYTES) {
            return None;
        }
        let nth = (offset % PAGE_BYTES / WORD_BYTES) as u16;
        let of = |count: u16, register: fn(u16) -> Register| (nth < count).then_some(register(nth));
        match offset / PAGE_BYTES {
            0 => {
                let control =
                    [Register::Doorbells, Register::DoorbellMask, Register::PeerDoorbells, Register::Link];
                control.get(usize::from(nth)).copied()
            }
            1 => of(settings.scratchpads, Register::Scratchpad),
            2 => of(settings.scratchpads, Register::PeerScratchpad),
            3 => of(settings.windows, Register::Translation),
            4 => of(settings.windows, Register::Limit),
            5 => of(settings.requesters, Register::Requester),
            _ => None,
        }
    }
}
