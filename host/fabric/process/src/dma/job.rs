//! A job: what it copies from where to where, and whether that is still there.

use std::sync::Arc;

use beeline_fabric::{DmaEntry, LocalSegment, Piece, Refusal, RemoteSegment, SequenceStart, SequenceStatus};

use crate::map::Map;
use crate::sequence::Sequence;

/// Which way a job copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaDirection {
    /// From the local segment to the remote one.
    Write,
    /// From the remote segment to the local one.
    Read,
}

/// What a job copies.
#[derive(Clone, Copy, Debug)]
pub struct DmaTransfer<'a> {
    pub local: LocalSegment,
    pub remote: RemoteSegment,
    pub direction: DmaDirection,
    /// In the order in which they are copied, more or less.
    pub entries: &'a [DmaEntry],
}

/// What all that copy a job need. It keeps its segments mapped.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) local: Arc<Map>,
    pub(super) remote: Arc<Map>,
    pub(super) direction: DmaDirection,
    /// Of the connection, since before the first byte.
    pub(super) sequence: Sequence,
    pub(super) start: SequenceStart,
}

impl Job {
    /// Copies a piece, and says whether it came where it belongs.
    pub(super) fn copy(&self, piece: Piece) -> Result<(), Refusal> {
        let in_memory = |value: u64| usize::try_from(value).map_err(|_| Refusal::OutOfRange);
        let (local, remote) = (in_memory(piece.local_offset)?, in_memory(piece.remote_offset)?);
        let bytes = in_memory(piece.bytes)?;
        let copied = match self.direction {
            DmaDirection::Write => self.remote.copy_from(remote, &self.local, local, bytes),
            DmaDirection::Read => self.local.copy_from(local, &self.remote, remote, bytes),
        };
        copied.map_err(|_| Refusal::TransferFailed)?;
        match self.sequence.check(self.start) {
            SequenceStatus::Ok => Ok(()),
            _ => Err(Refusal::TransferFailed),
        }
    }
}
