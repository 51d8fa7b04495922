//! Who may connect to a segment.

use alloc::vec::Vec;

use crate::ids::NodeId;

/// Who may connect to a segment. The default is any node, and no other user: who connects is then of the user that has the segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// These nodes; `None`: all. What node it is of a member says itself.
    pub nodes: Option<Vec<NodeId>>,
    /// Other users beside the segment's own, by the numbers that the kernel gives them.
    pub users: Vec<u32>,
}

impl Access {
    /// Whether a member of a node may connect, of another user if it is one.
    pub(crate) fn lets(&self, node: NodeId, other_user: Option<u32>) -> bool {
        let is_user = other_user.is_none_or(|user| self.users.contains(&user));
        is_user && self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&node))
    }
}
