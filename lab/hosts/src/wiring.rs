//! Where in whose memory words and their copies lie. Every host knows it: it is what a driver would have exchanged.

use std::sync::Arc;

use beeline_fabric::{BOARD_WORDS, NodeId, USE_WORDS};
use beeline_link_sim::machine::hosts::{HostId, Hosts, Region};

use crate::device::Device;

/// Bytes of a host's bank of segments.
pub const BANK_BYTES: usize = 4 << 20;
/// Entries of a host's table of names.
pub(crate) const NAMES: u32 = 256;
/// Entries of a host's table of memory of devices.
pub(crate) const ATTACHED: u32 = 64;
const ATTACHED_WORDS: usize = 2 * ATTACHED as usize;
const NAME_WORDS: usize = 2 * NAMES as usize;
pub(crate) const LINE_BYTES: usize = 64;
/// Windows for messages from one host to another.
pub(crate) const WINDOWS: u32 = 4;
pub(crate) const WINDOW_LINES: u32 = 128;
const WINDOWS_BYTES: usize = (WINDOWS * WINDOW_LINES) as usize * LINE_BYTES;
/// DMA queues of a host, and pieces of each that its engine has at a time.
pub(crate) const DMA_QUEUES: usize = 16;
pub(crate) const PIECES: usize = 4;
/// Words that a host publishes to another one about windows to it and from it.
pub(crate) const YARD_WORDS: u32 = 3 * WINDOWS;

/// The node of a host: 4, 8, 12 and on.
pub fn node_of(host: HostId) -> NodeId {
    NodeId(4 * (host.0 + 1))
}

/// The memory of one host.
#[derive(Clone, Debug)]
pub(crate) struct Memories {
    pub board: Region,
    pub names: Region,
    pub attached: Region,
    /// By peer, what this host claims of it.
    pub claims: Vec<Region>,
    /// By peer, copies of its words.
    pub boards: Vec<Region>,
    pub names_of: Vec<Region>,
    pub attached_of: Vec<Region>,
    pub claimed: Vec<Region>,
    /// By peer, words about windows for messages that this host publishes, copies of the peer's, and windows that the peer sends into.
    pub yards: Vec<Region>,
    pub yards_of: Vec<Region>,
    pub windows: Vec<Region>,
    /// By peer, a line of words: see `session.rs`.
    pub sessions: Region,
    /// By peer, the line of its heartbeat.
    pub beats: Region,
    pub bank: Region,
    /// A line for the status of each piece that an engine has.
    pub statuses: Region,
}

/// The memories of all hosts, and the devices. Clones are the same.
#[derive(Clone, Debug)]
pub struct Wiring(Arc<(Vec<Memories>, Vec<Device>)>);

impl Wiring {
    /// Makes the memories of so many hosts, of which none receives what goes to a group until its member joins.
    pub fn new(hosts: &mut Hosts, count: u16) -> Wiring {
        Wiring::with_devices(hosts, count, &[])
    }

    /// As [`Wiring::new`], with devices of so many bytes at the ports behind those of the hosts.
    pub fn with_devices(hosts: &mut Hosts, count: u16, bytes: &[usize]) -> Wiring {
        let devices = (count..).zip(bytes);
        let devices = devices.map(|(at, bytes)| Device::new(hosts, count, HostId(at), *bytes)).collect();
        for (group, host) in (0..hosts.groups()).flat_map(|group| (0..count).map(move |host| (group, host))) {
            hosts.set_receives(HostId(host), group, false);
        }
        let memories = (0..count).map(HostId).map(|host| {
            let mut add = |bytes| hosts.add_memory(host, bytes);
            let (board, claims) = (BOARD_WORDS as usize * 8, USE_WORDS as usize * 8);
            let peers = 0..count;
            Memories {
                board: add(board),
                names: add(NAME_WORDS * 8),
                attached: add(ATTACHED_WORDS * 8),
                claims: peers.clone().map(|_| add(claims)).collect(),
                boards: peers.clone().map(|_| add(board)).collect(),
                names_of: peers.clone().map(|_| add(NAME_WORDS * 8)).collect(),
                attached_of: peers.clone().map(|_| add(ATTACHED_WORDS * 8)).collect(),
                claimed: peers.clone().map(|_| add(claims)).collect(),
                yards: peers.clone().map(|_| add(YARD_WORDS as usize * 8)).collect(),
                yards_of: peers.clone().map(|_| add(YARD_WORDS as usize * 8)).collect(),
                windows: peers.map(|_| add(WINDOWS_BYTES)).collect(),
                sessions: add(usize::from(count) * LINE_BYTES),
                beats: add(usize::from(count) * LINE_BYTES),
                bank: add(BANK_BYTES),
                statuses: add(DMA_QUEUES * PIECES * LINE_BYTES),
            }
        });
        let memories = memories.collect();
        Wiring(Arc::new((memories, devices)))
    }

    pub(crate) fn of(&self, host: HostId) -> &Memories {
        &self.0.0[usize::from(host.0)]
    }

    /// Devices at the ports behind those of the hosts, in the order of the ports.
    pub fn devices(&self) -> &[Device] {
        &self.0.1
    }

    /// All hosts but one.
    pub(crate) fn others(&self, host: HostId) -> impl Iterator<Item = HostId> + use<> {
        (0..self.0.0.len() as u16).map(HostId).filter(move |other| *other != host)
    }
}

/// Where the line of a peer begins in memory that has one for each.
pub(crate) fn line_of(peer: HostId) -> usize {
    usize::from(peer.0) * LINE_BYTES
}
