//! How a receiver knows what has arrived: the one thing that differs between blank and observed windows.
//!
//! Everything above it (next start, headers, escapes, batches, freeing) is shared, in `receiver.rs`.

use beeline_contract_memory::{GROUP_LINES, LoadPort};

/// Tells which words of a line have arrived, and makes a line free again.
pub trait ArrivalTest {
    /// Which words of a line have arrived whole, bit i for word i, and word 0, which means nothing when its bit is clear.
    fn arrived_head<L: LoadPort>(&mut self, port: &mut L, line: u32) -> (u8, u64);

    /// As [`ArrivalTest::arrived_head`] for a line that has no header.
    fn arrived_words<L: LoadPort>(&mut self, port: &mut L, line: u32) -> u8;

    /// Whether word 0 of a line has arrived whole: what a poll that finds nothing asks, and no more.
    #[inline(always)]
    fn has_begun<L: LoadPort>(&mut self, port: &mut L, line: u32) -> bool {
        self.arrived_head(port, line).0 & 1 == 1
    }

    /// The word 0 of every line that has not begun, where one that differs has: then [`ArrivalTest::has_begun`] is one load and one
    /// comparison, which somebody else can make. `None` unless an implementor knows it.
    #[inline(always)]
    fn free_header(&self) -> Option<u64> {
        None
    }

    /// Words of a line of which at least one byte has arrived. Not asked for every message.
    fn touched<L: LoadPort>(&mut self, port: &mut L, line: u32) -> u8;

    /// Bytes at the start of a line that have arrived without a gap, 0 to 64.
    fn prefix_bytes<L: LoadPort>(&mut self, port: &mut L, line: u32) -> u32;

    /// Makes a line free: nothing of it has arrived.
    fn free<L: LoadPort>(&mut self, port: &mut L, line: u32);

    /// Whether each of the [`GROUP_LINES`] lines from `first_line` on, none of them past the end, has arrived whole.
    #[inline]
    fn arrived_group<L: LoadPort>(&mut self, port: &mut L, first_line: u32) -> bool {
        (0..GROUP_LINES).rev().all(|ahead| self.arrived_words(port, first_line + ahead) == 0xff)
    }

    /// As [`ArrivalTest::free`] for each of those lines.
    #[inline]
    fn free_group<L: LoadPort>(&mut self, port: &mut L, first_line: u32) {
        (0..GROUP_LINES).for_each(|ahead| self.free(port, first_line + ahead));
    }

    /// The word that an escaped word stands for; `None` where nothing is escaped.
    fn blank(&self) -> Option<u64>;
}

/// The arrival test of a blank window: a word has arrived when it is not blank.
///
/// It assumes that each aligned word is stored and loaded whole (8-byte single-copy atomicity), which every CPU we
/// run on gives. No order between words is assumed.
#[derive(Clone, Copy, Debug)]
pub struct Blank {
    blank: u64,
}

impl Blank {
    /// For windows whose free words hold `blank`.
    pub const fn new(blank: u64) -> Self {
        Blank { blank }
    }
}

impl ArrivalTest for Blank {
    #[inline(always)]
    fn arrived_head<L: LoadPort>(&mut self, port: &mut L, line: u32) -> (u8, u64) {
        port.arrived_head(line, self.blank)
    }

    #[inline(always)]
    fn arrived_words<L: LoadPort>(&mut self, port: &mut L, line: u32) -> u8 {
        port.arrived_words(line, self.blank)
    }

    #[inline(always)]
    fn has_begun<L: LoadPort>(&mut self, port: &mut L, line: u32) -> bool {
        port.load_word(line, 0) != self.blank
    }

    #[inline(always)]
    fn free_header(&self) -> Option<u64> {
        Some(self.blank)
    }

    fn touched<L: LoadPort>(&mut self, port: &mut L, line: u32) -> u8 {
        port.arrived_words(line, self.blank)
    }

    fn prefix_bytes<L: LoadPort>(&mut self, port: &mut L, line: u32) -> u32 {
        port.arrived_words(line, self.blank).trailing_ones() * 8
    }

    #[inline(always)]
    fn free<L: LoadPort>(&mut self, port: &mut L, line: u32) {
        port.blank_line(line, self.blank);
    }

    #[inline(always)]
    fn arrived_group<L: LoadPort>(&mut self, port: &mut L, first_line: u32) -> bool {
        port.arrived_group(first_line, self.blank)
    }

    #[inline(always)]
    fn free_group<L: LoadPort>(&mut self, port: &mut L, first_line: u32) {
        port.blank_group(first_line, self.blank);
    }

    fn blank(&self) -> Option<u64> {
        Some(self.blank)
    }
}
