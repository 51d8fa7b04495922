//! A job: what it copies from where to where, and whether that is still there.

use std::sync::Arc;

use beeline_fabric::{
    DmaDirection, DmaEntry, LocalSegment, Piece, Refusal, RemoteSegment, SequenceStart, SequenceStatus,
};
use beeline_mmio::{ProgramCopyError, ProgramMemory};

use crate::segments::{Mapped, Sequences};

/// Where the bytes of this side are. Offsets of entries are in it.
#[derive(Clone, Debug)]
pub enum DmaLocal {
    /// A segment of this member, which is in use as long as the job is under way.
    Segment(LocalSegment),
    /// Memory of the program. A job that finds that some of it is not there fails ([`Refusal::IllegalAddress`]).
    Program(Arc<ProgramMemory>),
}

/// What a job copies.
#[derive(Clone, Debug)]
pub struct DmaTransfer<'a> {
    pub local: DmaLocal,
    pub remote: RemoteSegment,
    pub direction: DmaDirection,
    /// In the order in which they are copied, more or less.
    pub entries: &'a [DmaEntry],
}

/// What all that copy a job need. It keeps its segments mapped.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) local: Side,
    pub(super) remote: Arc<dyn Mapped>,
    pub(super) direction: DmaDirection,
    /// Of the connection, since before the first byte.
    pub(super) sequence: Arc<dyn Sequences>,
    pub(super) start: SequenceStart,
}

/// This side of a job.
#[derive(Debug)]
pub(super) enum Side {
    Segment(Arc<dyn Mapped>),
    Program(Arc<ProgramMemory>),
}

/// How often a piece is copied at most whose connection goes on by another adapter meanwhile.
const COPIES: u32 = 64;

impl Job {
    /// Copies a piece, and says whether it came where it belongs.
    pub(super) fn copy(&self, piece: Piece) -> Result<(), Refusal> {
        if !self.sequence.fails_over() {
            self.store(piece)?;
            return match self.sequence.check(self.start) {
                SequenceStatus::Ok => Ok(()),
                _ => Err(Refusal::TransferFailed),
            };
        }
        for _ in 0..COPIES {
            // Pieces before this one have been found to be there.
            let (_, start) = self.sequence.start();
            let start = start.ok_or(Refusal::TransferFailed)?;
            self.store(piece)?;
            match self.sequence.check(start) {
                SequenceStatus::Ok => return Ok(()),
                SequenceStatus::Retriable => {}
                SequenceStatus::NotRetriable | SequenceStatus::Pending => break,
            }
        }
        Err(Refusal::TransferFailed)
    }

    fn store(&self, piece: Piece) -> Result<(), Refusal> {
        let in_memory = |value: u64| usize::try_from(value).map_err(|_| Refusal::OutOfRange);
        let (local, remote) = (in_memory(piece.local_offset)?, in_memory(piece.remote_offset)?);
        let bytes = in_memory(piece.bytes)?;
        let there = self.remote.place();
        match (&self.local, self.direction) {
            (Side::Segment(map), DmaDirection::Write) => {
                there.copy_from(remote, (map.place(), local), bytes).map_err(|_| Refusal::TransferFailed)
            }
            (Side::Segment(map), DmaDirection::Read) => {
                map.place().copy_from(local, (there, remote), bytes).map_err(|_| Refusal::TransferFailed)
            }
            (Side::Program(memory), DmaDirection::Write) => {
                there.copy_from_program(remote, (memory, local), bytes).map_err(of_program)
            }
            (Side::Program(memory), DmaDirection::Read) => {
                there.copy_to_program(remote, (memory, local), bytes).map_err(of_program)
            }
        }
    }
}

fn of_program(error: ProgramCopyError) -> Refusal {
    match error {
        ProgramCopyError::Segment(_) => Refusal::TransferFailed,
        ProgramCopyError::Outside { .. } => Refusal::OutOfRange,
        ProgramCopyError::NotThere { .. } => Refusal::IllegalAddress,
    }
}
