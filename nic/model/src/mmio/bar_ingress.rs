//! Where writes come in: cuts a TLP of any size and byte enables into pieces of at most one line.
//!
//! A piece carries its bytes at their places in the line, zeros where nothing was written, and a bit for each byte that
//! was. So the reorder unit needs neither shifts nor byte loops. Comes from: the BAR decoder ([`crate::bar`]). Goes to:
//! [`super::reorder_unit`]. Not here: any check of position or of what is written.
//! HotOS'25 §3.1 ("when a PCIe MMIO is received").

use beeline_contract_device::Enables;
use beeline_spec::LINE_BYTES;

use super::buffer_pool::PoolLine;

/// The part of a write that lies in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Line of the window.
    pub line: u32,
    /// Bit i: byte i is written.
    pub valid: u64,
    /// The bytes, zero where none is written.
    pub bytes: PoolLine,
}

/// The pieces of one write in order of address, those without any byte left out.
#[derive(Clone, Debug)]
pub(crate) struct Pieces<'a> {
    offset: usize,
    data: &'a [u8],
    /// Enables of what is left, bit 0 for its first byte; meaningless when `all`.
    mask: u64,
    all: bool,
}

/// A mask of the lowest `count` bits; `count` may be 64.
#[inline]
const fn ones(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// 0xff in each byte whose bit is set in `bits`.
#[inline]
const fn spread(bits: u8) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // Byte i keeps bit i of its copy of `bits`; adding 0x7f carries that into bit 7 of the byte and never beyond.
    let picked = (bits as u64 * EACH) & 0x8040_2010_0804_0201;
    let top = ((picked + 0x7f * EACH) | picked) >> 7 & EACH;
    top * 0xff
}

/// Clears the bytes whose bit is not set.
#[inline]
fn blank_out(bytes: &mut PoolLine, valid: u64) {
    for (i, word) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *word = (u64::from_le_bytes(*word) & spread((valid >> (8 * i)) as u8)).to_le_bytes();
    }
}

impl<'a> Pieces<'a> {
    /// Cuts the write of `data` at `offset` bytes from the window's start.
    #[inline]
    pub(crate) fn new(offset: usize, data: &'a [u8], enables: Enables) -> Self {
        let (mask, all) = match enables {
            Enables::All => (0, true),
            Enables::Mask(mask) => (mask & ones(data.len()), false),
        };
        Pieces { offset, data, mask, all }
    }

    /// Lines that the data touches, whether enabled or not.
    #[inline]
    pub(crate) fn lines_touched(&self) -> u32 {
        if self.data.is_empty() {
            return 0;
        }
        ((self.offset % LINE_BYTES + self.data.len()).div_ceil(LINE_BYTES)) as u32
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        while !self.data.is_empty() {
            let first = self.offset % LINE_BYTES;
            let count = self.data.len().min(LINE_BYTES - first);
            let line = (self.offset / LINE_BYTES) as u32;
            let enabled = if self.all { ones(count) } else { self.mask & ones(count) };
            let (here, rest) = self.data.split_at(count);
            (self.offset, self.data) = (self.offset + count, rest);
            self.mask = self.mask.checked_shr(count as u32).unwrap_or(0);
            if enabled == 0 {
                continue;
            }
            let mut bytes = [0; LINE_BYTES];
            match <&PoolLine>::try_from(here) {
                Ok(whole) => bytes = *whole,
                Err(_) => bytes[first..first + count].copy_from_slice(here),
            }
            let valid = enabled << first;
            if enabled != ones(count) {
                blank_out(&mut bytes, valid);
            }
            return Some(Piece { line, valid, bytes });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the pieces must be, byte by byte.
    fn expected(offset: usize, data: &[u8], enables: Enables) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for (i, byte) in data.iter().enumerate().filter(|(i, _)| enables.has(*i)) {
            let (line, at) = (((offset + i) / 64) as u32, (offset + i) % 64);
            if pieces.last().is_none_or(|last| last.line != line) {
                pieces.push(Piece { line, valid: 0, bytes: [0; 64] });
            }
            let last = pieces.last_mut().expect("one was just pushed");
            last.valid |= 1 << at;
            last.bytes[at] = *byte;
        }
        pieces
    }

    #[test]
    fn any_size_and_place_is_cut_as_byte_by_byte() {
        let data: Vec<u8> = (1..=255).cycle().take(300).collect();
        for offset in [0, 1, 7, 8, 63, 64, 100, 191] {
            for bytes in [1, 2, 8, 63, 64, 65, 128, 200, 300] {
                let pieces: Vec<Piece> = Pieces::new(offset, &data[..bytes], Enables::All).collect();
                assert_eq!(pieces, expected(offset, &data[..bytes], Enables::All), "{bytes} at {offset}");
            }
        }
    }

    #[test]
    fn byte_enables_pick_bytes() {
        let data: Vec<u8> = (1..=64).collect();
        for offset in [0, 3, 8, 60, 64] {
            for mask in [0, 1, 0xff, 0xff00_ff00, 0x5555_5555_5555_5555, 1 << 63, u64::MAX] {
                for bytes in [1, 8, 13, 64] {
                    let enables = Enables::Mask(mask);
                    let pieces: Vec<Piece> = Pieces::new(offset, &data[..bytes], enables).collect();
                    assert_eq!(
                        pieces,
                        expected(offset, &data[..bytes], enables),
                        "{mask:#x} {bytes} at {offset}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_bit_becomes_a_byte() {
        for bits in 0..=255u8 {
            let bytes = spread(bits).to_le_bytes();
            for (i, byte) in bytes.iter().enumerate() {
                assert_eq!(*byte, if bits >> i & 1 == 1 { 0xff } else { 0 });
            }
        }
    }
}
