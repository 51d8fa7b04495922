//! What a port's loop asks of the side by which its host reaches it.
//!
//! The loop of [`super::DevicePort`] is written once: scanning windows, carrying out what a device wants. How register accesses
//! come, where a bus address leads and what an interrupt is differ between a process ([`super::ProcessHost`]) and whoever
//! sees a PCI function.

use std::os::fd::BorrowedFd;

use beeline_contract_device::HostMemory;
use beeline_domain::Disposer;
use beeline_spec::formats::port_closed;

use super::queues::Queues;
use super::regions::BusMemory;
use crate::error::PortError;

/// A register access of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Store `value` in the register at an offset in the BAR.
    Write {
        /// Offset in the BAR; whether a register is there is for the device to say.
        offset_bytes: u32,
        value: u64,
    },
    /// Read, and answer under this tag.
    Read {
        /// Offset in the BAR; whether a register is there is for the device to say.
        offset_bytes: u32,
        /// Echoed by [`HostSide::answer`].
        tag: u16,
    },
}

/// Why a port tells its host that it is over: the value of `closed` in a host's memory (`port_closed` of `spec/formats.toml`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The NIC stops.
    Stopped,
    /// The host broke the protocol.
    Protocol,
}

impl Closing {
    pub(crate) fn value(self) -> u64 {
        u64::from(match self {
            Closing::Stopped => port_closed::STOPPED,
            Closing::Protocol => port_closed::PROTOCOL,
        })
    }
}

/// A host as its port's loop sees it. Nothing here waits, allocates or trusts what it is given.
pub trait HostSide: BusMemory + HostMemory {
    /// Whether a register access may be there; looked at in every turn, so a load or two.
    fn has_request(&mut self) -> bool;

    /// The next register access, if all of it has arrived. The same until [`HostSide::taken`].
    ///
    /// # Errors
    /// The host broke the protocol: the port is over.
    fn next(&mut self) -> Result<Option<Access>, PortError>;

    /// The access that [`HostSide::next`] gave has been delivered.
    fn taken(&mut self);

    /// Answers a read.
    fn answer(&mut self, tag: u16, value: u64);

    /// Raises an interrupt, the `count`th of this port, behind everything written before; [`HostSide::wake`] follows.
    fn interrupt(&mut self, vector: u16, count: u64);

    /// Something was written to host memory: wakes a host that sleeps until then; whether it did.
    fn wake(&mut self) -> bool;

    /// Says whether the port's loop is about to sleep, to a host whose stores can wake it.
    fn announce_sleep(&self, is_asleep: bool);

    /// Becomes readable when the host stored something after [`HostSide::announce_sleep`]; `None` where nothing tells.
    fn event(&self) -> Option<BorrowedFd<'_>>;

    /// Makes the event unreadable again.
    fn clear_event(&mut self);

    /// Tells the host that the port is over.
    fn close(&mut self, why: Closing);

    /// Takes over what the host opened and closed since the last call.
    fn apply_updates(&mut self, queues: &mut Queues);

    /// Has what the host closes dropped by `disposer`, where nobody waits for it.
    fn dispose_with(&mut self, disposer: Disposer);
}
