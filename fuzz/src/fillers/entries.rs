//! Entries in the BAR: short frames where reads find them, and another way to receive for longer ones.

use beeline_spec::entry::{self, EntryHeader, EntryKind};
use beeline_spec::formats::ENTRY_HEAD_BYTES;
use beeline_spec::regs::doorbell::ENTRIES_FREED;

use super::{Filler, LINES, Lie, Says, write};
use crate::opened::{Words, rung};
use crate::scripted::Scripted;

/// Entries in the BAR, and another way for frames that do not fit one.
pub struct EntryFiller {
    queue: u32,
    epoch: u8,
    window: Words,
    entry_bytes: usize,
    long: Option<Box<dyn Filler>>,
    written: u64,
    /// Entries that the host was known to have freed when last looked.
    freed: u64,
}

impl EntryFiller {
    /// For the window that a queue's reads find, with entries of 2 to a power lines.
    pub fn new(
        (queue, epoch): (u32, u8),
        window: Words,
        entry_lines_log2: u32,
        long: Option<Box<dyn Filler>>,
    ) -> Self {
        let entry_bytes = 64 << entry_lines_log2;
        EntryFiller { queue, epoch, window, entry_bytes, long, written: 0, freed: 0 }
    }

    fn entries(&self) -> u64 {
        u64::from(LINES) * 64 / self.entry_bytes as u64
    }

    fn place(&self, index: u64) -> usize {
        (index % self.entries()) as usize * self.entry_bytes / 8
    }
}

impl Filler for EntryFiller {
    fn put(&mut self, link: &Scripted, frame: &[u8], lie: Lie<'_>) -> bool {
        self.progress(link);
        if self.written.saturating_sub(self.freed) >= self.entries() {
            return false;
        }
        let fits = frame.len() + ENTRY_HEAD_BYTES <= self.entry_bytes;
        if !fits && !self.long.as_mut().is_some_and(|long| long.put(link, frame, lie)) {
            return false;
        }
        let kind = if fits { EntryKind::Whole } else { EntryKind::Address };
        let head = EntryHeader {
            length_bytes: frame.len() as u16,
            kind,
            wants_irq: false,
            epoch: self.epoch,
            position: entry::position_of(self.written),
        };
        let at = self.place(self.written);
        if fits {
            write(&self.window, (0, at + 2, usize::MAX), frame);
        }
        self.window.borrow_mut()[at] = lie(Says::There, head.encode());
        self.written += 1;
        true
    }

    /// An entry that was freed is not there until it is written: a read of it is held, and answered with zero in the end.
    fn progress(&mut self, link: &Scripted) {
        let freed = rung(link, self.queue, ENTRIES_FREED);
        // After a lie more may be freed than there ever was.
        for index in self.freed..freed.min(self.freed + self.entries()) {
            let at = self.place(index);
            self.window.borrow_mut()[at..at + self.entry_bytes / 8].fill(0);
        }
        self.freed = self.freed.max(freed);
        if let Some(long) = &mut self.long {
            long.progress(link);
        }
    }

    fn announced(&self) -> u64 {
        self.written
    }

    fn frees(&self, _frame_bytes: usize) -> Option<(u32, u64)> {
        Some((ENTRIES_FREED, 1))
    }

    fn restart(&mut self, epoch: u8) {
        (self.epoch, self.written, self.freed) = (epoch, 0, 0);
        self.window.borrow_mut().fill(0);
        if let Some(long) = &mut self.long {
            long.restart(epoch);
        }
    }
}
