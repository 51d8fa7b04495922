//! One half of a push window: bytes in the order of their addresses, and which of them have arrived.
//!
//! The half knows the entry once its first word is whole, and has it once every line of it is. One push follows the
//! other: a byte that arrives again belongs to the next push, and the one before it was torn. A push that was given up
//! stays, *spent*, so that bytes of it that are late go nowhere.
//!
//! From: [`super::inline_queue`]. HotOS'25 §2.4.

use beeline_contract_device::{Enables, SimTime};
use beeline_spec::LINE_BYTES;
use beeline_spec::entry::{EntryError, EntryHeader, PUSH_HALF_LINES};
use beeline_spec::formats::PUSH_HALF_BYTES;

use crate::pieces::pieces;

const LINES: usize = PUSH_HALF_LINES as usize;

/// Result of bytes that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    /// More of the push is missing, or it was given up before.
    Waits,
    /// The push is whole: this is its entry.
    Whole(EntryHeader),
    /// All that can come of it is here, but the entry is longer than a half.
    TooLong(EntryHeader),
    /// Its first word is no header of this queue.
    Malformed,
}

#[derive(Debug)]
pub(super) struct PushHalf {
    bytes: [u8; PUSH_HALF_BYTES],
    /// Bit i of line l: byte i of the line has arrived.
    valid: [u64; LINES],
    header: Option<EntryHeader>,
    /// When the header was known.
    since: SimTime,
    is_spent: bool,
    /// Lines that a push has at least: all of them where the window is blank.
    least_lines: u32,
    /// The half was full when it was last cleared.
    was_full: bool,
}

impl PushHalf {
    /// An empty half. Where `fills` is set, a push is whole when the half is full.
    pub(super) fn new(fills: bool) -> Self {
        PushHalf {
            bytes: [0; PUSH_HALF_BYTES],
            valid: [0; LINES],
            header: None,
            since: SimTime(0),
            is_spent: false,
            least_lines: if fills { PUSH_HALF_LINES } else { 1 },
            was_full: false,
        }
    }

    fn clear(&mut self) {
        self.was_full = self.has(PUSH_HALF_LINES);
        (self.valid, self.header, self.is_spent) = ([0; LINES], None, false);
    }

    /// Whether all lines of a half have been dealt with since it was last asked.
    pub(super) fn take_full(&mut self) -> bool {
        std::mem::take(&mut self.was_full)
    }

    /// Whether a write at byte `at` brings a byte that is here already: the next push begins.
    #[inline]
    pub(super) fn overlaps(&self, at: usize, data: &[u8], enables: Enables) -> bool {
        self.valid != [0; LINES]
            && pieces(at, data, enables).any(|piece| self.valid[piece.line] & piece.mask != 0)
    }

    /// The next push begins: gives the entry of the one before, if it is known and was not given up yet.
    pub(super) fn tear(&mut self) -> Option<EntryHeader> {
        let torn = self.header.filter(|_| !self.is_spent);
        self.clear();
        torn
    }

    /// Takes a write at byte `at`, whose bytes overlap nothing.
    #[inline]
    pub(super) fn store(
        &mut self,
        at: usize,
        data: &[u8],
        enables: Enables,
        epoch: u8,
        now: SimTime,
    ) -> Arrived {
        for piece in pieces(at, data, enables) {
            piece.store(&mut self.bytes[piece.line * LINE_BYTES..][..LINE_BYTES]);
            self.valid[piece.line] |= piece.mask;
        }
        let mut arrived = Arrived::Waits;
        if self.header.is_none() && !self.is_spent && self.valid[0] & 0xff == 0xff {
            match self.decode(epoch) {
                Ok(header) => (self.header, self.since) = (Some(header), now),
                Err(_) => (self.is_spent, arrived) = (true, Arrived::Malformed),
            }
        }
        if self.is_spent {
            let lines = self.header.map_or(PUSH_HALF_LINES, |header| self.lines_of(&header));
            if self.has(lines) {
                self.clear();
            }
            return arrived;
        }
        match self.header {
            Some(header) if header.lines() > PUSH_HALF_LINES && self.has(self.least_lines) => {
                self.clear();
                Arrived::TooLong(header)
            }
            Some(header) if header.lines() <= PUSH_HALF_LINES && self.has(self.lines_of(&header)) => {
                Arrived::Whole(header)
            }
            _ => Arrived::Waits,
        }
    }

    fn decode(&self, epoch: u8) -> Result<EntryHeader, EntryError> {
        EntryHeader::decode(self.word(0), epoch)
    }

    fn lines_of(&self, header: &EntryHeader) -> u32 {
        header.lines().max(self.least_lines)
    }

    fn has(&self, lines: u32) -> bool {
        self.valid.iter().take(lines as usize).all(|valid| *valid == u64::MAX)
    }

    /// Word `word` of what has arrived.
    pub(super) fn word(&self, word: usize) -> u64 {
        u64::from_le_bytes(self.bytes.as_chunks::<8>().0[word])
    }

    /// The bytes, from the half's first on.
    pub(super) fn bytes(&self) -> &[u8; PUSH_HALF_BYTES] {
        &self.bytes
    }

    /// The whole push has been dealt with.
    pub(super) fn done(&mut self) {
        self.clear();
    }

    /// When its time began, for a push whose entry is known and of which something is missing.
    pub(super) fn waiting_since(&self) -> Option<SimTime> {
        (self.header.is_some() && !self.is_spent).then_some(self.since)
    }

    /// Gives the push up: its entry. What is still missing of it goes nowhere when it comes.
    pub(super) fn give_up(&mut self) -> Option<EntryHeader> {
        let given_up = self.header.filter(|_| !self.is_spent);
        self.is_spent = true;
        given_up
    }
}
