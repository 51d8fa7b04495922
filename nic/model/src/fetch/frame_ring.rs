//! Buffer memory of one queue: a ring of lines in which every frame lies in one piece.
//!
//! The wire wants a frame as one slice. A ring that wraps would cut the frame that crosses its end, so the memory goes
//! on past the end by the longest frame: the frame that begins before the end runs on into that tail, and the lines at
//! the front that it logically covers stay unused for as long. Positions and accounting are those of a plain ring.
//! Nothing is copied to keep a frame together, and nothing is allocated after the ring is made.
//!
//! From: payload reads ([`super::FrameQueue`]) and kPIO lines ([`crate::kpio`]). To: `FrameSource::head`.

use std::ops::Range;

use beeline_spec::LINE_BYTES;

/// The memory and how much of it is in use. Frames are released in the order in which they were reserved.
#[derive(Debug)]
pub(crate) struct FrameRing {
    lines: Box<[[u8; LINE_BYTES]]>,
    capacity_lines: u32,
    used_lines: u32,
    /// Line at which the next frame begins.
    tail: u32,
}

impl FrameRing {
    /// A ring of `capacity_lines` for frames of up to `longest_lines`, which must not be more than the capacity.
    /// The memory is zeroed lazily by the operating system, so a ring costs what is used of it.
    pub(crate) fn new(capacity_lines: u32, longest_lines: u32) -> Self {
        assert!(
            longest_lines <= capacity_lines,
            "a frame of {longest_lines} lines in a ring of {capacity_lines}"
        );
        let lines =
            vec![[0; LINE_BYTES]; capacity_lines as usize + longest_lines as usize].into_boxed_slice();
        FrameRing { lines, capacity_lines, used_lines: 0, tail: 0 }
    }

    /// Lines that are not in use.
    #[inline]
    pub(crate) fn free_lines(&self) -> u32 {
        self.capacity_lines - self.used_lines
    }

    /// Takes `lines` more; gives the line at which a frame that begins with them lies, or `None` when there are not
    /// so many. A frame that grows line by line keeps the place of its first.
    #[inline]
    pub(crate) fn reserve(&mut self, lines: u32) -> Option<u32> {
        if lines > self.free_lines() {
            return None;
        }
        if self.used_lines == 0 {
            // An empty ring starts over, so that a queue that keeps up works in few lines that stay in the cache.
            self.tail = 0;
        }
        let start = self.tail;
        self.tail += lines;
        if self.tail >= self.capacity_lines {
            self.tail -= self.capacity_lines;
        }
        self.used_lines += lines;
        Some(start)
    }

    /// Lets the oldest `lines` go.
    #[inline]
    pub(crate) fn release(&mut self, lines: u32) {
        debug_assert!(lines <= self.used_lines);
        self.used_lines -= lines;
    }

    /// Lets the youngest `lines` go, as if they had never been reserved.
    #[inline]
    pub(crate) fn take_back(&mut self, lines: u32) {
        debug_assert!(lines <= self.used_lines);
        self.used_lines -= lines;
        self.tail =
            if self.tail >= lines { self.tail - lines } else { self.tail + self.capacity_lines - lines };
    }

    /// Bytes `range` of the frame that lies at line `start`.
    #[inline]
    pub(crate) fn frame(&self, start: u32, range: Range<usize>) -> &[u8] {
        &self.lines[start as usize..].as_flattened()[range]
    }

    /// Returns a part of a frame to write to.
    #[inline]
    pub(crate) fn frame_mut(&mut self, start: u32, range: Range<usize>) -> &mut [u8] {
        &mut self.lines[start as usize..].as_flattened_mut()[range]
    }

    /// Line `index` of the frame that lies at line `start`, to be written.
    #[inline]
    pub(crate) fn line_mut(&mut self, start: u32, index: u32) -> &mut [u8; LINE_BYTES] {
        &mut self.lines[start as usize + index as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn frames_stay_whole_while_the_ring_goes_round() {
        let mut ring = FrameRing::new(16, 7);
        let mut held = VecDeque::new();
        for n in 0..1000u32 {
            let lines = 1 + n * 5 % 7;
            while ring.free_lines() < lines {
                let (start, lines, n): (u32, u32, u32) = held.pop_front().unwrap();
                assert!(ring.frame(start, 0..lines as usize * 64).iter().all(|b| *b == n as u8), "frame {n}");
                ring.release(lines);
            }
            let start = ring.reserve(lines).unwrap();
            ring.frame_mut(start, 0..lines as usize * 64).fill(n as u8);
            held.push_back((start, lines, n));
        }
    }

    #[test]
    fn a_frame_that_grows_line_by_line_keeps_its_place_across_the_end() {
        let mut ring = FrameRing::new(8, 4);
        assert_eq!(ring.reserve(6), Some(0));
        let start = ring.reserve(1).unwrap();
        for _ in 1..4 {
            ring.release(1);
            assert!(ring.reserve(1).is_some());
        }
        ring.frame_mut(start, 0..4 * 64).fill(1);
        assert_eq!((start, ring.free_lines()), (6, 1));
        ring.take_back(4);
        assert_eq!(ring.reserve(5), Some(6));
        assert_eq!(ring.reserve(1), None);
    }
}
