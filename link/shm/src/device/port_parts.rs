//! What the slow path of a port hands to its loop: the parts that it is made of, and later what was opened or closed.

use std::sync::mpsc::Receiver;

use beeline_domain::Waker;
use beeline_mmio::{DmaRegion, LoadWindow, Region, Word};
use beeline_spec::formats::port_host_memory as host;

use super::account::Charge;
use super::device_layout::DeviceLayout;
use super::port_config::PortConfig;
use super::registers::RegisterServer;
use crate::event::EventReceiver;

/// What [`super::DevicePort`] is made of besides the device.
pub(crate) struct PortParts {
    pub(crate) layout: DeviceLayout,
    pub(crate) config: PortConfig,
    pub(crate) registers: RegisterServer,
    pub(crate) words: HostWords,
    pub(crate) waker: Option<Waker>,
    pub(crate) event: EventReceiver,
    pub(crate) updates: Receiver<Update>,
    pub(crate) loop_back: bool,
}

/// Something that was opened or closed, on its way to the loop.
#[derive(Debug)]
pub(crate) enum Update {
    /// A fresh window of a queue.
    Window { queue: u32, port: LoadWindow, charge: Charge, blank: u64 },
    /// A doorbell to be looked at.
    Doorbell { offset_bytes: u32, word: Word },
    /// A region of host memory.
    Region { number: u32, memory: DmaRegion, charge: Charge },
    /// A region that is gone.
    Release { number: u32 },
}

/// The words of the host's memory that a NIC process writes, besides the answers to reads.
#[derive(Debug)]
pub(crate) struct HostWords {
    /// 1 while the NIC process sleeps.
    pub(crate) nic_waiting: beeline_mmio::Flag,
    /// Futex word: 1 while the host sleeps.
    pub(crate) host_waiting: beeline_mmio::Flag,
    /// Why the port was closed.
    pub(crate) closed: Word,
    /// Count of interrupts.
    pub(crate) interrupts: Word,
}

impl HostWords {
    pub(crate) fn new(region: &Region) -> Self {
        HostWords {
            nic_waiting: region.flag(host::NIC_WAITING_OFFSET),
            host_waiting: region.flag(host::HOST_WAITING_OFFSET),
            closed: region.word(host::CLOSED_OFFSET),
            interrupts: region.word(host::INTERRUPTS_OFFSET),
        }
    }
}
