//! The bytes of packets in flight; a packet names its payload by a number.

use std::ops::Range;

/// No body.
const NONE: u32 = u32::MAX;

/// Bytes of writes of the cores: at most a line each, two of them for lines that were merged.
#[derive(Debug)]
pub(super) struct Lines {
    bodies: Vec<LineBody>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct LineBody {
    bytes: [u8; 64],
    length: u8,
    /// Copies in flight besides the first.
    copies: u16,
    next: u32,
}

impl Lines {
    pub(super) fn new() -> Self {
        Lines { bodies: Vec::new(), free: Vec::new() }
    }

    /// Keeps `length` bytes from `first` on of a line of words.
    #[inline]
    pub(super) fn add(&mut self, words: &[u64; 8], first: usize, length: usize) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.bodies.push(LineBody { bytes: [0; 64], length: 0, copies: 0, next: NONE });
            self.bodies.len() as u32 - 1
        });
        let body = &mut self.bodies[number as usize];
        body.length = length as u8;
        body.next = NONE;
        for (chunk, word) in body.bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *chunk = word.to_le_bytes();
        }
        if first > 0 {
            body.bytes.copy_within(first..first + length, 0);
        }
        number
    }

    /// `second` follows `first` in one packet.
    pub(super) fn join(&mut self, first: u32, second: u32) {
        self.bodies[first as usize].next = second;
    }

    /// The bytes of a packet; those of two lines are put together in `joined`.
    #[inline]
    pub(super) fn of<'a>(&'a self, number: u32, joined: &'a mut Vec<u8>) -> &'a [u8] {
        let body = &self.bodies[number as usize];
        let first = &body.bytes[..usize::from(body.length)];
        let Some(second) = self.bodies.get(body.next as usize) else { return first };
        joined.clear();
        joined.extend_from_slice(first);
        joined.extend_from_slice(&second.bytes[..usize::from(second.length)]);
        joined
    }

    /// Lines in flight.
    pub(super) fn held(&self) -> usize {
        self.bodies.len() - self.free.len()
    }

    /// So many packets more carry it; it is gone when all of them are.
    pub(super) fn copy(&mut self, number: u32, more: u16) {
        self.bodies[number as usize].copies += more;
    }

    /// A packet that carries it is gone.
    #[inline]
    pub(super) fn remove(&mut self, number: u32) {
        let body = &mut self.bodies[number as usize];
        if body.copies > 0 {
            body.copies -= 1;
            return;
        }
        let next = body.next;
        self.free.push(number);
        if next != NONE {
            self.free.push(next);
        }
    }
}

/// Bytes of any number, of writes of the device and of reads; buffers are used again.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<Vec<u8>>,
    /// Of each, those besides the first that want it.
    copies: Vec<u16>,
    free: Vec<u32>,
}

impl Blocks {
    /// An empty block.
    pub(super) fn add(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.blocks.push(Vec::new());
            self.copies.push(0);
            self.blocks.len() as u32 - 1
        })
    }

    /// Returns how many blocks are in use.
    pub(super) fn held(&self) -> usize {
        self.blocks.len() - self.free.len()
    }

    /// The bytes of a block.
    pub(super) fn of(&mut self, number: u32) -> &mut Vec<u8> {
        &mut self.blocks[number as usize]
    }

    /// Copies bytes of a block into another where their addresses are the same, inside `range` of the other. Each is
    /// named by its number and the address of its first byte.
    pub(super) fn overlay(&mut self, from: (u32, u64), into: (u32, u64), range: Range<usize>) {
        let Ok([data, other]) = self.blocks.get_disjoint_mut([from.0 as usize, into.0 as usize]) else {
            return;
        };
        let start = from.1.max(into.1 + range.start as u64);
        let end = (from.1 + data.len() as u64).min(into.1 + range.end as u64);
        if start < end {
            let place = |address: u64| (start - address) as usize..(end - address) as usize;
            other[place(into.1)].copy_from_slice(&data[place(from.1)]);
        }
    }

    /// So many more want a block; it is gone when all of them are done with it.
    pub(super) fn copy(&mut self, number: u32, more: u16) {
        self.copies[number as usize] += more;
    }

    /// One who wanted it does not any more.
    pub(super) fn remove(&mut self, number: u32) {
        let copies = &mut self.copies[number as usize];
        if *copies > 0 {
            *copies -= 1;
            return;
        }
        self.blocks[number as usize].clear();
        self.free.push(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lines_are_one_packet() {
        let mut lines = Lines::new();
        let (first, second) = (lines.add(&[1; 8], 0, 64), lines.add(&[2; 8], 8, 56));
        lines.join(first, second);
        let mut joined = Vec::new();
        let bytes = lines.of(first, &mut joined);
        assert_eq!((bytes.len(), bytes[0], bytes[64], bytes[119]), (120, 1, 2, 0));
        assert_eq!(lines.of(second, &mut joined).len(), 56);
        lines.remove(first);
        assert_eq!(lines.free.len(), 2);
    }

    #[test]
    fn a_block_lies_over_another_where_both_have_bytes() {
        let mut blocks = Blocks::default();
        let [write, read] = [7, 0].map(|byte| {
            let number = blocks.add();
            blocks.of(number).resize(8, byte);
            number
        });
        blocks.overlay((write, 1000), (read, 1004), 1..3);
        assert_eq!(blocks.of(read)[..], [0, 7, 7, 0, 0, 0, 0, 0]);
        blocks.overlay((write, 1000), (read, 996), 0..8);
        assert_eq!(blocks.of(read)[..], [0, 7, 7, 0, 7, 7, 7, 7]);
        blocks.overlay((write, 1000), (read, 1008), 0..8);
        assert_eq!(blocks.of(read)[..], [0, 7, 7, 0, 7, 7, 7, 7]);
    }
}
