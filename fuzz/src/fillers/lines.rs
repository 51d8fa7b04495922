//! Coherent lines: short frames in an entry, longer ones in a buffer that the entry names.

use beeline_spec::coherent::{LineBuffer, LineHeader, LineKind, given_back, position_of};

use super::{Filler, LINE_BUFFERS, LINE_ENTRIES, Lie, MAX_FRAME_BYTES, Says, write};
use crate::opened::Words;
use crate::scripted::Scripted;

/// Entries of coherent lines, then buffers.
pub struct LineFiller {
    words: Words,
    address: u64,
    entry_bytes: usize,
    /// Header and buffer of each entry that is out.
    out: [(u64, Option<u32>); LINE_ENTRIES as usize],
    free: Vec<u32>,
    written: u64,
    back: u64,
}

impl LineFiller {
    /// For memory at a bus address, with entries of 2 to a power lines.
    pub fn new(words: Words, address: u64, entry_lines_log2: u32) -> Self {
        let free = (0..LINE_BUFFERS).collect();
        let entry_bytes = 64 << entry_lines_log2;
        LineFiller { words, address, entry_bytes, out: Default::default(), free, written: 0, back: 0 }
    }

    fn slot(&self, count: u64) -> (usize, usize) {
        let slot = (count % u64::from(LINE_ENTRIES)) as usize;
        (slot, slot * self.entry_bytes / 8)
    }
}

impl Filler for LineFiller {
    fn put(&mut self, link: &Scripted, frame: &[u8], lie: Lie<'_>) -> bool {
        self.progress(link);
        let fits = frame.len() + 8 <= self.entry_bytes;
        let is_full = self.written - self.back == u64::from(LINE_ENTRIES);
        if is_full || !fits && self.free.is_empty() {
            return false;
        }
        let (slot, at) = self.slot(self.written);
        let buffer = if fits { None } else { self.free.pop() };
        let kind = if fits { LineKind::Whole(frame.len() as u16) } else { LineKind::Buffers(1) };
        match buffer {
            None => write(&self.words, (0, at + 1, usize::MAX), frame),
            Some(buffer) => {
                let place = LINE_ENTRIES as usize * self.entry_bytes + buffer as usize * MAX_FRAME_BYTES;
                write(&self.words, (0, place / 8, usize::MAX), frame);
                let address = self.address + place as u64;
                let named = LineBuffer { length_bytes: frame.len() as u16, address }.encode();
                self.words.borrow_mut()[at + 1] = lie(Says::Which, named);
            }
        }
        let header = LineHeader { kind, epoch: 0, position: position_of(self.written) }.encode();
        let header = lie(Says::There, header);
        self.words.borrow_mut()[at] = header;
        self.out[slot] = (header, buffer);
        self.written += 1;
        true
    }

    fn progress(&mut self, _link: &Scripted) {
        while self.back < self.written {
            let (slot, at) = self.slot(self.back);
            let (header, buffer) = self.out[slot];
            if self.words.borrow()[at] != given_back(header) {
                return;
            }
            self.free.extend(buffer);
            self.back += 1;
        }
    }

    fn announced(&self) -> u64 {
        self.written
    }

    fn restart(&mut self, _epoch: u8) {
        *self = LineFiller::new(self.words.clone(), self.address, self.entry_bytes.ilog2() - 6);
    }
}
