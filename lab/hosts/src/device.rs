//! A device at a port of the central switch: an end with memory of its own, and an engine that stores lines as a core does, the program of
//! its place (record 0061).

use std::ops::Range;

use beeline_link_sim::machine::hosts::{HostId, Hosts, Region};

/// Behind the memory of a device: a word that is never stored to, so that a load of it says that the device answers.
const PROBE_BYTES: usize = 64;

/// A device at a port of the switch, behind those of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Where its engine runs, and whom its packets are of.
    pub at: HostId,
    memory: Region,
}

impl Device {
    /// A device that none of so many hosts takes requests of yet. Devices take those of all.
    pub(crate) fn new(hosts: &mut Hosts, count: u16, at: HostId, bytes: usize) -> Self {
        for host in (0..count).map(HostId) {
            hosts.set_requester(host, at, false);
        }
        Device { at, memory: hosts.add_memory(at, bytes.next_multiple_of(PROBE_BYTES) + PROBE_BYTES) }
    }

    /// The memory of the device, for its own program.
    pub fn memory(&self) -> Region {
        self.memory
    }

    /// The addresses of its memory in the fabric: those of its BAR.
    pub fn addresses(&self) -> Range<u64> {
        self.memory.address..self.probe()
    }

    /// What is loaded to know that stores in front of it have come.
    pub(crate) fn probe(&self) -> u64 {
        self.memory.address + (self.memory.bytes - PROBE_BYTES) as u64
    }
}
