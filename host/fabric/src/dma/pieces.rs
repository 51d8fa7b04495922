//! A job in pieces: small enough that another job's turn, or an abort, waits for one of them only.

use alloc::vec::Vec;

use crate::refusal::Refusal;

/// The size of a piece, but for the last one of an entry: 3 to 16 microseconds of copying. Between two pieces the stores of the first have to
/// reach the cache before the loads of the second begin.
pub const PIECE_BYTES: u64 = 128 << 10;

/// A part of a job: so many bytes of the local segment and of the remote one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaEntry {
    /// Where in the local segment it begins.
    pub local_offset: u64,
    /// Where in the remote segment it begins.
    pub remote_offset: u64,
    /// Its size.
    pub bytes: u64,
}

impl DmaEntry {
    /// Where it ends in the local segment and in the remote one; `None` if no segment can have that.
    pub fn ends(&self) -> Option<(u64, u64)> {
        Some((self.local_offset.checked_add(self.bytes)?, self.remote_offset.checked_add(self.bytes)?))
    }

    /// Where the last of several ends in the local segment and in the remote one.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`]: no segment can have one of them.
    pub fn ends_of(entries: &[DmaEntry]) -> Result<(u64, u64), Refusal> {
        entries.iter().try_fold((0, 0), |(local, remote), entry| {
            let (local_end, remote_end) = entry.ends().ok_or(Refusal::OutOfRange)?;
            Ok((local_end.max(local), remote_end.max(remote)))
        })
    }
}

/// Bytes that are copied at once.
pub type Piece = DmaEntry;

/// What is left of a job.
#[derive(Debug)]
pub(super) struct Pieces {
    entries: Vec<DmaEntry>,
    /// The entry that is being cut.
    at: usize,
    /// What has been cut off it.
    done_bytes: u64,
}

impl Pieces {
    pub(super) fn new(entries: Vec<DmaEntry>) -> Self {
        let mut pieces = Pieces { entries, at: 0, done_bytes: 0 };
        pieces.settle();
        pieces
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.entries.len()
    }

    /// Goes on to an entry of which something is left.
    fn settle(&mut self) {
        while self.entries.get(self.at).is_some_and(|entry| entry.bytes == self.done_bytes) {
            self.at += 1;
            self.done_bytes = 0;
        }
    }
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let entry = *self.entries.get(self.at)?;
        let piece = Piece {
            // No overflow: it is inside the entry, whose ends were checked against its segments.
            local_offset: entry.local_offset.saturating_add(self.done_bytes),
            remote_offset: entry.remote_offset.saturating_add(self.done_bytes),
            bytes: (entry.bytes - self.done_bytes).min(PIECE_BYTES),
        };
        self.done_bytes += piece.bytes;
        self.settle();
        Some(piece)
    }
}
