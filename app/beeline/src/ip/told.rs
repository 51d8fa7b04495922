//! What `beeline ip up` says: that the device is up, nodes as they come and go, and in the end what was carried.

use std::net::Ipv4Addr;

use beeline_ip::{Ip, PeerCounts, PeerReport};
use serde::Serialize;

use crate::failure::Failure;
use crate::out;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Told {
    /// The device is there.
    Up { interface: String, node: u16, address: Ipv4Addr, peers: Vec<u16> },
    /// A node is there now, and its packets are taken.
    Came { node: u16, address: Ipv4Addr },
    /// It is not, or not yet, and why, where more is known.
    Absent { node: u16, address: Ipv4Addr, why: Option<String> },
    /// What was carried, in the end.
    Carried {
        node: u16,
        #[serde(flatten)]
        counts: PeerCounts,
    },
    /// What was for nobody, in the end.
    Nowhere { packets: u64, told_packets: u64 },
}

impl Told {
    /// How a node is now: there, or why it is not.
    pub fn of(peer: &PeerReport) -> Self {
        let (node, address) = (peer.node.0, peer.address);
        if peer.is_up {
            return Told::Came { node, address };
        }
        Told::Absent { node, address, why: peer.refusal.map(|refusal| refusal.to_string()) }
    }

    /// All that was carried.
    pub fn in_the_end(ip: &Ip) -> Vec<Self> {
        let carried = |peer: PeerReport| Told::Carried { node: peer.node.0, counts: peer.counts };
        let counts = ip.counts();
        let nowhere = Told::Nowhere { packets: counts.nowhere_packets, told_packets: counts.told_packets };
        ip.peers().into_iter().map(carried).chain([nowhere]).collect()
    }

    /// Prints it: for people, or an object in a line.
    pub fn print(&self, is_json: bool) -> Result<(), Failure> {
        if is_json {
            let json = serde_json::to_string(self);
            return out::line(json.map_err(|error| Failure::new("cannot write JSON").because(error))?);
        }
        out::line(self.words())
    }

    fn words(&self) -> String {
        match self {
            Told::Up { interface, node, address, peers } => {
                let peers: Vec<String> = peers.iter().map(u16::to_string).collect();
                format!(
                    "{interface}: node {node} has {address}; waits for nodes {}; end it with Ctrl-C",
                    peers.join(", ")
                )
            }
            Told::Came { node, address } => format!("node {node} is there: {address}"),
            Told::Absent { node, address, why: None } => format!("node {node} is not there: {address}"),
            Told::Absent { node, address, why: Some(why) } => {
                format!("node {node} is not there: {address}: {why}")
            }
            Told::Carried { node, counts } => format!(
                "node {node}: {} packets sent ({} bytes), {} received ({}); lost: {} while it was not there, {} without room, \
                 {} too long for it, {} wrong, {} that the kernel did not take",
                counts.sent_packets,
                counts.sent_bytes,
                counts.received_packets,
                counts.received_bytes,
                counts.absent_packets,
                counts.full_packets,
                counts.too_long_packets,
                counts.wrong_packets,
                counts.refused_packets,
            ),
            Told::Nowhere { packets, told_packets } => {
                format!(
                    "{packets} packets were for no node; {told_packets} senders were told that a node is not there"
                )
            }
        }
    }
}
