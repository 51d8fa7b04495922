//! The groups of a socket, and its flows with those who send to them.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::flow::Flow;

#[derive(Debug, Default)]
pub(crate) struct Memberships {
    pub(super) joined: Vec<Joined>,
    /// What the socket has with senders, each by its address and the group.
    pub(super) heard: HashMap<(SocketAddr, Joined), Arc<Flow>>,
}

/// A group, and the device by which it was joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Joined {
    pub(crate) group: Ipv4Addr,
    pub(crate) device: u32,
}

impl Memberships {
    pub(crate) fn flows(&self) -> impl Iterator<Item = &Arc<Flow>> {
        self.heard.values()
    }
}
