//! What can happen among hosts.

use super::{HostId, Place};
use crate::pcie::{HopEvent, LinkEvent, SwitchEvent};

/// An event of [`Hosts`](super::Hosts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostsEvent {
    Link(LinkEvent),
    /// Between two links.
    Hop(HopEvent),
    Switch(SwitchEvent),
    /// It is the turn of the program on a core, unless it had another one since.
    Turn {
        place: Place,
        /// Number of the turn; an event of an earlier turn is stale.
        number: u32,
    },
    /// Lines wait in the buffers of a core.
    Tend(Place),
    /// A packet of the cores may leave the root complex.
    RootSends(HostId),
    /// An answer may leave the root complex.
    RootAnswers(HostId),
    /// Something that came becomes visible to the host.
    HostSees(HostId),
    /// The engine of a port begins a transfer that it was told of.
    EngineStarts(HostId),
    /// The engine of a port is told to begin nothing more of a transfer.
    EngineAborts {
        host: HostId,
        number: u32,
    },
    /// A packet of an engine may leave.
    EngineSends(HostId),
    /// Bytes of an engine become visible to its host.
    EngineLands(HostId),
    /// A request of an engine whose answer was lost is over.
    EngineTimesOut {
        host: HostId,
        /// By this the engine knows the request.
        id: u32,
    },
    /// A load whose answer was lost is over.
    LoadTimesOut(Place),
    /// An interrupt that its root complex has seen is with whoever waits for it.
    Interrupted(HostId),
    /// The link of a host goes down or comes up.
    LinkChanges {
        host: HostId,
        /// What it is from now on.
        is_up: bool,
    },
}

impl From<LinkEvent> for HostsEvent {
    #[inline]
    fn from(event: LinkEvent) -> Self {
        HostsEvent::Link(event)
    }
}

impl From<HopEvent> for HostsEvent {
    #[inline]
    fn from(event: HopEvent) -> Self {
        HostsEvent::Hop(event)
    }
}

impl From<SwitchEvent> for HostsEvent {
    #[inline]
    fn from(event: SwitchEvent) -> Self {
        HostsEvent::Switch(event)
    }
}
