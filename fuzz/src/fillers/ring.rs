//! A contiguous ring: frames back to back, each behind a header word that is written last.

use beeline_spec::regs::doorbell::RX_FREED;

use super::{Filler, LINES, Lie, Says, write};
use crate::opened::{Words, rung};
use crate::scripted::Scripted;

/// A contiguous ring.
pub struct RingFiller {
    queue: u32,
    words: Words,
    filled: u64,
    frames: u64,
}

impl RingFiller {
    /// For the ring at the start of a queue's memory.
    pub fn new(queue: u32, words: Words) -> Self {
        RingFiller { queue, words, filled: 0, frames: 0 }
    }
}

impl Filler for RingFiller {
    fn put(&mut self, link: &Scripted, frame: &[u8], lie: Lie<'_>) -> bool {
        let lines = (8 + frame.len()).div_ceil(64) as u64;
        if self.filled.saturating_sub(rung(link, self.queue, RX_FREED)) + lines > LINES.into() {
            return false;
        }
        let (at, wrap) = ((self.filled % u64::from(LINES)) as usize * 8, LINES as usize * 8);
        write(&self.words, (0, at + 1, wrap), frame);
        self.words.borrow_mut()[at] = lie(Says::There, frame.len() as u64 | 1 << 32);
        (self.filled, self.frames) = (self.filled + lines, self.frames + 1);
        true
    }

    fn announced(&self) -> u64 {
        self.frames
    }

    fn frees(&self, frame_bytes: usize) -> Option<(u32, u64)> {
        Some((RX_FREED, (8 + frame_bytes).div_ceil(64) as u64))
    }

    fn restart(&mut self, _epoch: u8) {
        (self.filled, self.frames) = (0, 0);
    }
}
