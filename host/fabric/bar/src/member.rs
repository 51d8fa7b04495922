//! The public API: a process joins, calls and leaves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use beeline_contract_link::Heartbeat;
use beeline_contract_memory::WaitPolicy;
use beeline_fabric::{
    AdapterNumber, Call, Config, LocalSegment, Member, MemberNumber, NodeId, Part, Refusal, RemoteSegment,
    Value,
};
use beeline_fabric_transfer::{DmaQueue, Engine, MessageQueue, Of, QueueConfig};
use beeline_heartbeat::MappedFile;
use beeline_mmio::{OnLoss, ThisProcess, thread};

use crate::claim::claim;
use crate::error::{Lost, NotMapped, OpenError};
use crate::joint::Joints;
use crate::map::{BarMap, BarMapOptions};
use crate::memory::BarMemory;
use crate::names::OwnNames;
use crate::peer::Peer;
use crate::private;
use crate::sequence::BarSequence;
use crate::shared::{Ended, Numbers, Shared, State, serve};
use crate::space::Space;
use crate::waiting::wait_with;
use crate::words::Published;

/// Where a process becomes a member.
#[derive(Clone, Debug)]
pub struct BarConfig {
    pub memory: BarMemory,
    /// Members at the same time, 2 to 16: said by the first who uses the memory, and not asked of others.
    pub members: usize,
    /// The slot of this member; `None`: one that is free.
    pub slot: Option<usize>,
    /// The node that the process is of.
    pub node: NodeId,
    /// The adapter that the memory is.
    pub adapter: AdapterNumber,
    /// Whose segments can be connected to; this member's own may be among them.
    pub nodes: Vec<NodeId>,
    /// What an access does when memory is gone, because the file was made shorter or the device was removed. With a guard the link goes
    /// down and connections are lost; without one the access ends the process.
    pub on_loss: OnLoss,
}

/// This process as a member of a fabric whose members share a file or a BAR. It leaves when this and all maps are dropped.
///
/// All threads may use it. In a child of fork every call is refused ([`Refusal::System`]).
#[derive(Debug)]
pub struct BarMember {
    pub(crate) shared: Arc<Shared>,
    engine: Arc<Engine>,
}

impl BarMember {
    /// Joins, and waits until it is known of every other slot whether its member lives: some periods of the heartbeat, its bound at most.
    ///
    /// # Errors
    /// The memory is not to be had, has something else in it, or has no slot for this member.
    pub fn open(config: BarConfig) -> Result<Self, OpenError> {
        let space = Space::open(&config.memory, config.members, config.on_loss)?;
        Self::join(space, config)
    }

    /// Joins those who have the memory.
    pub(crate) fn join(space: Arc<Space>, config: BarConfig) -> Result<Self, OpenError> {
        let BarConfig { slot, node, adapter, nodes, .. } = config;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(OpenError::Random)?;
        let [first, second] =
            [0, 8].map(|at| random[at..at + 8].iter().fold(0, |all, byte| all << 8 | u64::from(*byte)));
        let number = MemberNumber::new(node, first | 1 << 16);
        let slot = claim(&space, number.0, slot)?;
        space.clear(slot);
        // What it said of its area is cleared.
        space.ordered(|| space.tenant(slot).store_release(number.0));
        let board = Published::new(&space, space.board(slot));
        let mut tables = Member::new(Config { node, adapters: vec![adapter], nodes }, board.clone());
        tables.limit_bank(space.layout.area_bytes);
        tables.limit_entries(space.layout.entries);
        tables.reuse_bank();
        let numbers = Numbers::new(second);
        let peers = (0..space.layout.members).map(|peer| Peer::new(&space, (slot, peer), numbers.next()));
        let own = (board, OwnNames::new(&space, slot), Joints::new(&space, slot));
        let state = State::new(tables, own, peers.collect());
        let shared = Arc::new(Shared {
            space,
            slot,
            number,
            node,
            adapter,
            state: Mutex::new(state),
            started: Instant::now(),
            process: ThisProcess::get(),
            ended: Ended::default(),
            polls: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&shared);
        let served = thread::start("beeline-bar", move || serve(&weak)).map_err(OpenError::Thread);
        let engine = Arc::new(Engine::new(Arc::<Shared>::clone(&shared)));
        let member = BarMember { shared, engine };
        member.shared.ended.keep(served?);
        member.await_others();
        member.lost().map_or(Ok(member), |lost| Err(OpenError::Lost(lost)))
    }

    /// Has whoever waits look over and over instead of sleeping, from the next wait on, or no more. Each thread that waits takes a core.
    pub fn set_polling(&self, polls: bool) {
        self.shared.polls.store(polls, Ordering::Relaxed);
    }

    /// Has memory used again that others had connected to when they went silent, rather than calls refused because none is left. Otherwise it
    /// is not used again before this member ends: who only stood still goes on to store where it did. For programs that stand such stores in any
    /// of their segments, as those do that expect a peer to store anything.
    pub fn reuse_memory_of_silent(&self) {
        self.shared.lock().member.reuse_kept_bank();
    }

    /// Waits until the member of each slot that has one is there, or has had the time to be.
    fn await_others(&self) {
        let heartbeat = Heartbeat::of::<MappedFile>();
        let until = Instant::now() + heartbeat.bound();
        let space = &self.shared.space;
        let all_there = |_| {
            self.shared.tend();
            let is_there = self.shared.enter(|state, _| {
                let mut missing = state.peers.iter().filter(|peer| peer.number.is_none());
                missing.all(|peer| space.number(peer.slot).load_acquire() == 0)
            });
            Ok::<_, std::convert::Infallible>(is_there.then_some(()))
        };
        let Ok(_or_not) = wait_with(WaitPolicy::new().spins(0).yields(0), Some(until), all_there);
    }

    /// Why this process is a member no more; `None` while it is one. Its calls are refused, and it can join once more when this is dropped.
    pub fn lost(&self) -> Option<Lost> {
        self.shared.lost()
    }

    /// The node that this process is of.
    pub fn node(&self) -> NodeId {
        self.shared.node
    }

    /// The slot of the memory that it has.
    pub fn slot(&self) -> usize {
        self.shared.slot
    }

    /// The number by which others find this member.
    pub fn number(&self) -> MemberNumber {
        self.shared.number
    }

    /// Makes a call, and waits until it is done. To map parts of segments there are [`BarMember::map_local`] and
    /// [`BarMember::map_remote`], to hold what several have [`BarMember::join_group`], [`BarMember::share`] and [`BarMember::attach`]. Empty segments
    /// are not built: who makes one is refused ([`Refusal::NotSupported`]).
    ///
    /// # Errors
    /// What is wrong, by the codes of SISCI.
    pub fn call(&self, call: Call) -> Result<Value, Refusal> {
        match call {
            Call::MapLocal(..) | Call::UnmapLocal(_) | Call::MapRemote(..) | Call::UnmapRemote(_) => {
                Err(Refusal::IllegalOperation)
            }
            Call::CreateSegment { is_empty: true, .. } => Err(Refusal::NotSupported),
            Call::CreateSegment { is_private: true, is_auto: false, bytes, .. } if bytes != 0 => {
                private::create(&self.shared, call, bytes)
            }
            Call::Register { .. } | Call::FindHolder { .. } | Call::Hold { .. } | Call::Share { .. } => {
                Err(Refusal::NotSupported)
            }
            // An interrupt is more than its tables.
            Call::CreateInterrupt { .. }
            | Call::CreateSharedInterrupt { .. }
            | Call::CreateGroupInterrupt { .. }
            | Call::ConnectSharedInterrupt { .. }
            | Call::RemoveInterrupt(_)
            | Call::ConnectInterrupt { .. }
            | Call::DisconnectInterrupt(_) => Err(Refusal::IllegalOperation),
            call => {
                // What is kept mapped for the next job of DMA.
                match call {
                    Call::RemoveSegment { local, .. } => self.engine.forget(Of::Local(local)),
                    Call::Disconnect(remote) => self.engine.forget(Of::Remote(remote)),
                    _ => {}
                }
                let done = self.shared.call(call)?;
                if let Call::RemoveSegment { local, .. } = call {
                    self.shared.removed(local);
                }
                Ok(done)
            }
        }
    }

    /// Whether a member of a node lives and the links of both sides are up.
    ///
    /// # Errors
    /// Why not.
    pub fn probe(&self, node: NodeId, adapter: AdapterNumber) -> Result<(), Refusal> {
        self.shared.check()?;
        self.shared.enter(|state, _| {
            state.member.probe(node, adapter)?;
            let lives = state.peers.iter().any(|peer| peer.is_of(node));
            if lives { Ok(()) } else { Err(Refusal::NodeNotResponding) }
        })
    }

    /// Whether the link of an adapter of this node is up. It is down once memory is gone, or another member has the slot.
    ///
    /// # Errors
    /// There is no such adapter.
    pub fn is_link_up(&self, adapter: AdapterNumber) -> Result<bool, Refusal> {
        self.shared.check_process()?;
        self.shared.lock().member.is_link_up(adapter)
    }

    /// Maps a part of a segment of this member, which is not removed as long as it is mapped.
    ///
    /// # Errors
    /// The segment has no such part.
    pub fn map_local(&self, local: LocalSegment, part: Part) -> Result<BarMap, NotMapped> {
        self.map_local_with(local, part, BarMapOptions::default())
    }

    /// Maps as [`BarMember::map_local`] does, perhaps for loads alone, perhaps at an address.
    ///
    /// # Errors
    /// As [`BarMember::map_local`]; something else is at the address.
    pub fn map_local_with(
        &self,
        local: LocalSegment,
        part: Part,
        options: BarMapOptions,
    ) -> Result<BarMap, NotMapped> {
        BarMap::new(&self.shared, Of::Local(local), part, options)
    }

    /// Maps a part of a segment that is connected to, and is not disconnected from as long as it is mapped.
    ///
    /// # Errors
    /// As [`BarMember::map_local`]; there is no connection any more; the segment's member says that it lies where it cannot.
    pub fn map_remote(&self, remote: RemoteSegment, part: Part) -> Result<BarMap, NotMapped> {
        self.map_remote_with(remote, part, BarMapOptions::default())
    }

    /// Maps as [`BarMember::map_remote`] does, perhaps for loads alone, perhaps at an address.
    ///
    /// # Errors
    /// As [`BarMember::map_remote`]; something else is at the address.
    pub fn map_remote_with(
        &self,
        remote: RemoteSegment,
        part: Part,
        options: BarMapOptions,
    ) -> Result<BarMap, NotMapped> {
        BarMap::new(&self.shared, Of::Remote(remote), part, options)
    }

    /// Makes a DMA queue, which gathers so many entries at most for a job.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: none, or more than [`MAX_DMA_ENTRIES`](beeline_fabric::MAX_DMA_ENTRIES).
    pub fn dma_queue(&self, max_entries: usize) -> Result<DmaQueue, Refusal> {
        self.shared.check()?;
        DmaQueue::new(&self.engine, max_entries)
    }

    /// An end of a message queue, which is to be opened ([`MessageQueue::open`]).
    ///
    /// # Errors
    /// [`MessageQueue::new`] refuses the configuration.
    pub fn message_queue(&self, config: QueueConfig) -> Result<MessageQueue, Refusal> {
        MessageQueue::new(Arc::<Shared>::clone(&self.shared), config)
    }

    /// The means to start and check sequences of a connection as often as a program likes.
    ///
    /// # Errors
    /// There is no such connection, or it is lost.
    pub fn sequence(&self, remote: RemoteSegment) -> Result<BarSequence, Refusal> {
        BarSequence::new(&self.shared, remote)
    }
}

impl Drop for BarMember {
    fn drop(&mut self) {
        self.engine.end();
        self.shared.leave();
    }
}

#[cfg(test)]
mod tests {
    use beeline_fabric::SegmentId;

    use super::*;
    use crate::test_members::{member, memory};

    /// The only member of a memory, with a segment that it has mapped.
    fn member_with_a_map(memory: &BarMemory) -> (BarMember, BarMap) {
        let member = member(memory, None);
        let (id, is_auto, is_private, is_empty, has_callback) = (SegmentId(7), false, false, false, false);
        let create = Call::CreateSegment { id, is_auto, bytes: 64, is_private, is_empty, has_callback };
        let Ok(Value::Local(local, _)) = member.call(create) else { panic!("no segment") };
        let map = member.map_local(local, Part { offset: 0, bytes: 64 }).unwrap();
        (member, map)
    }

    #[test]
    fn thread_of_a_member_is_gone_when_the_member_and_its_last_map_are_dropped() {
        for is_map_last in [true, false].repeat(20) {
            let (_dir, memory) = memory(4 << 20);
            let (member, map) = member_with_a_map(&memory);
            let shared = Arc::downgrade(&member.shared);
            if is_map_last {
                drop(member);
                assert_ne!(shared.upgrade().unwrap().space.number(0).load(), 0, "what is mapped has a slot");
                drop(map);
            } else {
                drop(map);
                drop(member);
            }
            assert_eq!(shared.strong_count(), 0, "the thread has it, too");
        }
    }

    #[test]
    fn thread_of_a_member_that_is_one_no_more_is_gone_when_the_member_is_dropped() {
        let (_dir, memory) = memory(4 << 20);
        let (member, map) = member_with_a_map(&memory);
        drop(map);
        member.shared.space.number(0).store(9);
        while member.lost().is_none() {
            std::thread::yield_now();
        }
        let shared = Arc::downgrade(&member.shared);
        drop(member);
        assert_eq!(shared.strong_count(), 0, "the thread has it, too");
    }
}
