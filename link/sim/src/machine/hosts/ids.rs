//! Hosts, their cores and their memory, by number and address.

use super::{HostsSettings, Joined};

/// What a load across shows whose answer was lost, or of what is no memory.
pub const LOST: u64 = u64::MAX;

/// The last function of a host's bus, which no core has.
const ENGINE: u16 = 0xff;

/// A host, by its place in the row or at the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u16);

/// A core of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub host: HostId,
    pub core: u16,
}

/// Memory of a host, which others store to and load at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub host: HostId,
    pub(super) index: usize,
    /// Its address in the fabric.
    pub address: u64,
    pub bytes: usize,
}

impl HostId {
    /// The host whose memory the port of this number has.
    pub(super) fn home(self, settings: &HostsSettings) -> HostId {
        match &settings.joined {
            Joined::Rows(_) => HostId(self.0 % 2),
            Joined::Row(_) | Joined::Switch { .. } => self,
        }
    }

    pub(super) fn begins_at(self, settings: &HostsSettings) -> u64 {
        u64::from(self.0 + 1) * settings.span_bytes()
    }
}

impl Place {
    /// What requests of the engine of a port come from, as if from a core that no host has.
    pub(super) fn engine_of(host: HostId) -> Place {
        Place { host, core: ENGINE }
    }

    pub(super) fn is_engine(self) -> bool {
        self.core == ENGINE
    }

    /// The requester ID of its packets: its host has a bus of its own.
    pub(super) fn requester(self) -> u16 {
        self.host.0 << 8 | self.core
    }

    pub(super) fn of_requester(requester: u16) -> Place {
        Place { host: HostId(requester >> 8), core: requester & 0xff }
    }
}
