//! Lines that arrive in pieces, until their 64 bytes are there.
//!
//! The paper assumes that a full write-combining buffer leaves the core whole, so that every write is a line. Where a
//! buffer is evicted early, or the link carries words, a line comes in pieces; they are put together here, and the
//! line counts as arrived when it is whole. A handful of lines can be in pieces at once, as many as a core has
//! write-combining buffers; more fail the queue.
//!
//! From: [`super::kpio_queue`], writes smaller than a line. To: the same, whole lines.
//! Larsen & Lee, NAS'15, §III.A ("6 to 10 WC buffers").

use beeline_spec::LINE_BYTES;

/// Lines that may be in pieces at once.
pub(crate) const MAX_PARTIAL_LINES: usize = 10;

/// A line of which bytes are missing.
#[derive(Clone, Copy, Debug)]
struct Partial {
    line: u32,
    arrived: u64,
    bytes: [u8; LINE_BYTES],
    /// A line that began to arrive later has been whole before this one.
    is_overtaken: bool,
}

/// Result of merging a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merged {
    /// The line is whole; here it is.
    Whole([u8; LINE_BYTES]),
    /// Bytes of the line are still missing.
    Waits,
    /// Too many lines are in pieces; the piece was not taken.
    NoRoom,
    /// A byte of the piece had already arrived; the piece was not taken.
    Clobber,
}

/// The lines in pieces of one queue, in the order of their first pieces.
#[derive(Debug)]
pub(crate) struct LineMerge {
    lines: Vec<Partial>,
}

impl LineMerge {
    /// No line in pieces.
    pub(crate) fn new() -> Self {
        LineMerge { lines: Vec::with_capacity(MAX_PARTIAL_LINES) }
    }

    /// Lines in pieces.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether a line misses bytes although another line came, or began to come, after it.
    #[inline]
    pub(crate) fn has_hole(&self) -> bool {
        self.lines.len() > 1 || self.lines.iter().any(|partial| partial.is_overtaken)
    }

    /// A piece of window line `line` arrived: `data` from byte `at` of the line on, of which the bytes in `arrived`
    /// (bit i for byte i of the line) are written.
    pub(crate) fn merge(&mut self, line: u32, at: usize, data: &[u8], arrived: u64) -> Merged {
        let index = match self.lines.iter().position(|partial| partial.line == line) {
            Some(index) => index,
            None if self.lines.len() == MAX_PARTIAL_LINES => return Merged::NoRoom,
            None => {
                self.lines.push(Partial { line, arrived: 0, bytes: [0; LINE_BYTES], is_overtaken: false });
                self.lines.len() - 1
            }
        };
        let partial = &mut self.lines[index];
        if partial.arrived & arrived != 0 {
            return Merged::Clobber;
        }
        partial.arrived |= arrived;
        for (i, byte) in (at..).zip(data) {
            if arrived >> i & 1 == 1 {
                partial.bytes[i] = *byte;
            }
        }
        if partial.arrived != u64::MAX {
            return Merged::Waits;
        }
        let whole = self.lines.remove(index).bytes;
        for older in &mut self.lines[..index] {
            older.is_overtaken = true;
        }
        Merged::Whole(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_a_line_in_any_order() {
        let expected: [u8; 64] = core::array::from_fn(|i| i as u8 + 1);
        let mut merge = LineMerge::new();
        for words in [[7, 6, 5, 4, 3, 2, 1, 0], [0, 2, 4, 6, 1, 3, 5, 7]] {
            for (n, word) in words.into_iter().enumerate() {
                let at = word * 8;
                let got = merge.merge(5, at, &expected[at..at + 8], 0xff << at);
                assert_eq!(got, if n == 7 { Merged::Whole(expected) } else { Merged::Waits });
            }
        }
        assert_eq!(merge.len(), 0);
    }

    #[test]
    fn a_hole_is_a_line_that_others_pass() {
        let mut merge = LineMerge::new();
        assert_eq!(merge.merge(0, 0, &[0; 8], 0xff), Merged::Waits);
        assert!(!merge.has_hole(), "a line that is on its way is no hole");
        assert_eq!(merge.merge(1, 0, &[0; 8], 0xff), Merged::Waits);
        assert!(merge.has_hole());
        assert!(matches!(merge.merge(0, 8, &[0; 56], !0xff), Merged::Whole(_)));
        assert!(!merge.has_hole(), "the older line is whole");
        assert!(matches!(merge.merge(2, 0, &[0; 64], u64::MAX), Merged::Whole(_)));
        assert!(merge.has_hole(), "line 2 has passed line 1");
    }

    #[test]
    fn bytes_that_are_not_enabled_do_not_count() {
        let mut merge = LineMerge::new();
        assert_eq!(merge.merge(0, 0, &[1; 64], 0x5555_5555_5555_5555), Merged::Waits);
        let Merged::Whole(line) = merge.merge(0, 0, &[2; 64], 0xaaaa_aaaa_aaaa_aaaa) else { panic!() };
        assert!(line.iter().enumerate().all(|(i, b)| *b == if i % 2 == 0 { 1 } else { 2 }));
    }

    #[test]
    fn too_many_lines_and_a_byte_twice_are_refused() {
        let mut merge = LineMerge::new();
        for line in 0..MAX_PARTIAL_LINES as u32 {
            assert_eq!(merge.merge(line, 0, &[0; 8], 0xff), Merged::Waits);
        }
        assert_eq!(merge.merge(99, 0, &[0; 8], 0xff), Merged::NoRoom);
        assert_eq!(merge.merge(3, 4, &[0; 8], 0xff0), Merged::Clobber);
        assert_eq!(merge.len(), MAX_PARTIAL_LINES);
    }
}
