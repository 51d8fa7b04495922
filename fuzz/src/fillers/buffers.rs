//! Buffers that the host lends by descriptors: a frame in the next one, and a completion.

use beeline_spec::regs::doorbell::RX_FREED;

use super::{BUFFERS, Filler, Lie, MAX_FRAME_BYTES, Says, write};
use crate::opened::{Words, rung};
use crate::scripted::Scripted;

/// Buffers that the host lends: descriptors of two words, completions of one, then the buffers.
pub struct BufferFiller {
    queue: u32,
    words: Words,
    filled: u64,
}

impl BufferFiller {
    /// For the memory of a queue.
    pub fn new(queue: u32, words: Words) -> Self {
        BufferFiller { queue, words, filled: 0 }
    }
}

impl Filler for BufferFiller {
    fn put(&mut self, link: &Scripted, frame: &[u8], lie: Lie<'_>) -> bool {
        let buffers = u64::from(BUFFERS);
        if self.filled.saturating_sub(rung(link, self.queue, RX_FREED)) >= buffers {
            return false;
        }
        let slot = (self.filled % buffers) as usize;
        let (completions_at, buffers_at) = (2 * BUFFERS as usize, 3 * BUFFERS as usize);
        let lap = 1 - (self.filled / buffers) % 2;
        write(&self.words, (buffers_at, slot * MAX_FRAME_BYTES / 8, usize::MAX), frame);
        let completion = lie(Says::There, frame.len() as u64 | lap << 32);
        self.words.borrow_mut()[completions_at + slot] = completion;
        self.filled += 1;
        true
    }

    fn announced(&self) -> u64 {
        self.filled
    }

    fn frees(&self, _frame_bytes: usize) -> Option<(u32, u64)> {
        Some((RX_FREED, 1))
    }

    fn restart(&mut self, _epoch: u8) {
        self.filled = 0;
    }
}
