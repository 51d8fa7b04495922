//! Sockets of UDP: what two sockets of one host send to each other goes by windows, in the order of each sender, and the rest by the kernel.
//!
//! A socket begins as the kernel's and costs one load and a count for each call. One that was worth it has a [`DatagramSocket`], and for each other address a
//! [`flow::Flow`]. Two processes that both have flows of the same two addresses agree on a place in their memory ([`beeline_domain::Pairs`]); whoever
//! has received of the other by the kernel offers a window there. A message is one datagram, behind a word that says whether the sender has come from the
//! kernel's path just now. Then the receiver empties the kernel's queue first. It looks at windows, and at the kernel when they are empty; a datagram that it finds there
//! comes behind what the window of the same sender has. So no count of what went by the kernel is needed, of which there is none. Record 0069.

mod bells;
mod calls;
mod elsewhere;
pub(crate) mod flow;
mod group;
mod group_calls;
mod incoming;
mod kept;
mod membership;
mod memberships;
mod outgoing;
mod passing;
mod receive;
mod rest;
mod send;
pub(crate) mod socket;
pub(crate) mod table;
mod to_groups;
mod turn;
mod waiting;

pub use group_calls::Membership;
pub use socket::{DatagramSocket, DatagramTraffic};
pub use turn::{Datagram, DatagramTurn};
