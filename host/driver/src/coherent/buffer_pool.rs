//! Buffers for frames that entries name, used again last in, first out.
//!
//! Two sizes: short ones, so that many small frames lie close together, and ones for the longest frame. The one given
//! back last is taken first: its lines are in a cache, and buffers that the traffic does not need are never touched.
//!
//! Used by `coherent`. Not here: the memory itself, which the queue owns, and when a buffer comes back.
//! Schuh et al., ASPLOS'24 (recycling of buffers, small buffers).

use alloc::vec::Vec;

use beeline_spec::LINE_BYTES;

/// Bytes of a short buffer: two lines, which the CPUs at hand fetch as a pair.
pub(crate) const SHORT_BYTES: usize = 2 * LINE_BYTES;

/// A buffer that was taken, by its number: short ones first, then long ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Buffer(u32);

/// The buffers that are free, of both sizes.
#[derive(Debug)]
pub(crate) struct BufferPool {
    /// Offset in the queue's memory of the first short one.
    at: usize,
    short: u32,
    long: u32,
    long_bytes: usize,
    free_short: Vec<Buffer>,
    free_long: Vec<Buffer>,
}

/// Bytes of memory for so many buffers.
pub(crate) const fn memory_bytes(short: u32, long: u32, long_bytes: usize) -> usize {
    short as usize * SHORT_BYTES + long as usize * long_bytes
}

impl BufferPool {
    /// All free; `long_bytes` is a multiple of a line, and so is `at`.
    pub(crate) fn new(at: usize, short: u32, long: u32, long_bytes: usize) -> Self {
        let (free_short, free_long) = (Vec::with_capacity(short as usize), Vec::with_capacity(long as usize));
        let mut pool = BufferPool { at, short, long, long_bytes, free_short, free_long };
        pool.restart();
        pool
    }

    /// Takes a buffer for so many bytes, at most the longest frame's; `None` while there is none. A short frame takes a
    /// long buffer rather than wait.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Option<Buffer> {
        let short = if bytes <= SHORT_BYTES { self.free_short.pop() } else { None };
        short.or_else(|| self.free_long.pop())
    }

    /// Offset of a buffer in the queue's memory.
    #[inline]
    pub(crate) fn offset(&self, Buffer(number): Buffer) -> usize {
        match number.checked_sub(self.short) {
            None => self.at + number as usize * SHORT_BYTES,
            Some(long) => self.at + self.short as usize * SHORT_BYTES + long as usize * self.long_bytes,
        }
    }

    /// Gives a taken buffer back.
    #[inline]
    pub(crate) fn give(&mut self, buffer: Buffer) {
        if buffer.0 < self.short { self.free_short.push(buffer) } else { self.free_long.push(buffer) }
    }

    /// Makes every buffer free.
    pub(crate) fn restart(&mut self) {
        self.free_short.clear();
        self.free_short.extend((0..self.short).rev().map(Buffer));
        self.free_long.clear();
        self.free_long.extend((self.short..self.short + self.long).rev().map(Buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_given_back_last_is_taken_first() {
        let mut pool = BufferPool::new(64, 4, 2, 1536);
        let first = pool.take(100).unwrap();
        let second = pool.take(128).unwrap();
        pool.give(second);
        pool.give(first);
        assert_eq!((pool.take(1), pool.take(1)), (Some(first), Some(second)));
    }

    #[test]
    fn buffers_do_not_meet_and_end_with_the_memory() {
        let mut pool = BufferPool::new(64, 4, 2, 1536);
        let mut taken: Vec<(usize, usize)> = Vec::new();
        // Four short ones, and a long one for want of a short one.
        for bytes in [128; 5].into_iter().chain([129]) {
            let buffer = pool.take(bytes).unwrap();
            let at = pool.offset(buffer);
            let other = taken.iter().find(|(other, size)| at < other + size && *other < at + bytes);
            assert_eq!(other, None, "{bytes} at {at}");
            taken.push((at, bytes));
            assert!(at >= 64 && at + bytes <= 64 + memory_bytes(4, 2, 1536));
        }
        assert_eq!((pool.take(14), pool.take(1500)), (None, None));
        pool.restart();
        assert!(pool.take(1500).is_some());
    }
}
