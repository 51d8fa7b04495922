//! Memory for frames that entries name by address: a ring of whole lines, freed in the order of the entries.
//!
//! Frames that do not fit their entry are copied here. A frame lies in one piece; one that would straddle the end
//! begins at the start. Which bytes an entry's end frees is noted for each place of the entry ring, because the device
//! only tells how many entries are done.
//!
//! Used by interfaces with entries. Not here: the memory itself, which the queue owns.

use alloc::boxed::Box;
use alloc::vec;

use beeline_spec::LINE_BYTES;

/// The part of a frame buffer that is in use. Counts are absolute bytes.
#[derive(Debug)]
pub(crate) struct FrameBuffer {
    /// Offset in the queue's memory.
    at: usize,
    size: u64,
    filled: u64,
    freed: u64,
    /// For each place of the entry ring, `filled` after the entry that ends there.
    ends: Box<[u64]>,
}

impl FrameBuffer {
    /// `size` bytes, a power of two, at offset `at`, for a ring with so many places, a power of two.
    pub(crate) fn new(at: usize, size: usize, places: u32) -> Self {
        assert!(size.is_power_of_two() && places.is_power_of_two(), "{size} bytes for {places} places");
        FrameBuffer { at, size: size as u64, filled: 0, freed: 0, ends: vec![0; places as usize].into() }
    }

    /// Takes room for a frame: its offset in the queue's memory; `None` while there is none.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Option<usize> {
        let padded = bytes.next_multiple_of(LINE_BYTES) as u64;
        let within = self.filled & (self.size - 1);
        let first =
            if within + padded > self.size { self.filled + (self.size - within) } else { self.filled };
        if first + padded - self.freed > self.size {
            return None;
        }
        self.filled = first + padded;
        Some(self.at + (first & (self.size - 1)) as usize)
    }

    /// An entry was written whose end is `end` places since the queue was enabled.
    #[inline]
    pub(crate) fn entry_ends(&mut self, end: u64) {
        let place = self.place(end);
        self.ends[place] = self.filled;
    }

    /// The device is done with the first `head` places, at least one. A count that lies inside an entry, which no sound
    /// device gives, frees what some earlier entry would.
    #[inline]
    pub(crate) fn done(&mut self, head: u64) {
        self.freed = self.ends[self.place(head)].clamp(self.freed, self.filled);
    }

    #[inline]
    fn place(&self, end: u64) -> usize {
        (end.wrapping_sub(1) & (self.ends.len() as u64 - 1)) as usize
    }

    /// Everything free.
    pub(crate) fn restart(&mut self) {
        (self.filled, self.freed) = (0, 0);
        // Where entries of the last life ended says nothing of this one.
        self.ends.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_lie_in_one_piece_and_do_not_meet() {
        let mut buffer = FrameBuffer::new(64, 1024, 8);
        let mut held = std::collections::VecDeque::new();
        let (mut tail, mut head) = (0u64, 0u64);
        for round in 0..500usize {
            let bytes = 1 + round * 37 % 500;
            while let Some(at) = buffer.take(bytes).filter(|_| tail - head < 8) {
                assert!(at >= 64 && at + bytes <= 64 + 1024, "{bytes} at {at}");
                for (other, size) in &held {
                    assert!(
                        at + bytes <= *other || other + size <= at,
                        "{bytes} at {at} meet {size} at {other}"
                    );
                }
                held.push_back((at, bytes));
                tail += 1;
                buffer.entry_ends(tail);
                if held.len() == 3 {
                    break;
                }
            }
            if held.pop_front().is_some() {
                head += 1;
                buffer.done(head);
            }
        }
        assert!(head > 300, "{head}");
    }

    /// A head inside an entry looks at a place where no entry of this life ended.
    #[test]
    fn count_inside_an_entry_frees_none_of_its_bytes() {
        let mut buffer = FrameBuffer::new(0, 1024, 8);
        for ends in [[1, 2, 3], [2, 4, 6], [3, 5, 7]] {
            for (number, end) in ends.into_iter().enumerate() {
                assert_eq!(buffer.take(256), Some(number * 256));
                buffer.entry_ends(end);
            }
            buffer.done(ends[0] - 1);
            assert!(buffer.take(256).is_some() && buffer.take(1).is_none(), "three are in use: {ends:?}");
            buffer.entry_ends(8);
            buffer.done(8);
            assert_eq!(buffer.take(1024), Some(0));
            buffer.restart();
        }
    }
}
