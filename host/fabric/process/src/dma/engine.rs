//! What all queues of a member have in common: the maps that jobs use, and the thread that copies.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beeline_fabric::{DmaEntry, LocalSegment, Part, Refusal, SequenceStatus};
use beeline_mmio::Access;

use super::job::{DmaDirection, DmaLocal, DmaTransfer, Job, Side};
use super::turns::Turns;
use crate::error::NotMapped;
use crate::map::{Map, MapOptions};
use crate::shared::{Of, Shared};

/// The engine of a member.
#[derive(Debug)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
    /// Kept for the next job, each from the start of its segment on.
    maps: Mutex<BTreeMap<Of, Arc<Map>>>,
    pub(super) turns: Arc<Turns>,
}

impl Engine {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Engine { shared: Arc::clone(shared), maps: Mutex::default(), turns: Arc::default() }
    }

    /// Whether this is no child of fork of the process that made it.
    pub(crate) fn is_ours(&self) -> bool {
        self.shared.process.is_this()
    }

    fn maps(&self) -> MutexGuard<'_, BTreeMap<Of, Arc<Map>>> {
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of a segment, so that it is in use no more unless a job uses it.
    pub(crate) fn forget(&self, of: Of) {
        if self.is_ours() {
            let map = self.maps().remove(&of);
            drop(map);
        }
    }

    /// Lets go of everything. What is under way is copied only by who waits for it.
    pub(crate) fn end(&self) {
        if self.is_ours() {
            self.turns.end();
            let maps = std::mem::take(&mut *self.maps());
            drop(maps);
        }
    }

    /// Maps what a job uses, and checks that it is there.
    pub(super) fn job(&self, transfer: &DmaTransfer<'_>) -> Result<Job, Refusal> {
        let (local_end, remote_end) = ends(transfer.entries)?;
        let local = match &transfer.local {
            DmaLocal::Segment(local) => self.local(*local, local_end, transfer.direction)?,
            DmaLocal::Program(memory) if local_end <= memory.bytes() as u64 => {
                Side::Program(Arc::clone(memory))
            }
            DmaLocal::Program(_) => return Err(Refusal::OutOfRange),
        };
        let remote = self.map(Of::Remote(transfer.remote), remote_end)?;
        let sequence = self.shared.sequence(transfer.remote)?;
        match sequence.start() {
            (_, Some(start)) => Ok(Job { local, remote, direction: transfer.direction, sequence, start }),
            (SequenceStatus::NotRetriable, None) => Err(Refusal::NotConnected),
            (_, None) => Err(Refusal::TransferFailed),
        }
    }

    /// A segment of this member, which may be there to be read only.
    fn local(&self, local: LocalSegment, end: u64, direction: DmaDirection) -> Result<Side, Refusal> {
        let map = self.map(Of::Local(local), end)?;
        if direction == DmaDirection::Read && map.access() == Access::ReadOnly {
            return Err(Refusal::IllegalOperation);
        }
        Ok(Side::Segment(map))
    }

    /// A map of a segment from its start to `end` at least.
    fn map(&self, of: Of, end: u64) -> Result<Arc<Map>, Refusal> {
        self.shared.check_process()?;
        let reaches = |map: &&Arc<Map>| map.bytes() as u64 >= end;
        if let Some(map) = self.maps().get(&of).filter(reaches) {
            return Ok(Arc::clone(map));
        }
        // With something beyond, so that jobs that reach further each time do not map each time.
        let end = end.max(1);
        let map = match self.map_to(of, end.checked_next_power_of_two().unwrap_or(end)) {
            Err(NotMapped::Refused(Refusal::OutOfRange) | NotMapped::Memory(_)) => self.map_to(of, end),
            mapped => mapped,
        };
        let map = Arc::new(map.map_err(|error| match error {
            NotMapped::Refused(refusal) => refusal,
            error => {
                tracing::warn!(%error, "a segment is not mapped for DMA");
                Refusal::Nospc
            }
        })?);
        let replaced = self.maps().insert(of, Arc::clone(&map));
        drop(replaced);
        Ok(map)
    }

    fn map_to(&self, of: Of, end: u64) -> Result<Map, NotMapped> {
        let map = |access| {
            let options = MapOptions { access, ..MapOptions::default() };
            Map::new(&self.shared, of, Part { offset: 0, bytes: end }, options)
        };
        match map(Access::ReadWrite) {
            // Memory of the program that is a source only.
            Err(NotMapped::Refused(Refusal::IllegalOperation)) => map(Access::ReadOnly),
            mapped => mapped,
        }
    }
}

/// Where a job ends in its local segment and in its remote one.
fn ends(entries: &[DmaEntry]) -> Result<(u64, u64), Refusal> {
    entries.iter().try_fold((0, 0), |(local, remote), entry| {
        let (local_end, remote_end) = entry.ends().ok_or(Refusal::OutOfRange)?;
        Ok((local_end.max(local), remote_end.max(remote)))
    })
}
