//! What all queues of a member have in common: the maps that jobs use, and the thread that copies.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beeline_fabric::{DmaDirection, DmaEntry, LocalSegment, Refusal, SequenceStatus};
use beeline_mmio::Access;

use super::job::{DmaLocal, DmaTransfer, Job, Side};
use super::turns::Turns;
use crate::segments::{Mapped, Of, Segments};

/// What copies for all DMA queues of a member, which keeps it and has it let go of segments.
#[derive(Debug)]
pub struct Engine {
    member: Arc<dyn Segments>,
    /// Kept for the next job, each from the start of its segment on.
    maps: Mutex<BTreeMap<Of, Kept>>,
    pub(super) turns: Arc<Turns>,
}

/// A map, and what it is for.
#[derive(Clone, Debug)]
struct Kept {
    map: Arc<dyn Mapped>,
    access: Access,
}

impl Engine {
    /// The engine of a member, without a thread until a job is handed to it.
    pub fn new(member: Arc<dyn Segments>) -> Self {
        Engine { member, maps: Mutex::default(), turns: Arc::default() }
    }

    pub(super) fn is_ours(&self) -> bool {
        self.member.is_ours()
    }

    fn maps(&self) -> MutexGuard<'_, BTreeMap<Of, Kept>> {
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of a segment, so that it is in use no more unless a job uses it.
    pub fn forget(&self, of: Of) {
        if self.is_ours() {
            let map = self.maps().remove(&of);
            drop(map);
        }
    }

    /// Lets go of everything. What is under way is copied only by who waits for it.
    pub fn end(&self) {
        if self.is_ours() {
            self.turns.end();
            let maps = std::mem::take(&mut *self.maps());
            drop(maps);
        }
    }

    /// Maps what a job uses, and checks that it is there.
    pub(super) fn job(&self, transfer: &DmaTransfer<'_>) -> Result<Job, Refusal> {
        let (local_end, remote_end) = DmaEntry::ends_of(transfer.entries)?;
        let local = match &transfer.local {
            DmaLocal::Segment(local) => self.local(*local, local_end, transfer.direction)?,
            DmaLocal::Program(memory) if local_end <= memory.bytes() as u64 => {
                Side::Program(Arc::clone(memory))
            }
            DmaLocal::Program(_) => return Err(Refusal::OutOfRange),
        };
        let remote = self.map(Of::Remote(transfer.remote), remote_end)?.map;
        let sequence = Arc::clone(&self.member).sequence(transfer.remote)?;
        match sequence.start() {
            (_, Some(start)) => Ok(Job { local, remote, direction: transfer.direction, sequence, start }),
            (SequenceStatus::NotRetriable, None) => Err(Refusal::NotConnected),
            (_, None) => Err(Refusal::TransferFailed),
        }
    }

    /// A segment of this member, which may be there to be read only.
    fn local(&self, local: LocalSegment, end: u64, direction: DmaDirection) -> Result<Side, Refusal> {
        let Kept { map, access } = self.map(Of::Local(local), end)?;
        if direction == DmaDirection::Read && access == Access::ReadOnly {
            return Err(Refusal::IllegalOperation);
        }
        Ok(Side::Segment(map))
    }

    /// A map of a segment from its start to `end` at least.
    fn map(&self, of: Of, end: u64) -> Result<Kept, Refusal> {
        self.member.check()?;
        let reaches = |kept: &&Kept| kept.map.place().bytes as u64 >= end;
        if let Some(kept) = self.maps().get(&of).filter(reaches) {
            return Ok(kept.clone());
        }
        // With something beyond, so that jobs that reach further each time do not map each time.
        let end = end.max(1);
        let kept = match self.map_to(of, end.checked_next_power_of_two().unwrap_or(end)) {
            Err(Refusal::OutOfRange | Refusal::Nospc) => self.map_to(of, end),
            mapped => mapped,
        };
        let kept = kept.inspect_err(|refusal| {
            if *refusal == Refusal::Nospc {
                tracing::warn!(bytes = end, "a segment is not mapped for DMA");
            }
        })?;
        let replaced = self.maps().insert(of, kept.clone());
        drop(replaced);
        Ok(kept)
    }

    fn map_to(&self, of: Of, end: u64) -> Result<Kept, Refusal> {
        let map = |access| {
            let map = Arc::clone(&self.member).map(of, end, access)?;
            Ok(Kept { map, access })
        };
        match map(Access::ReadWrite) {
            // Memory of the program that is a source only.
            Err(Refusal::IllegalOperation) => map(Access::ReadOnly),
            mapped => mapped,
        }
    }
}
