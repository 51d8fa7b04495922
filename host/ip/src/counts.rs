//! What was carried, and what was not.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// Packets and bytes of one node. A packet that is lost is in exactly one of the last five.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PeerCounts {
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub received_packets: u64,
    pub received_bytes: u64,
    /// It was not there.
    pub absent_packets: u64,
    /// Its window was full for as long as a packet waits, or no link was up.
    pub full_packets: u64,
    /// Its device takes shorter ones only, which the sender is told.
    pub too_long_packets: u64,
    /// It sent what is no packet, or has another node's address.
    pub wrong_packets: u64,
    /// The kernel here did not take them.
    pub refused_packets: u64,
}

/// Packets of no node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpCounts {
    /// They go to an address that is no node's, come from one that is not this node's, or are none.
    pub nowhere_packets: u64,
    /// ICMP messages that told a sender so, that a node is not there, or that a packet is too long for it.
    pub told_packets: u64,
}

/// A count that one thread raises and any reads.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Relaxed: it says nothing of other memory.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
