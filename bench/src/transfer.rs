//! What copies between segments of two members, which are this process, for the benches of DMA: a queue, a map, memory of the process.

use std::hint::black_box;

use beeline_fabric::{DmaEntry, DmaState, LocalSegment, Part, RemoteSegment};
use beeline_fabric_process::{DmaDirection, DmaLocal, DmaQueue, DmaTransfer, FabricMember, Map};
use beeline_session::PrivateDomain;

use crate::BenchError;
use crate::fabric::{OWNER, USER, broken, connect, make_segment, member};

/// The local segment is blank, memory of the process is full of ones.
pub(crate) struct Transfers {
    pub(crate) queue: DmaQueue,
    local: LocalSegment,
    remote: RemoteSegment,
    pub(crate) map: Map,
    pub(crate) own: Vec<u8>,
    // After what is of them.
    _user: FabricMember,
    _owner: FabricMember,
    _domain: PrivateDomain,
}

impl Transfers {
    /// With segments of so many bytes. A transfer of all of them is made here, so that the thread of DMA, which begins with the first that is
    /// not small, is not bound to the core that the caller will take.
    pub(crate) fn new(bytes: usize) -> Result<Self, BenchError> {
        let domain = PrivateDomain::new().map_err(|error| broken(&error))?;
        let owner = member(domain.config().clone(), OWNER)?;
        let user = member(domain.config().clone(), USER)?;
        make_segment(&owner, bytes)?;
        let local = make_segment(&user, bytes)?;
        let remote = connect(&user)?;
        let part = Part { offset: 0, bytes: bytes as u64 };
        let map = user.map_remote(remote, part).map_err(|error| broken(&error))?;
        let queue = user.dma_queue(1).map_err(|error| broken(&error))?;
        let own = vec![1; bytes];
        let transfers =
            Transfers { queue, local, remote, map, own, _user: user, _owner: owner, _domain: domain };
        transfers.start(bytes)?;
        transfers.wait()?;
        Ok(transfers)
    }

    /// Copies memory of the process by stores.
    pub(crate) fn store(&self, bytes: usize) -> Result<(), BenchError> {
        self.map.copy_in(0, black_box(&self.own[..bytes])).map_err(|error| broken(&error))
    }

    /// Starts a transfer out of the local segment.
    pub(crate) fn start(&self, bytes: usize) -> Result<(), BenchError> {
        self.with(bytes, |transfer| self.queue.start(transfer).map(drop).map_err(|error| broken(&error)))
    }

    /// Waits for the transfer that was started.
    pub(crate) fn wait(&self) -> Result<(), BenchError> {
        has_ended(self.queue.wait(None).map_err(|error| broken(&error))?)
    }

    /// Makes a transfer, and waits for it from its beginning.
    pub(crate) fn transfer(&self, bytes: usize) -> Result<(), BenchError> {
        self.with(bytes, |transfer| has_ended(self.queue.copy(transfer).map_err(|error| broken(&error))?))
    }

    fn with<T>(&self, bytes: usize, make: impl FnOnce(DmaTransfer<'_>) -> T) -> T {
        let entries = [DmaEntry { local_offset: 0, remote_offset: 0, bytes: bytes as u64 }];
        let (local, remote) = (DmaLocal::Segment(self.local), self.remote);
        make(DmaTransfer { local, remote, direction: DmaDirection::Write, entries: &entries })
    }
}

/// That a job has ended as it should.
pub(crate) fn has_ended(state: DmaState) -> Result<(), BenchError> {
    match state {
        DmaState::Done => Ok(()),
        other => Err(BenchError::Fabric(format!("a job of DMA ended as {other:?}"))),
    }
}
