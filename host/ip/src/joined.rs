//! This process as a member of a fabric of either kind: of processes of one kernel, or of those that share a file or a BAR.

use std::time::Duration;

use beeline_contract_memory::WaitPolicy;
use beeline_fabric::{AdapterNumber, Call, InterruptNumber, NodeId, Refusal};
use beeline_fabric_bar::{
    BarConfig, BarInterrupt, BarInterruptOptions, BarMember, BarMemory, BarTrigger, Lost,
    OpenError as BarError,
};
use beeline_fabric_process::{
    Configuration, FabricMember, Interrupt, InterruptOptions, MessageQueue, OpenError, QueueConfig, Trigger,
};
use beeline_mmio::{FaultGuard, GuardError, OnLoss};

/// A member of a fabric.
#[derive(Debug)]
pub struct Joined {
    member: Member,
    /// By which it is connected to others: any, where there are several.
    adapter: AdapterNumber,
}

#[derive(Debug)]
enum Member {
    Process(FabricMember),
    Bar(BarMember),
}

/// Why this process is no member.
#[derive(Debug, thiserror::Error)]
pub enum NotJoined {
    #[error(transparent)]
    Domain(#[from] OpenError),
    #[error(transparent)]
    Memory(#[from] BarError),
    #[error("{path}: {error}; with `bytes` in the table [fabric] of beeline.toml, or --memory-bytes, it is made", path = .path.display())]
    NoMemory { path: std::path::PathBuf, error: Box<BarError> },
    #[error(transparent)]
    Guard(#[from] GuardError),
    #[error("the node has {count} adapters, and {path} is one", path = .path.display())]
    Adapters { count: usize, path: std::path::PathBuf },
}

#[derive(Debug)]
pub(crate) enum OwnInterrupt {
    Process(Interrupt),
    Bar(BarInterrupt),
}

#[derive(Debug)]
pub(crate) enum OtherInterrupt {
    Process(Trigger),
    Bar(BarTrigger),
}

impl Joined {
    /// Joins as a configuration says, as programs of SISCI do.
    ///
    /// # Errors
    /// See [`NotJoined`].
    pub fn open(config: Configuration) -> Result<Self, NotJoined> {
        let Some(memory) = &config.one_memory else {
            let polls = config.polls;
            let member = FabricMember::open_with(config.fabric, config.users)?;
            member.set_terms(config.terms);
            member.set_exports(config.exports);
            member.set_polling(polls);
            return Ok(Joined { member: Member::Process(member), adapter: AdapterNumber::ANY });
        };
        let path = memory.path.clone();
        let [adapter] = config.fabric.adapters[..] else {
            return Err(NotJoined::Adapters { count: config.fabric.adapters.len(), path });
        };
        if let Some(bytes) = memory.bytes {
            BarMemory::make_file(&path, bytes, memory.members)?;
        }
        let member = BarMember::open(BarConfig {
            memory: BarMemory::of_path(&path),
            members: memory.members,
            slot: memory.slot,
            node: config.fabric.node,
            adapter,
            nodes: config.fabric.nodes,
            on_loss: OnLoss::Guarded(FaultGuard::install()?),
        });
        let member = member.map_err(|error| match (&error, memory.bytes) {
            (BarError::File { error: cause, .. }, None) if cause.kind() == std::io::ErrorKind::NotFound => {
                NotJoined::NoMemory { path, error: Box::new(error) }
            }
            _ => error.into(),
        })?;
        member.set_polling(config.polls);
        // A node may be missed any number of times, and each time its queue is made anew. What comes by a queue is believed of nobody.
        member.reuse_memory_of_silent();
        Ok(Joined { member: Member::Bar(member), adapter })
    }

    /// The node that this process is of.
    pub fn node(&self) -> NodeId {
        match &self.member {
            Member::Process(member) => member.node(),
            Member::Bar(member) => member.node(),
        }
    }

    /// Why this process is a member no more; `None` while it is one.
    pub(crate) fn lost(&self) -> Option<Lost> {
        match &self.member {
            Member::Process(_) => None,
            Member::Bar(member) => member.lost(),
        }
    }

    /// Takes the link of an adapter of this node up or down, as this member sees it.
    pub(crate) fn set_link(&self, adapter: AdapterNumber, is_up: bool) -> Result<(), Refusal> {
        let call = Call::SetLink(adapter, is_up);
        match &self.member {
            Member::Process(member) => member.call(call).map(drop),
            Member::Bar(member) => member.call(call).map(drop),
        }
    }

    pub(crate) fn adapter(&self) -> AdapterNumber {
        self.adapter
    }

    pub(crate) fn message_queue(&self, config: QueueConfig) -> Result<MessageQueue, Refusal> {
        match &self.member {
            Member::Process(member) => member.message_queue(config),
            Member::Bar(member) => member.message_queue(config),
        }
    }

    pub(crate) fn interrupt(
        &self,
        number: InterruptNumber,
        wait: WaitPolicy,
    ) -> Result<OwnInterrupt, Refusal> {
        let number = Some(number);
        Ok(match &self.member {
            Member::Process(member) => OwnInterrupt::Process(member.create_interrupt(InterruptOptions {
                number,
                wait,
                ..Default::default()
            })?),
            Member::Bar(member) => OwnInterrupt::Bar(member.create_interrupt(BarInterruptOptions {
                number,
                wait,
                ..Default::default()
            })?),
        })
    }

    pub(crate) fn connect(
        &self,
        node: NodeId,
        number: InterruptNumber,
        timeout: Duration,
    ) -> Result<OtherInterrupt, Refusal> {
        let timeout = Some(timeout);
        Ok(match &self.member {
            Member::Process(member) => {
                OtherInterrupt::Process(member.connect_interrupt(node, number, self.adapter, timeout)?)
            }
            Member::Bar(member) => {
                OtherInterrupt::Bar(member.connect_interrupt(node, number, self.adapter, timeout)?)
            }
        })
    }
}

impl OwnInterrupt {
    pub(crate) fn wait(&self, timeout: Duration) -> Result<(), Refusal> {
        match self {
            OwnInterrupt::Process(interrupt) => interrupt.wait(Some(timeout)),
            OwnInterrupt::Bar(interrupt) => interrupt.wait(Some(timeout)),
        }
    }

    /// Nobody wakes this node by it any more, and nobody waits for it.
    pub(crate) fn remove(&self) -> Result<(), Refusal> {
        match self {
            OwnInterrupt::Process(interrupt) => interrupt.remove(),
            OwnInterrupt::Bar(interrupt) => interrupt.remove(),
        }
    }
}

impl OtherInterrupt {
    pub(crate) fn trigger(&self) -> Result<(), Refusal> {
        match self {
            OtherInterrupt::Process(trigger) => trigger.trigger(),
            OtherInterrupt::Bar(trigger) => trigger.trigger(),
        }
    }
}
