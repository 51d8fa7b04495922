//! The link of a port, whoever is behind it: a process that shares memory, or who sees a PCI function.
//!
//! One branch for each call, which a port's turns make a few of and a frame none; what is behind it is compiled for its kind.

use std::os::fd::BorrowedFd;

use beeline_contract_device::{Accept, SimTime};
use beeline_domain::Disposer;
use beeline_link_shm::{DevicePort, PortCounters, PortError, Wire, Work};
use beeline_link_vfio_user::FunctionHost;
use beeline_nic_model::Nic;

/// A device and how it is reached.
pub(crate) enum PortLink {
    Process(DevicePort<Nic>),
    Function(DevicePort<Nic, FunctionHost>),
}

/// Calls the link of either kind.
macro_rules! of_either {
    ($link:ident in $this:expr => $call:expr) => {
        match $this {
            PortLink::Process($link) => $call,
            PortLink::Function($link) => $call,
        }
    };
}

impl PortLink {
    #[inline]
    pub(crate) fn poll(&mut self) -> Result<bool, PortError> {
        of_either!(link in self => link.poll())
    }

    #[inline]
    pub(crate) fn drive(&mut self, wire: &mut impl Wire) -> Work {
        of_either!(link in self => link.drive(wire))
    }

    #[inline]
    pub(crate) fn frame_arrived(&mut self, frame: &[u8]) -> Accept {
        of_either!(link in self => link.frame_arrived(frame))
    }

    pub(crate) fn set_wire_ready(&mut self, is_ready: bool) {
        of_either!(link in self => link.set_wire_ready(is_ready));
    }

    pub(crate) fn time_passed(&mut self, now: SimTime) {
        of_either!(link in self => link.time_passed(now));
    }

    pub(crate) fn wake_at(&self) -> Option<SimTime> {
        of_either!(link in self => link.wake_at())
    }

    pub(crate) fn apply_updates(&mut self) {
        of_either!(link in self => link.apply_updates());
    }

    pub(crate) fn is_loop_back(&self) -> bool {
        of_either!(link in self => link.is_loop_back())
    }

    pub(crate) fn receives(&self) -> bool {
        of_either!(link in self => link.receives())
    }

    pub(crate) fn set_lossless(&mut self, is_lossless: bool) {
        of_either!(link in self => link.set_lossless(is_lossless));
    }

    pub(crate) fn dispose_with(&mut self, disposer: Disposer) {
        of_either!(link in self => link.dispose_with(disposer));
    }

    pub(crate) fn device(&self) -> &Nic {
        of_either!(link in self => link.device())
    }

    pub(crate) fn counters(&self) -> &PortCounters {
        of_either!(link in self => link.counters())
    }

    pub(crate) fn torn_queues(&self) -> Vec<u32> {
        of_either!(link in self => link.torn_queues().collect())
    }

    pub(crate) fn announce_sleep(&self, is_asleep: bool) {
        of_either!(link in self => link.announce_sleep(is_asleep));
    }

    pub(crate) fn event(&self) -> Option<BorrowedFd<'_>> {
        of_either!(link in self => link.event())
    }

    pub(crate) fn clear_event(&mut self) {
        of_either!(link in self => link.clear_event());
    }

    pub(crate) fn close(&mut self, because: Option<PortError>) {
        of_either!(link in self => link.close(because));
    }
}
