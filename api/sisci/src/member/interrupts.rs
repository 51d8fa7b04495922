//! Interrupts of this member, and triggers of those of others, of either kind of member.

use std::time::Duration;

use beeline_fabric::{AdapterNumber, InterruptNumber, NodeId, Refusal};
use beeline_fabric_bar::{
    self as bar, BarDataInterrupt, BarDataTrigger, BarInterrupt, BarInterruptOptions, BarTrigger,
};
use beeline_fabric_process::{self as process, InterruptOptions, NotTaken};

use super::Member;

pub(crate) enum Interrupt {
    Process(process::Interrupt),
    Bar(BarInterrupt),
}

pub(crate) enum DataInterrupt {
    Process(process::DataInterrupt),
    Bar(BarDataInterrupt),
}

pub(crate) enum Trigger {
    Process(process::Trigger),
    Bar(BarTrigger),
}

pub(crate) enum DataTrigger {
    Process(process::DataTrigger),
    Bar(BarDataTrigger),
}

/// Until it is dropped, whoever waits for several things is woken when an interrupt comes. Members of one memory poll, and need none.
pub(crate) enum Watch {
    Process { _kept: process::Watch },
    Bar,
}

/// How a program wants an interrupt.
#[derive(Clone, Copy, Default)]
pub(crate) struct Options {
    pub(crate) number: Option<InterruptNumber>,
    pub(crate) is_shared: bool,
    pub(crate) is_group: bool,
    pub(crate) is_counting: bool,
}

impl Options {
    fn of_process(self) -> InterruptOptions {
        let Options { number, is_shared, is_group, is_counting } = self;
        InterruptOptions { number, is_shared, is_group, is_counting, ..InterruptOptions::default() }
    }

    fn of_bar(self) -> BarInterruptOptions {
        let Options { number, is_shared, is_group, is_counting } = self;
        BarInterruptOptions { number, is_shared, is_group, is_counting, ..BarInterruptOptions::default() }
    }
}

impl Member {
    pub(crate) fn create_interrupt(&self, options: Options) -> Result<Interrupt, Refusal> {
        match self {
            Member::Process(member) => member.create_interrupt(options.of_process()).map(Interrupt::Process),
            Member::Bar(member) => member.create_interrupt(options.of_bar()).map(Interrupt::Bar),
        }
    }

    pub(crate) fn create_data_interrupt(&self, options: Options) -> Result<DataInterrupt, Refusal> {
        match self {
            Member::Process(member) => {
                member.create_data_interrupt(options.of_process()).map(DataInterrupt::Process)
            }
            Member::Bar(member) => member.create_data_interrupt(options.of_bar()).map(DataInterrupt::Bar),
        }
    }

    pub(crate) fn connect_interrupt(
        &self,
        node: NodeId,
        number: InterruptNumber,
        adapter: AdapterNumber,
        timeout: Option<Duration>,
    ) -> Result<Trigger, Refusal> {
        match self {
            Member::Process(member) => {
                member.connect_interrupt(node, number, adapter, timeout).map(Trigger::Process)
            }
            Member::Bar(member) => member.connect_interrupt(node, number, adapter, timeout).map(Trigger::Bar),
        }
    }

    pub(crate) fn connect_data_interrupt(
        &self,
        node: NodeId,
        number: InterruptNumber,
        adapter: AdapterNumber,
        timeout: Option<Duration>,
    ) -> Result<DataTrigger, Refusal> {
        match self {
            Member::Process(member) => {
                member.connect_data_interrupt(node, number, adapter, timeout).map(DataTrigger::Process)
            }
            Member::Bar(member) => {
                member.connect_data_interrupt(node, number, adapter, timeout).map(DataTrigger::Bar)
            }
        }
    }
}

impl Interrupt {
    pub(crate) fn number(&self) -> InterruptNumber {
        either!(Interrupt, self, it => it.number())
    }

    pub(crate) fn wait(&self, timeout: Option<Duration>) -> Result<(), Refusal> {
        either!(Interrupt, self, it => it.wait(timeout))
    }

    pub(crate) fn try_take(&self) -> Result<bool, Refusal> {
        either!(Interrupt, self, it => it.try_take())
    }

    pub(crate) fn remove(&self) -> Result<(), Refusal> {
        either!(Interrupt, self, it => it.remove())
    }

    pub(crate) fn watch(&self) -> Watch {
        match self {
            Interrupt::Process(interrupt) => Watch::Process { _kept: interrupt.watch() },
            Interrupt::Bar(_) => Watch::Bar,
        }
    }
}

impl DataInterrupt {
    pub(crate) fn number(&self) -> InterruptNumber {
        either!(DataInterrupt, self, it => it.number())
    }

    pub(crate) fn wait(&self, buffer: &mut [u8], timeout: Option<Duration>) -> Result<usize, NotTaken> {
        match self {
            DataInterrupt::Process(interrupt) => interrupt.wait(buffer, timeout),
            DataInterrupt::Bar(interrupt) => {
                interrupt.wait(buffer, timeout).map_err(|not_taken| match not_taken {
                    bar::NotTaken::Overflow { bytes } => NotTaken::Overflow { bytes },
                    bar::NotTaken::Refused(refusal) => refusal.into(),
                })
            }
        }
    }

    pub(crate) fn has_message(&self) -> Result<bool, Refusal> {
        either!(DataInterrupt, self, it => it.has_message())
    }

    pub(crate) fn remove(&self) -> Result<(), Refusal> {
        either!(DataInterrupt, self, it => it.remove())
    }

    pub(crate) fn watch(&self) -> Watch {
        match self {
            DataInterrupt::Process(interrupt) => Watch::Process { _kept: interrupt.watch() },
            DataInterrupt::Bar(_) => Watch::Bar,
        }
    }
}

impl Trigger {
    pub(crate) fn trigger(&self) -> Result<(), Refusal> {
        either!(Trigger, self, it => it.trigger())
    }
}

impl DataTrigger {
    pub(crate) fn trigger(&self, message: &[u8]) -> Result<(), Refusal> {
        either!(DataTrigger, self, it => it.trigger(message))
    }
}
