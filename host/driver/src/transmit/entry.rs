//! Laying an entry out: its head, then the frame, zeros to the end.
//!
//! Entries are made here on the stack, whole, and then go where their interface wants them: into the ring and the
//! window, or into the window alone.

use beeline_spec::entry::{EntryHeader, EntryKind, position_of};
use beeline_spec::formats::{ENTRY_HEAD_BYTES, RING_ENTRY_MAX_BYTES};
use beeline_spec::{LINE_BYTES, WORD_BYTES};

/// An entry of up to 512 bytes.
pub(crate) struct Entry {
    bytes: [u8; RING_ENTRY_MAX_BYTES],
    lines: u32,
}

impl Entry {
    /// An entry with the frame behind its head. It must fit; see [`RING_ENTRY_MAX_BYTES`].
    #[inline]
    pub(crate) fn whole(frame: &[u8], epoch: u8, position: u64) -> Self {
        let mut entry = Entry::head(EntryKind::Whole, frame.len(), 0, epoch, position);
        entry.bytes[ENTRY_HEAD_BYTES..ENTRY_HEAD_BYTES + frame.len()].copy_from_slice(frame);
        entry
    }

    /// An entry that names a frame of `bytes` at a bus address.
    #[inline]
    pub(crate) fn at_address(bytes: usize, address: u64, epoch: u8, position: u64) -> Self {
        Entry::head(EntryKind::Address, bytes, address, epoch, position)
    }

    fn head(kind: EntryKind, bytes: usize, address: u64, epoch: u8, position: u64) -> Self {
        let header = EntryHeader {
            length_bytes: bytes as u16,
            kind,
            wants_irq: false,
            epoch,
            position: position_of(position),
        };
        let mut entry = Entry { bytes: [0; RING_ENTRY_MAX_BYTES], lines: header.lines() };
        entry.bytes[..WORD_BYTES].copy_from_slice(&header.encode().to_le_bytes());
        entry.bytes[WORD_BYTES..ENTRY_HEAD_BYTES].copy_from_slice(&address.to_le_bytes());
        entry
    }

    /// Lines that it takes in a ring.
    #[inline]
    pub(crate) fn lines(&self) -> u32 {
        self.lines
    }

    /// Its first `lines` lines; zeros behind its own.
    #[inline]
    pub(crate) fn bytes(&self, lines: u32) -> &[u8] {
        &self.bytes[..lines as usize * LINE_BYTES]
    }

    /// Which of its words is the blank, if any: such an entry cannot be stored into a blank window.
    #[inline]
    pub(crate) fn find_word(&self, blank: u64) -> Option<usize> {
        let words = self.bytes(self.lines).as_chunks::<WORD_BYTES>().0;
        words.iter().position(|word| u64::from_le_bytes(*word) == blank)
    }
}
