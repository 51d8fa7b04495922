//! Interrupts of a fabric as what tells the other process: two members, each with an interrupt that the other one triggers.

use std::time::Duration;

use beeline_bench_echo::Failure;
use beeline_contract_memory::WaitPolicy;
use beeline_domain::DomainConfig;
use beeline_fabric::{InterruptNumber, NodeId, Refusal};
use beeline_fabric_process::{
    DataInterrupt, DataTrigger, FabricMember, Interrupt, InterruptOptions, NotTaken, Trigger,
};

use super::end::{End, TIMEOUT};
use super::role::Waiting;
use crate::fabric::{self, OWNER, USER};

/// The number of each side's interrupt.
const NUMBER: InterruptNumber = InterruptNumber(5);

/// A side whose interrupt is there, before the other one's is connected to.
pub(super) struct Meet {
    // Before the member that they are of.
    own: Own,
    member: FabricMember,
    other: NodeId,
}

enum Own {
    Plain(Interrupt),
    Data(DataInterrupt),
}

impl Meet {
    /// The side that answers, or the one that asks.
    pub(super) fn new(
        domain: DomainConfig,
        is_asking: bool,
        has_data: bool,
        waiting: Waiting,
    ) -> Result<Self, Failure> {
        let (node, other) = if is_asking { (USER, OWNER) } else { (OWNER, USER) };
        let member = fabric::member(domain, node)?;
        let wait = match waiting {
            Waiting::Polled => WaitPolicy::SPIN,
            Waiting::Asleep | Waiting::Callback => WaitPolicy::new().spins(0).yields(0).sleep(Some(TIMEOUT)),
        };
        let options = InterruptOptions { number: Some(NUMBER), wait, ..InterruptOptions::default() };
        let own = if has_data {
            Own::Data(member.create_data_interrupt(options)?)
        } else {
            Own::Plain(member.create_interrupt(options)?)
        };
        Ok(Meet { own, member, other })
    }

    /// This side's end, once the other side is there too.
    pub(super) fn end(self) -> Result<Box<dyn End>, Failure> {
        let Meet { own, member, other } = self;
        let (adapter, timeout) = (fabric::adapter()?, Some(TIMEOUT));
        Ok(match own {
            Own::Plain(own) => {
                let trigger = member.connect_interrupt(other, NUMBER, adapter, timeout)?;
                Box::new(Plain { own, trigger, _member: member })
            }
            Own::Data(own) => {
                let trigger = member.connect_data_interrupt(other, NUMBER, adapter, timeout)?;
                Box::new(Data { own, trigger, _member: member })
            }
        })
    }
}

struct Plain {
    own: Interrupt,
    trigger: Trigger,
    _member: FabricMember,
}

struct Data {
    own: DataInterrupt,
    trigger: DataTrigger,
    _member: FabricMember,
}

/// Whether it was triggered; there is no room otherwise.
fn triggered(outcome: Result<(), Refusal>) -> Result<bool, Failure> {
    match outcome {
        Ok(()) => Ok(true),
        Err(Refusal::Nospc) => Ok(false),
        Err(refusal) => Err(refusal.into()),
    }
}

impl End for Plain {
    fn try_send(&mut self, _: &[u8]) -> Result<bool, Failure> {
        triggered(self.trigger.trigger())
    }

    fn try_take(&mut self, _: &mut [u8]) -> Result<u64, Failure> {
        match self.own.wait(Some(Duration::ZERO)) {
            Ok(()) => Ok(1),
            Err(Refusal::Timeout) => Ok(0),
            Err(refusal) => Err(refusal.into()),
        }
    }

    fn wait(&mut self, _: &mut [u8]) -> Option<Result<u64, Failure>> {
        Some(self.own.wait(Some(TIMEOUT)).map(|()| 1).map_err(Into::into))
    }
}

impl End for Data {
    fn try_send(&mut self, bytes: &[u8]) -> Result<bool, Failure> {
        triggered(self.trigger.trigger(bytes))
    }

    fn try_take(&mut self, bytes: &mut [u8]) -> Result<u64, Failure> {
        match self.own.wait(bytes, Some(Duration::ZERO)) {
            Ok(_) => Ok(1),
            Err(NotTaken::Refused(Refusal::Timeout)) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    fn wait(&mut self, bytes: &mut [u8]) -> Option<Result<u64, Failure>> {
        Some(self.own.wait(bytes, Some(TIMEOUT)).map(|_| 1).map_err(Into::into))
    }
}
