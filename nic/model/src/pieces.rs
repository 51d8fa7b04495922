//! A write cut at line ends: what of it lies in each line, and which bytes of the line that enables.
//!
//! Windows keep a bit for each byte of a line, and most writes are whole lines, so masks are made by shifting and whole
//! lines are copied whole. From: writes to windows that take entries.

use beeline_contract_device::Enables;
use beeline_spec::LINE_BYTES;

/// The part of a write that lies in one line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    /// Line, from where the offset counts.
    pub line: usize,
    /// Bit i: byte i of the line is written.
    pub mask: u64,
    /// Byte of the line at which `data` begins.
    at: usize,
    data: &'a [u8],
}

impl Piece<'_> {
    /// Stores what is enabled.
    #[inline]
    pub(crate) fn store(&self, line: &mut [u8]) {
        let range = self.at..self.at + self.data.len();
        if self.mask == low_bits(self.data.len()) << self.at {
            return line[range].copy_from_slice(self.data);
        }
        for (i, (to, from)) in line[range].iter_mut().zip(self.data).enumerate() {
            if self.mask >> (self.at + i) & 1 == 1 {
                *to = *from;
            }
        }
    }
}

/// The pieces of a write of `data` at `offset`; those that enable nothing are left out. A mask is for at most 64 bytes.
#[inline]
pub(crate) fn pieces(offset: usize, data: &[u8], enables: Enables) -> impl Iterator<Item = Piece<'_>> {
    let mut done = 0;
    std::iter::from_fn(move || {
        while done < data.len() {
            let (line, at) = ((offset + done) / LINE_BYTES, (offset + done) % LINE_BYTES);
            let bytes = (LINE_BYTES - at).min(data.len() - done);
            let enabled = match enables {
                Enables::All => low_bits(bytes),
                Enables::Mask(mask) => mask >> done & low_bits(bytes),
            };
            let piece = Piece { line, mask: enabled << at, at, data: &data[done..done + bytes] };
            done += bytes;
            if enabled != 0 {
                return Some(piece);
            }
        }
        None
    })
}

/// The same enables for the bytes from `from` on.
#[inline]
pub(crate) fn skip(enables: Enables, from: usize) -> Enables {
    match enables {
        Enables::All => Enables::All,
        Enables::Mask(mask) => Enables::Mask(mask.checked_shr(from as u32).unwrap_or(0)),
    }
}

/// The lowest `count` (at most 64) bits.
const fn low_bits(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_enabled_byte_is_in_one_piece_at_its_place() {
        let data: Vec<u8> = (1..=200).collect();
        for offset in [0, 1, 63, 64, 100] {
            for (length, mask) in [
                (200, None),
                (64, Some(u64::MAX)),
                (64, Some(0x8000_0001_ff00_0001)),
                (10, Some(0x2aa)),
                (1, None),
            ] {
                let enables = mask.map_or(Enables::All, Enables::Mask);
                let mut memory = [0u8; 512];
                let mut marks = [0u64; 8];
                for piece in pieces(offset, &data[..length], enables) {
                    assert_eq!(marks[piece.line] & piece.mask, 0);
                    marks[piece.line] |= piece.mask;
                    piece.store(&mut memory[piece.line * 64..][..64]);
                }
                for place in 0..512usize {
                    let byte = place.checked_sub(offset).filter(|i| *i < length && enables.has(*i));
                    assert_eq!(memory[place], byte.map_or(0, |i| data[i]), "{place} of {length} at {offset}");
                    assert_eq!(marks[place / 64] >> (place % 64) & 1 == 1, byte.is_some());
                }
            }
        }
    }

    #[test]
    fn enables_are_skipped_with_their_bytes() {
        assert_eq!(skip(Enables::All, 100), Enables::All);
        assert_eq!(skip(Enables::Mask(0b1100), 2), Enables::Mask(0b11));
        assert_eq!(skip(Enables::Mask(u64::MAX), 64), Enables::Mask(0));
    }
}
