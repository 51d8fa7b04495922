//! The public API: a process joins, calls and leaves.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Instant;

use beeline_domain::{Domain, DomainConfig, Offer, OfferOptions};
use beeline_fabric::{
    Access, AdapterNumber, BANK_BYTES, Call, Config, LocalSegment, Member, MemberNumber, NodeId, Part,
    Refusal, RemoteSegment, Told, Value,
};
use beeline_fabric_transfer::{DmaQueue, Engine, MessageQueue, Of, QueueConfig};
use beeline_mmio::{
    MapError, MemoryOptions, Region, RegisterError, RegisteredMemory, SharedMemory, ThisProcess,
};

use crate::bell::Bells;
use crate::error::{NotCreated, NotMapped, NotRegistered, OpenError};
use crate::map::{Map, MapOptions};
use crate::names::{Names, offer_name};
use crate::packets::Who;
use crate::sequence::Sequence;
use crate::service::Welcoming;
use crate::several::Several;
use crate::shared::{LetsGo, Shared};
use crate::state::State;
use crate::terms::Terms;
use crate::users::{Exports, OtherUsers};
use crate::words::{BOARD, Published};

/// Members that may use this one's segments at the same time.
const MAX_CONSUMERS: usize = 512;

/// Where a process becomes a member.
#[derive(Clone, Debug)]
pub struct FabricConfig {
    /// The domain that all nodes of the fabric meet in.
    pub domain: DomainConfig,
    /// The node that the process is of.
    pub node: NodeId,
    /// The adapters of the node.
    pub adapters: Vec<AdapterNumber>,
    /// Whose segments can be connected to; this member's own may be among them.
    pub nodes: Vec<NodeId>,
}

/// This process as a member of a fabric. It leaves when this is dropped: its names are taken out, and others lose their connections.
///
/// All threads may use it. It is this process's alone: in a child of fork every call is refused ([`Refusal::System`]), and dropping
/// the child's copy does the parent no harm.
#[derive(Debug)]
pub struct FabricMember {
    pub(crate) shared: Arc<Shared>,
    engine: Arc<Engine>,
    /// Nothing once nobody is to come any more.
    offer: Option<Offer>,
}

impl FabricMember {
    /// Joins.
    ///
    /// # Errors
    /// The domain cannot be opened, or is none with a folder; there is no memory. A limit on the size of files (`ulimit -f`) is the size of
    /// all segments together, and forbids what others read of this member if it is below 8 MiB. Memory is sparse and takes what is used
    /// of it.
    pub fn open(config: FabricConfig) -> Result<Self, OpenError> {
        FabricMember::open_with(config, OtherUsers::default())
    }

    /// As [`FabricMember::open`], with other users. Their nodes are among [`FabricConfig::nodes`].
    ///
    /// # Errors
    /// As [`FabricMember::open`].
    pub fn open_with(config: FabricConfig, users: OtherUsers) -> Result<Self, OpenError> {
        let FabricConfig { domain, node, adapters, nodes } = config;
        let domain = Domain::open(&domain)?;
        let (number, member) = random(node)?;
        let (board, board_view, board_memory) = Published::new("beeline-board", BOARD)?;
        let (bells, bells_memory) = Bells::create()?;
        let bank = Arc::new(bank()?);
        let names = Names::join_with(domain.clone(), node, number, &users)?;
        let mut tables = Member::new(Config { node, adapters, nodes }, board);
        tables.limit_bank(bank.bytes() as u64);
        let shared = Arc::new_cyclic(|itself| Shared {
            itself: itself.clone(),
            domain: domain.clone(),
            own: Who { node, member },
            board: board_memory,
            board_view,
            bank,
            bells: bells.clone(),
            bells_memory,
            bell: Region::private(64).flag(0),
            several: Several::new(bells.watchers()),
            names,
            lets_go: LetsGo::default(),
            state: Mutex::new(State::new(tables, member, bells)),
            started: Instant::now(),
            process: ThisProcess::get(),
            has_left: AtomicBool::new(false),
            polls: AtomicBool::new(false),
            terms: RwLock::default(),
            exports: RwLock::default(),
        });
        let service = Box::new(Welcoming::new(&shared));
        let allowed_uids = users.admitted;
        let options =
            OfferOptions { max_connections: MAX_CONSUMERS, allowed_uids, ..OfferOptions::default() };
        let offer = domain.offer_with(&offer_name(node, member), service, options)?;
        let engine = Arc::new(Engine::new(Arc::<Shared>::clone(&shared)));
        let keeps_maps = Arc::downgrade(&engine);
        shared.lets_go.set(move |of| {
            if let Some(engine) = keeps_maps.upgrade() {
                engine.forget(of);
            }
        });
        Ok(FabricMember { shared, engine, offer: Some(offer) })
    }

    /// The node that this process is of.
    pub fn node(&self) -> NodeId {
        self.shared.own.node
    }

    /// The number by which others find this member.
    pub fn number(&self) -> MemberNumber {
        self.shared.own.member
    }

    /// Has whoever waits look over and over instead of sleeping, from the next wait on, or no more. Then nobody has to wake threads of this
    /// member: no trigger of its interrupts makes a system call, and nobody rings it when a segment is connected to. Each thread that waits
    /// takes a core.
    pub fn set_polling(&self, polls: bool) {
        self.shared.polls.store(polls, Ordering::Relaxed);
        if self.shared.check_process().is_ok() {
            self.shared.enter(|state, _| state.member.set_polling(polls));
            // Peers ring nobody any more who sleeps already.
            self.shared.wake_all();
        }
    }

    /// Makes a call, and waits until it is done. To map parts of segments there are [`FabricMember::map_local`] and
    /// [`FabricMember::map_remote`], for interrupts [`FabricMember::create_interrupt`] and its like; their calls are refused
    /// ([`Refusal::IllegalOperation`]). An empty segment gets its memory with [`FabricMember::register`].
    ///
    /// # Errors
    /// What is wrong, by the codes of SISCI.
    pub fn call(&self, call: Call) -> Result<Value, Refusal> {
        match call {
            Call::MapLocal(..) | Call::UnmapLocal(_) | Call::MapRemote(..) | Call::UnmapRemote(_) => {
                Err(Refusal::IllegalOperation)
            }
            // An interrupt is more than its tables, and goes in an order of its own.
            Call::CreateInterrupt { .. }
            | Call::CreateSharedInterrupt { .. }
            | Call::CreateGroupInterrupt { .. }
            | Call::ConnectSharedInterrupt { .. }
            | Call::RemoveInterrupt(_)
            | Call::ConnectInterrupt { .. }
            | Call::DisconnectInterrupt(_) => Err(Refusal::IllegalOperation),
            Call::Register { .. } | Call::FindHolder { .. } | Call::Hold { .. } | Call::Share { .. } => {
                Err(Refusal::IllegalOperation)
            }
            Call::CreateSegment { .. } => {
                self.create_segment(call).map_err(|not_created| match not_created {
                    NotCreated::Refused(refusal) => refusal,
                    NotCreated::Memory(_) => Refusal::Nospc,
                })
            }
            Call::RemoveSegment { local, is_forced } => self.shared.remove_for_program(local, is_forced),
            Call::Disconnect(remote) => self.shared.disconnect(remote),
            call @ Call::Connect { .. } => self.shared.connect(call),
            call => self.shared.call(call),
        }
    }

    /// Makes a segment, as [`FabricMember::call`] does, and says why there is no memory for it.
    ///
    /// # Errors
    /// As for [`FabricMember::call`]; a limit, or the huge pages that there are, do not allow what the member's [`Terms`] ask for.
    pub fn create_segment(&self, call: Call) -> Result<Value, NotCreated> {
        match call {
            Call::CreateSegment { is_private: true, .. } => self.shared.create(call),
            Call::CreateSegment { .. } => self.shared.create_exported(call),
            _ => Err(Refusal::IllegalOperation.into()),
        }
    }

    /// Says of what memory segments are made from here on, and where devices are found.
    pub fn set_terms(&self, terms: Terms) {
        self.shared.set_terms(terms);
    }

    /// Says who may connect to segments that are made from here on, as [`FabricMember::export`] says it of one segment. It does not
    /// apply to segments with several holders.
    pub fn set_exports(&self, exports: Exports) {
        self.shared.set_exports(exports);
    }

    /// Puts memory of a device behind an empty segment: so many bytes of a PCI function's BAR, from an address of the bus on, which sysfs
    /// lists. Members that connect to the segment are passed the BAR's files when they first map, and can store into all of the BAR. A
    /// device that is taken away ends whoever accesses such a map.
    ///
    /// # Errors
    /// As for [`FabricMember::register`]; no BAR has the bytes, or this process may not open it.
    pub fn register_device(
        &self,
        local: LocalSegment,
        bus_address: u64,
        bytes: u64,
    ) -> Result<(), NotRegistered> {
        self.shared.register_device(local, (bus_address, bytes))
    }

    /// Where a segment of this member begins on the bus: where another device reads and writes it. `None` for memory of the host.
    pub fn bus_address_of_local(&self, local: LocalSegment) -> Option<u64> {
        self.shared.bus_address_of_local(local)
    }

    /// As [`FabricMember::bus_address_of_local`], of a segment that is connected to.
    ///
    /// # Errors
    /// There is no connection any more, or its member does not answer.
    pub fn bus_address_of_remote(&self, remote: RemoteSegment) -> Result<Option<u64>, Refusal> {
        self.shared.bus_address_of_remote(remote)
    }

    /// Puts a memory behind an empty segment, from its first byte on. Members that connect to the segment are passed its descriptor when
    /// they first map, and can store into all of it.
    ///
    /// # Errors
    /// There is no such segment ([`Refusal::IllegalParameter`]), or one that has memory ([`Refusal::IllegalOperation`]).
    pub fn register(&self, local: LocalSegment, memory: Arc<SharedMemory>) -> Result<(), Refusal> {
        self.shared.register(local, memory)
    }

    /// Puts memory of the program behind an empty segment, so many bytes; it is made only if the segment takes it. What others can map
    /// of it is theirs to store into until the segment is removed, as the program does that or as this is dropped. Other memory is used
    /// where it is: others cannot connect to the segment, and a map of it is at the program's own addresses.
    ///
    /// # Errors
    /// As for [`FabricMember::register`], or there are no bytes ([`Refusal::SizeAlignment`]); what `make` fails with.
    pub fn register_program(
        &self,
        local: LocalSegment,
        bytes: u64,
        make: impl FnOnce() -> Result<RegisteredMemory, RegisterError>,
    ) -> Result<(), NotRegistered> {
        self.shared.register_program((local, bytes), make)
    }

    /// Says who may connect to a segment, instead of all processes of its user. Its memory is new and zero, is no part of what every member
    /// has mapped, and its descriptor is passed to who may connect and to nobody else. Who may not is refused
    /// ([`Refusal::ConnectionRefused`]). The users are those that the kernel says; of which node a process is it says itself, so among
    /// processes of one user a list of nodes keeps out who goes by its calls.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: there is no such segment. [`Refusal::IllegalOperation`]: it is private, held by several, mapped, or
    /// prepared. [`Refusal::Nospc`]: there is no memory for it.
    pub fn export(&self, local: LocalSegment, access: Access) -> Result<(), Refusal> {
        self.shared.export(local, access)
    }

    /// The next event of a segment or a connection that has a callback. Attempts to connect that are made asynchronously go on with it, too.
    /// Nothing is kept for who does not ask: events are what differs from what was told.
    pub fn next_event(&self) -> Option<Told> {
        self.shared.next_event()
    }

    /// Ends the calls of other threads that wait until they are connected to a segment or an interrupt: they are refused with
    /// [`Refusal::Cancelled`]. Calls that begin later wait as before, and asynchronous attempts go on.
    pub fn cancel_attempts(&self) {
        self.shared.cancel_attempts();
    }

    /// Maps a part of a segment of this member, which is not removed as long as it is mapped.
    ///
    /// # Errors
    /// The segment has no such part, or the kernel does not map it.
    pub fn map_local(&self, local: LocalSegment, part: Part) -> Result<Map, NotMapped> {
        self.map_local_with(local, part, MapOptions::default())
    }

    /// Maps as [`FabricMember::map_local`] does, perhaps for loads alone, perhaps at an address.
    ///
    /// # Errors
    /// As [`FabricMember::map_local`]; something else is at the address.
    pub fn map_local_with(
        &self,
        local: LocalSegment,
        part: Part,
        options: MapOptions,
    ) -> Result<Map, NotMapped> {
        Map::new(&self.shared, Of::Local(local), part, options)
    }

    /// Maps a part of a segment that is connected to, and is not disconnected from as long as it is mapped.
    ///
    /// # Errors
    /// As [`FabricMember::map_local`]; there is no connection any more.
    pub fn map_remote(&self, remote: RemoteSegment, part: Part) -> Result<Map, NotMapped> {
        self.map_remote_with(remote, part, MapOptions::default())
    }

    /// Maps as [`FabricMember::map_remote`] does, perhaps for loads alone, perhaps at an address.
    ///
    /// # Errors
    /// As [`FabricMember::map_remote`]; something else is at the address.
    pub fn map_remote_with(
        &self,
        remote: RemoteSegment,
        part: Part,
        options: MapOptions,
    ) -> Result<Map, NotMapped> {
        Map::new(&self.shared, Of::Remote(remote), part, options)
    }
}

impl FabricMember {
    /// Whether a member of a node lives and the links of both sides are up: a member that this one has a connection to says how its
    /// link is; of others it is not known and taken for up.
    ///
    /// # Errors
    /// Why not: no such adapter or node, a link that is down, or nobody of the node lives.
    pub fn probe(&self, node: NodeId, adapter: AdapterNumber) -> Result<(), Refusal> {
        self.shared.probe(node, adapter)
    }

    /// Whether the link of an adapter of this node is up, as this member sees it.
    ///
    /// # Errors
    /// There is no such adapter.
    pub fn is_link_up(&self, adapter: AdapterNumber) -> Result<bool, Refusal> {
        self.shared.is_link_up(adapter)
    }

    /// Makes a DMA queue, which gathers so many entries at most for a job.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: none, or more than [`MAX_DMA_ENTRIES`](beeline_fabric::MAX_DMA_ENTRIES).
    pub fn dma_queue(&self, max_entries: usize) -> Result<DmaQueue, Refusal> {
        self.shared.check_process()?;
        DmaQueue::new(&self.engine, max_entries)
    }

    /// An end of a message queue, which is to be opened ([`MessageQueue::open`]).
    ///
    /// # Errors
    /// [`MessageQueue::new`] refuses the configuration.
    pub fn message_queue(&self, config: QueueConfig) -> Result<MessageQueue, Refusal> {
        MessageQueue::new(Arc::<Shared>::clone(&self.shared), config)
    }

    /// The means to start and check sequences of a connection as often as a program likes. Of a connection that is lost, every one finds
    /// that it is.
    ///
    /// # Errors
    /// There is no such connection, or it is not made.
    pub fn sequence(&self, remote: RemoteSegment) -> Result<Sequence, Refusal> {
        self.shared.sequence(remote)
    }
}

impl Drop for FabricMember {
    fn drop(&mut self) {
        // First, so that nobody comes who would not be told that this member leaves.
        self.offer = None;
        self.engine.end();
        self.shared.leave();
    }
}

/// The memory of all segments: of the size that the fabric has in mind, or of the largest that this process may make.
fn bank() -> Result<SharedMemory, OpenError> {
    let create = |bytes| SharedMemory::create("beeline-bank", bytes, MemoryOptions::default());
    let bank = match create(BANK_BYTES as usize) {
        Err(MapError::FileSize { limit_bytes, .. }) => create(limit_bytes as usize),
        bank => bank,
    };
    bank.map_err(OpenError::Bank)
}

fn random(node: NodeId) -> Result<(NonZeroU64, MemberNumber), OpenError> {
    loop {
        let member = MemberNumber::new(node, getrandom::u64().map_err(OpenError::Random)?);
        if let Some(number) = NonZeroU64::new(member.0) {
            return Ok((number, member));
        }
    }
}
