//! IP between the nodes of a fabric: a network device of each node, whose packets go over windows.
//!
//! [`Ip::up`] makes a TUN interface and, for each other node, a message queue of the fabric (`host/fabric/transfer`). What the kernel routes to the
//! interface is stored into the window of the node that has the destination's address; a node's address follows from its number
//! ([`Network`]), so nobody is asked for it. A plain interrupt of each node says that something has come, and costs a system call only where nobody looks.
//!
//! A packet may be lost, as on any network, and each kind of loss is counted ([`PeerCounts`], [`IpCounts`]): a node that is not there, which the sender is told by ICMP, one that does not take
//! its packets, a link that is down. What a node sends has its own address, or is thrown away. Links, adapters and who may connect are the fabric's.
//! (Dolphin's `dis0` is the same over PCIe, seed 003.)
#![forbid(unsafe_code)]

mod counts;
mod joined;
mod line;
mod network;
mod packet;
mod peer;
mod relay;
mod unreachable;

pub use counts::{IpCounts, PeerCounts};
pub use joined::{Joined, NotJoined};
pub use network::{Network, NetworkError};
pub use relay::{Ip, IpConfig, IpEnded, IpError, PeerReport};
