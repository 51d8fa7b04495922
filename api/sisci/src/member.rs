//! This process as a member of a fabric of either kind: one whose members have a kernel in common (`host/fabric/process`), or one whose
//! members share a file or a BAR and nothing else (`host/fabric/bar`).
//!
//! This is the one place of this library that knows both. What a kind does not have is refused with [`Refusal::NotSupported`].

/// Does the same with what is of a member of either kind.
macro_rules! either {
    ($kind:ident, $of:expr, $it:ident => $do:expr) => {
        match $of {
            $kind::Process($it) => $do,
            $kind::Bar($it) => $do,
        }
    };
}

mod interrupts;
mod maps;

use std::io::ErrorKind;

use beeline_fabric::{
    AdapterNumber, Call, LocalEvent, LocalSegment, NodeId, Part, Refusal, RemoteEvent, RemoteSegment,
    SegmentId, Value,
};
use beeline_fabric_bar::{BarConfig, BarMember, BarMemory, Lost, OpenError};
use beeline_fabric_process::{
    Configuration, DmaQueue, FabricMember, MapOptions, MessageQueue, NotCreated, NotMapped, NotRegistered,
    OneMemory, QueueConfig,
};
use beeline_ffi::{Failure, Outcome, set_errno};
use beeline_mmio::{FaultGuard, OnLoss, RegisterError, RegisteredMemory};

pub(crate) use self::interrupts::{DataInterrupt, DataTrigger, Interrupt, Options, Trigger, Watch};
pub(crate) use self::maps::{Map, Sequence};
use crate::edge::failure;
use crate::errors;

/// A member of a fabric.
pub(crate) enum Member {
    Process(FabricMember),
    Bar(BarMember),
}

impl Member {
    pub(crate) fn open(config: Configuration) -> Outcome<Self> {
        let member = match &config.one_memory {
            Some(memory) => Member::Bar(open_bar(memory, &config)?),
            None => {
                let opened = FabricMember::open_with(config.fabric, config.users);
                let member = opened.map_err(|error| not_joined(&error))?;
                member.set_terms(config.terms);
                member.set_exports(config.exports);
                Member::Process(member)
            }
        };
        if config.polls {
            either!(Member, &member, member => member.set_polling(true));
        }
        Ok(member)
    }

    /// Fails once the process is a member no more: what is made now could reach nobody.
    pub(crate) fn check(&self) -> Outcome<()> {
        match self {
            Member::Process(_) => Ok(()),
            Member::Bar(member) => member.lost().map_or(Ok(()), |lost| Err(no_member(&lost))),
        }
    }

    pub(crate) fn node(&self) -> NodeId {
        either!(Member, self, member => member.node())
    }

    pub(crate) fn call(&self, call: Call) -> Result<Value, Refusal> {
        either!(Member, self, member => member.call(call))
    }

    pub(crate) fn create_segment(&self, call: Call) -> Result<Value, NotCreated> {
        match self {
            Member::Process(member) => member.create_segment(call),
            Member::Bar(member) => Ok(member.call(call)?),
        }
    }

    pub(crate) fn join_group(&self, id: SegmentId, bytes: u64) -> Result<LocalSegment, Refusal> {
        either!(Member, self, member => member.join_group(id, bytes).map(|held| held.local))
    }

    /// A segment that another process of the node has shared, and its size.
    pub(crate) fn attach(&self, id: SegmentId) -> Result<(LocalSegment, u64), Refusal> {
        either!(Member, self, member => member.attach(id).map(|held| (held.local, held.bytes)))
    }

    pub(crate) fn share(&self, local: LocalSegment) -> Result<(), Refusal> {
        either!(Member, self, member => member.share(local))
    }

    pub(crate) fn register_device(
        &self,
        local: LocalSegment,
        bus_address: u64,
        bytes: u64,
    ) -> Result<(), NotRegistered> {
        self.process()?.register_device(local, bus_address, bytes)
    }

    pub(crate) fn register_program(
        &self,
        local: LocalSegment,
        bytes: u64,
        make: impl FnOnce() -> Result<RegisteredMemory, RegisterError>,
    ) -> Result<(), NotRegistered> {
        self.process()?.register_program(local, bytes, make)
    }

    /// Segments that lie in the one memory have addresses on no bus that a program may know.
    pub(crate) fn bus_address_of_local(&self, local: LocalSegment) -> Option<u64> {
        self.process().ok()?.bus_address_of_local(local)
    }

    pub(crate) fn bus_address_of_remote(&self, remote: RemoteSegment) -> Result<Option<u64>, Refusal> {
        match self {
            Member::Process(member) => member.bus_address_of_remote(remote),
            Member::Bar(_) => Ok(None),
        }
    }

    pub(crate) fn dma_queue(&self, max_entries: usize) -> Result<DmaQueue, Refusal> {
        either!(Member, self, member => member.dma_queue(max_entries))
    }

    pub(crate) fn message_queue(&self, config: QueueConfig) -> Result<MessageQueue, Refusal> {
        either!(Member, self, member => member.message_queue(config))
    }

    /// The member, if it is of the kind that has what is not built of the other.
    fn process(&self) -> Result<&FabricMember, Refusal> {
        match self {
            Member::Process(member) => Ok(member),
            Member::Bar(_) => Err(Refusal::NotSupported),
        }
    }

    pub(crate) fn probe(&self, node: NodeId, adapter: AdapterNumber) -> Result<(), Refusal> {
        either!(Member, self, member => member.probe(node, adapter))
    }

    pub(crate) fn is_link_up(&self, adapter: AdapterNumber) -> Result<bool, Refusal> {
        either!(Member, self, member => member.is_link_up(adapter))
    }

    pub(crate) fn map_local_with(
        &self,
        local: LocalSegment,
        part: Part,
        options: MapOptions,
    ) -> Result<Map, NotMapped> {
        match self {
            Member::Process(member) => Ok(Map::Process(member.map_local_with(local, part, options)?)),
            Member::Bar(member) => {
                Map::of_bar(|options| member.map_local_with(local, part, options), options)
            }
        }
    }

    pub(crate) fn map_remote_with(
        &self,
        remote: RemoteSegment,
        part: Part,
        options: MapOptions,
    ) -> Result<Map, NotMapped> {
        match self {
            Member::Process(member) => Ok(Map::Process(member.map_remote_with(remote, part, options)?)),
            Member::Bar(member) => {
                Map::of_bar(|options| member.map_remote_with(remote, part, options), options)
            }
        }
    }

    pub(crate) fn sequence(&self, remote: RemoteSegment) -> Result<Sequence, Refusal> {
        match self {
            Member::Process(member) => Ok(Sequence::Process(member.sequence(remote)?)),
            Member::Bar(member) => Ok(Sequence::Bar(member.sequence(remote)?)),
        }
    }

    pub(crate) fn tell_segment(&self, local: LocalSegment) {
        either!(Member, self, member => member.tell_segment(local));
    }

    pub(crate) fn tell_connection(&self, remote: RemoteSegment) {
        either!(Member, self, member => member.tell_connection(remote));
    }

    pub(crate) fn next_event_of_segment(&self, local: LocalSegment) -> Option<LocalEvent> {
        either!(Member, self, member => member.next_event_of_segment(local))
    }

    pub(crate) fn next_event_of_connection(&self, remote: RemoteSegment) -> Option<RemoteEvent> {
        either!(Member, self, member => member.next_event_of_connection(remote))
    }

    pub(crate) fn cancel_attempts(&self) {
        either!(Member, self, member => member.cancel_attempts());
    }

    /// Waits until `look` finds something. It looks whenever something may have happened that has a callback, and after each
    /// [`Member::look_again`].
    pub(crate) fn wait_until(&self, mut look: impl FnMut() -> bool) {
        let found = || look().then_some(());
        let _refused = either!(Member, self, member => member.wait_until(None, found));
    }

    pub(crate) fn look_again(&self) {
        match self {
            Member::Process(member) => member.look_again(),
            // Who waits there polls.
            Member::Bar(_) => {}
        }
    }
}

/// Joins those who share a file or a BAR, and makes the file if it is not there and the configuration says of what size it is.
fn open_bar(memory: &OneMemory, config: &Configuration) -> Outcome<BarMember> {
    let OneMemory { path, members, bytes, slot } = memory;
    let [adapter] = config.fabric.adapters[..] else {
        let count = config.fabric.adapters.len();
        let why = format!("the node has {count} adapters, and {} is one", path.display());
        return Err(failure(errors::SYSTEM, why));
    };
    if let Some(bytes) = bytes {
        BarMemory::make_file(path, *bytes, *members).map_err(|error| not_of_memory(&error))?;
    }
    let guard = FaultGuard::install().map_err(|error| not_joined(&error))?;
    let fabric = &config.fabric;
    let config = BarConfig {
        memory: BarMemory::of_path(path),
        members: *members,
        slot: *slot,
        node: fabric.node,
        adapter,
        nodes: fabric.nodes.clone(),
        on_loss: OnLoss::Guarded(guard),
    };
    BarMember::open(config).map_err(|error| match (&error, bytes) {
        (OpenError::File { error: cause, .. }, None) if cause.kind() == ErrorKind::NotFound => {
            let failed = not_of_memory(&error);
            let why =
                format!("{}; with `bytes` in the table [fabric] of beeline.toml it is made", failed.why);
            failure(errors::SYSTEM, why)
        }
        _ => not_of_memory(&error),
    })
}

/// Why this process is a member no more, by the code that its other calls have.
#[cold]
fn no_member(lost: &Lost) -> Failure {
    let code = match lost {
        Lost::Displaced | Lost::Remade => errors::SYSTEM,
        Lost::NoMemory | Lost::NoFile { .. } => errors::NO_LINK_ACCESS,
    };
    failure(
        code,
        format!("this process is a member of the fabric no more: {lost}; call SCITerminate, and begin anew"),
    )
}

/// Why this process is no member of those who share a memory. `errno` is the number that the kernel gave, if it was the kernel.
#[cold]
fn not_of_memory(error: &OpenError) -> Failure {
    let failed = not_joined(error);
    match error {
        OpenError::Full { .. } => failure(errors::MAX_ENTRIES, failed.why.as_str()),
        OpenError::File { error, .. } | OpenError::NotMade { error, .. } | OpenError::Thread(error) => {
            set_errno(error.raw_os_error().unwrap_or(0));
            failed
        }
        _ => failed,
    }
}

/// Programs look at `errno` for what `SCI_ERR_SYSTEM` is: 0 if no number says it.
#[cold]
fn not_joined(error: &dyn std::error::Error) -> Failure {
    set_errno(0);
    failure(errors::SYSTEM, format!("this process does not join the fabric: {error}"))
}
