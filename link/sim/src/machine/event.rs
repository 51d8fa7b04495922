//! What can happen in a machine.

use super::DeviceId;
use crate::pcie::{HopEvent, LinkEvent, SwitchEvent};

/// An event of a [`Machine`](super::Machine).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Link(LinkEvent),
    /// Between two links.
    Hop(HopEvent),
    Switch(SwitchEvent),
    /// It is the turn of the program on a core, unless it had another one since.
    Turn {
        core: u16,
        /// Number of the turn; an event of an earlier turn is stale.
        number: u32,
    },
    /// Lines wait in the buffers of a core.
    Tend {
        core: u16,
    },
    /// A packet of the cores may leave the root complex.
    RootSends,
    /// A completion may leave the root complex.
    RootAnswers,
    /// Something of the device becomes visible to the host.
    HostSees,
    /// The logic of the device sees a write or a load.
    DeviceSees(DeviceId),
    /// A read request of the device may leave.
    DeviceReads(DeviceId),
    /// The logic of the device gets data.
    DeviceGets(DeviceId),
    /// A packet of the device may leave.
    DeviceSends(DeviceId),
    /// The answer of the device to a load may leave.
    DeviceAnswers(DeviceId),
    /// The device looks at lines that it watches.
    DeviceLooks,
    /// The host can load what the device stored to a line.
    HostGets,
    /// The logic of the device wants to be told the time.
    DeviceWakes(DeviceId),
    /// The wire takes the next frame.
    WireTakes(DeviceId),
    /// A frame comes by the wire.
    FrameComes(DeviceId),
}

impl From<LinkEvent> for Event {
    #[inline]
    fn from(event: LinkEvent) -> Event {
        Event::Link(event)
    }
}

impl From<HopEvent> for Event {
    #[inline]
    fn from(event: HopEvent) -> Event {
        Event::Hop(event)
    }
}

impl From<SwitchEvent> for Event {
    #[inline]
    fn from(event: SwitchEvent) -> Event {
        Event::Switch(event)
    }
}
