//! What can happen in a machine.

use crate::pcie::{HopEvent, LinkEvent};

/// An event of a [`Machine`](super::Machine).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// On a link.
    Link(LinkEvent),
    /// Between two links.
    Hop(HopEvent),
    /// It is the turn of the program on a core, unless it had another one since.
    Turn {
        /// The core.
        core: u16,
        /// Which turn.
        number: u32,
    },
    /// Lines wait in the buffers of a core.
    Tend {
        /// The core.
        core: u16,
    },
    /// A packet of the cores may leave the root complex.
    RootSends,
    /// A completion may leave the root complex.
    RootAnswers,
    /// Something of the device becomes visible to the host.
    HostSees,
    /// The logic of the device sees a write or a load.
    DeviceSees,
    /// A read request of the device may leave.
    DeviceReads,
    /// The logic of the device gets data.
    DeviceGets,
    /// A packet of the device may leave.
    DeviceSends,
    /// The answer of the device to a load may leave.
    DeviceAnswers,
    /// The device looks at lines that it watches.
    DeviceLooks,
    /// The host can load what the device stored to a line.
    HostGets,
    /// The logic of the device wants to be told the time.
    DeviceWakes,
    /// The wire takes the next frame.
    WireTakes,
    /// A frame comes by the wire.
    FrameComes,
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
