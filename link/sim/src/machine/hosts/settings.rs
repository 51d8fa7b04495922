//! Everything that hosts and what joins them are made of.

use thiserror::Error;

use super::super::Further;
use super::engine::EngineSettings;
use crate::cpu::{CoreSettings, CoreSettingsError};
use crate::des::Picoseconds;
use crate::pcie::{Header, LinkSettings, SettingsError, SwitchError};
use crate::root::RootSettings;

/// Bytes of the window of a group, and of the memory of each of its hosts that it is copied to.
pub const GROUP_BYTES: u64 = 1 << 20;

/// A row of links from a root complex on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The link at the root complex.
    pub first: LinkSettings,
    /// Links behind it, each behind a switch or a bridge.
    pub further: Vec<Further>,
}

/// What joins hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined {
    /// Two hosts, one at each end of a row.
    Row(Row),
    /// Two hosts that have an adapter for each row. The ends of row `n` are 2`n` and 2`n` + 1 by number: ports of host 0 and of host 1, with
    /// cores, a root complex and a link of their own, and the memory of their host.
    Rows(Vec<Row>),
    /// A central switch, with a row that leads to it from each host.
    Switch {
        /// What a packet takes from one of its ports to another.
        latency: Picoseconds,
        /// Of each host, from its root complex on.
        rows: Vec<Row>,
        /// Reflective memory: the hosts of each group.
        groups: Vec<Vec<u16>>,
    },
}

/// Every parameter of hosts that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostsSettings {
    pub core: CoreSettings,
    /// So many on each of the hosts, at most 255.
    pub cores: u16,
    /// The root complex of each host, with the memory behind it.
    pub root: RootSettings,
    pub joined: Joined,
    /// Headers of requests: of addresses below 4 GiB or above.
    pub header: Header,
    /// How long a core or an engine waits for an answer that was lost.
    pub completion_timeout: Picoseconds,
    /// The DMA engine of each port, if they have one.
    pub engine: Option<EngineSettings>,
}

/// Hosts that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostsError {
    #[error(transparent)]
    Core(#[from] CoreSettingsError),
    #[error(transparent)]
    Link(#[from] SettingsError),
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// There is none or there are too many of something.
    #[error("{found} {what} cannot be; use {least} to {most}")]
    Count {
        what: &'static str,
        found: usize,
        /// The fewest.
        least: usize,
        most: usize,
    },
    /// A bridge has no word back from the other host's memory.
    #[error(
        "no fence waits for the memory of another host; let it wait for the root complex, or read across"
    )]
    Fence,
    /// A bridge that is a device cannot be there.
    #[error("a bridge cannot have {0}")]
    Bridge(&'static str),
}

impl HostsSettings {
    /// How many ports there are: two of each row, and at a switch one of each of its rows.
    pub fn hosts(&self) -> usize {
        match &self.joined {
            Joined::Row(_) => 2,
            Joined::Rows(rows) => 2 * rows.len(),
            Joined::Switch { rows, .. } => rows.len(),
        }
    }

    /// Ports of each host.
    pub(super) fn adapters(&self) -> u16 {
        match &self.joined {
            Joined::Rows(rows) => rows.len() as u16,
            Joined::Row(_) | Joined::Switch { .. } => 1,
        }
    }

    pub(super) fn groups(&self) -> &[Vec<u16>] {
        match &self.joined {
            Joined::Row(_) | Joined::Rows(_) => &[],
            Joined::Switch { groups, .. } => groups,
        }
    }

    /// From a host to the next, and from a group to the next.
    pub(super) fn span_bytes(&self) -> u64 {
        if self.header == Header::FourDw { 1 << 40 } else { 1 << 28 }
    }

    pub(super) fn check(&self) -> Result<(), HostsError> {
        self.core.check()?;
        if self.core.fence_ack == crate::cpu::FenceAck::Device {
            return Err(HostsError::Fence);
        }
        let count = |what, found, least, most| {
            let fits = (least..=most).contains(&found);
            if fits { Ok(()) } else { Err(HostsError::Count { what, found, least, most }) }
        };
        count("cores of a host", usize::from(self.cores), 1, 255)?;
        if let Some(engine) = &self.engine {
            count("tags of an engine", usize::from(engine.tags), 1, 1 << 10)?;
            count("buffers of an engine", engine.buffers, 1, 1 << 16)?;
        }
        count("places in a root complex", self.root.write_places, 1, 1 << 16)?;
        // Addresses of hosts and groups are below 4 GiB where headers are short.
        let most = if self.header == Header::FourDw { 64 } else { 14 };
        count("hosts", self.hosts(), 2, most)?;
        count("groups", self.groups().len(), 0, most - self.hosts())
    }
}
