//! Bytes that were sent and may have to be sent anew.

use std::collections::VecDeque;

/// Below this many bytes the receiver's cursor is not looked at: it is a line that the receiver stores with each read.
const LOOK_BYTES: usize = 64 << 10;

/// The last bytes of a stream, from one on that the receiver has come to.
#[derive(Debug)]
pub(crate) struct Kept {
    bytes: VecDeque<u8>,
    /// Which byte of the stream the first one is.
    from: u64,
    /// The cursor is looked at when there are so many.
    look_at: usize,
}

impl Kept {
    /// Nothing yet, of a stream that is at `offset`.
    pub fn from(offset: u64) -> Self {
        Kept { bytes: VecDeque::new(), from: offset, look_at: LOOK_BYTES }
    }

    /// Which byte of the stream its first one is.
    pub fn begin(&self) -> u64 {
        self.from
    }

    /// What was not forgotten, from the first one on.
    pub fn into_bytes(self) -> VecDeque<u8> {
        self.bytes
    }

    /// Behind its last byte.
    pub fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }

    /// How many there are: memory that a receiver that is behind costs.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds bytes that were sent. `cursor` says how far the receiver is; it costs a line of the receiver's and is asked seldom.
    pub fn add(&mut self, bytes: &[u8], cursor: impl FnOnce() -> u64) {
        self.bytes.extend(bytes);
        if self.bytes.len() >= self.look_at {
            self.release(cursor());
            // So that the line is not asked for with every message behind a receiver that is slow.
            self.look_at = LOOK_BYTES.max(2 * self.bytes.len());
        }
    }

    /// Forgets bytes before `offset`, as far as there are any.
    pub fn release(&mut self, offset: u64) {
        let bytes = offset.saturating_sub(self.from).min(self.bytes.len() as u64);
        self.bytes.drain(..bytes as usize);
        self.from += bytes;
    }

    /// As [`Kept::release`], and gives back memory that nothing needs.
    pub fn give_back(&mut self, offset: u64) {
        self.release(offset);
        self.bytes.shrink_to(self.bytes.len());
        self.look_at = LOOK_BYTES.max(2 * self.bytes.len());
    }

    /// Whether all bytes from `offset` on are here.
    pub fn has(&self, offset: u64) -> bool {
        (self.from..=self.end()).contains(&offset)
    }

    /// Bytes from `offset` on, some of them at once; empty at the end.
    pub fn at(&self, offset: u64) -> &[u8] {
        let skipped = offset.saturating_sub(self.from) as usize;
        let (first, second) = self.bytes.as_slices();
        first
            .get(skipped..)
            .filter(|bytes| !bytes.is_empty())
            .unwrap_or_else(|| second.get(skipped.saturating_sub(first.len())..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_where_they_were_in_the_stream() {
        let mut kept = Kept::from(1000);
        for round in 0..200u64 {
            let bytes: Vec<u8> = (0..613u64).map(|at| (round * 613 + at) as u8).collect();
            kept.add(&bytes, || unreachable!("too few to look"));
            kept.release(1000 + round * 613);
            let mut offset = kept.end() - 613 + round;
            assert!(kept.has(offset) && kept.has(kept.end()) && !kept.has(kept.end() + 1));
            while offset < kept.end() {
                let found = kept.at(offset);
                assert!(!found.is_empty());
                assert!(found.iter().zip(offset - 1000..).all(|(byte, at)| *byte == at as u8));
                offset += found.len() as u64;
            }
            assert!(kept.at(offset).is_empty());
        }
        assert!(!kept.has(1000));
    }

    #[test]
    fn cursor_is_looked_at_seldom_and_what_is_behind_it_forgotten() {
        let mut kept = Kept::from(0);
        let looks = std::cell::Cell::new(0);
        for round in 1..=64u64 {
            kept.add(&[0; 4096], || {
                looks.set(looks.get() + 1);
                round * 4096 - 10
            });
        }
        assert_eq!((looks.get(), kept.end()), (4, 64 * 4096));
        assert!(kept.len() <= LOOK_BYTES);
        kept.give_back(u64::MAX);
        assert_eq!((kept.len(), kept.end(), kept.bytes.capacity()), (0, 64 * 4096, 0));
    }
}
