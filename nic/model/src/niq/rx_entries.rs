//! Receive entries of one queue: on-NIC memory that the host reads at the queue's window.
//!
//! A frame that fits is kept whole in the next entry; of a longer one, which went to the queue's receive ring in host
//! memory, the entry says that and its length. (The device's write to memory comes before its answer to the read: PCIe
//! lets no completion pass a posted write.) The host frees entries by a doorbell with their absolute count; until then
//! they may be read again. A read names a place, and that is the one entry of the current lap there.
//!
//! From: [`crate::rx`]. To: completions of reads. Flajslik & Rosenblum, ATC'13.

use beeline_contract_device::SimTime;
use beeline_spec::entry::{EntryHeader, EntryKind, NIQ_MAX_LINES, position_of};
use beeline_spec::formats::ENTRY_HEAD_BYTES;
use beeline_spec::{LINE_BYTES, WORD_BYTES};

use crate::engine::{Cause, QueueSettings};

/// What a read of an entry finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Word(u64),
    /// The entry with this absolute index is not there yet; the word of it that was asked for.
    NotYet(u64, u32),
    /// Nothing is there: not a whole aligned word.
    Nothing,
}

/// The entries. Counts are absolute: `freed <= written <= freed + entries`.
#[derive(Debug)]
pub(crate) struct RxEntries {
    epoch: u8,
    entry_bytes: usize,
    entries: u64,
    memory: Box<[u8]>,
    written: u64,
    freed: u64,
    /// How long a read may be held.
    hold: SimTime,
}

impl RxEntries {
    /// Every entry free.
    pub(crate) fn new(settings: &QueueSettings) -> Result<Self, Cause> {
        let entries = settings.window_lines / settings.entry_lines;
        if settings.entry_lines > NIQ_MAX_LINES || entries < 2 {
            return Err(Cause::BadLength);
        }
        Ok(RxEntries {
            epoch: settings.epoch,
            entry_bytes: settings.entry_lines as usize * LINE_BYTES,
            entries: entries.into(),
            memory: vec![0; settings.window_lines as usize * LINE_BYTES].into_boxed_slice(),
            written: 0,
            freed: 0,
            hold: SimTime::from_ns(settings.entry_hold_ns.into()),
        })
    }

    /// Whether an entry is free.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.written - self.freed < self.entries
    }

    /// Whether a frame fits an entry.
    #[inline]
    pub(crate) fn fits(&self, frame: &[u8]) -> bool {
        frame.len() <= self.entry_bytes - ENTRY_HEAD_BYTES
    }

    /// Puts a frame in the next entry: whole, or where it is too long for one, that it lies in the receive ring. Gives
    /// the entry's absolute index.
    pub(crate) fn put(&mut self, frame: &[u8]) -> u64 {
        let index = self.written;
        let kind = if self.fits(frame) { EntryKind::Whole } else { EntryKind::Address };
        let header = EntryHeader {
            length_bytes: frame.len() as u16,
            kind,
            wants_irq: false,
            epoch: self.epoch,
            position: position_of(index),
        };
        let start = (index % self.entries) as usize * self.entry_bytes;
        let entry = &mut self.memory[start..start + self.entry_bytes];
        entry.fill(0);
        entry[..WORD_BYTES].copy_from_slice(&header.encode().to_le_bytes());
        if kind == EntryKind::Whole {
            entry[ENTRY_HEAD_BYTES..ENTRY_HEAD_BYTES + frame.len()].copy_from_slice(frame);
        }
        self.written += 1;
        index
    }

    /// The host is done with `freed` entries since the queue was enabled; `false` when that cannot be.
    pub(crate) fn freed(&mut self, freed: u64) -> bool {
        let is_sound = freed >= self.freed && freed <= self.written;
        if is_sound {
            self.freed = freed;
        }
        is_sound
    }

    /// A read of a word at a byte of the window.
    #[inline]
    pub(crate) fn read(&self, offset_bytes: u64) -> Found {
        let offset = offset_bytes as usize;
        if !offset.is_multiple_of(WORD_BYTES) {
            return Found::Nothing;
        }
        let place = (offset / self.entry_bytes) as u64;
        let word = (offset % self.entry_bytes / WORD_BYTES) as u32;
        // The one entry from `freed` on that lies there.
        let entry = self.freed + (place.wrapping_sub(self.freed) & (self.entries - 1));
        if entry < self.written { Found::Word(self.word(entry, word)) } else { Found::NotYet(entry, word) }
    }

    pub(crate) fn word(&self, entry: u64, word: u32) -> u64 {
        let start = (entry % self.entries) as usize * self.entry_bytes;
        u64::from_le_bytes(self.memory[start..].as_chunks::<WORD_BYTES>().0[word as usize])
    }

    /// Until when a read that comes now may be held; `None`: not at all.
    pub(crate) fn hold_until(&self, now: SimTime) -> Option<SimTime> {
        (self.hold.0 > 0).then(|| SimTime(now.0.saturating_add(self.hold.0)))
    }
}
