//! Processes of other users: whom a member lets in, and where it finds their nodes.
//!
//! Each user has a domain of its own, whose folder no other user stores into. A member joins the domain of its user, and looks for nodes of
//! other users in theirs. Whoever of another user connects gets the board, and neither the bank nor the bells: of segments what is
//! exported to that user (`FabricMember::export`), each by a descriptor of its own, and no interrupts.

use std::collections::BTreeMap;

use beeline_domain::DomainConfig;
use beeline_fabric::{Access, NodeId, SegmentId};

/// What a member has to do with other users. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct OtherUsers {
    /// Users who may connect to what is exported to them.
    pub admitted: Vec<u32>,
    /// Nodes whose members are of other users.
    pub nodes: Vec<NodeOfUser>,
}

/// Who may connect to segments that a member makes, by their numbers. The default is whoever is of the member's user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exports {
    /// Of segments that are not in `segments`.
    pub all: Option<Access>,
    pub segments: BTreeMap<SegmentId, Access>,
}

impl Exports {
    /// Who may connect to the segment of a number, where that is said.
    pub fn of(&self, id: SegmentId) -> Option<&Access> {
        self.segments.get(&id).or(self.all.as_ref())
    }

    /// Each user who is on any of the lists.
    pub(crate) fn users(&self) -> Vec<u32> {
        let mut users: Vec<u32> =
            self.segments.values().chain(&self.all).flat_map(|access| &access.users).copied().collect();
        users.sort_unstable();
        users.dedup();
        users
    }
}

/// A node whose members are processes of another user. Nobody of it responds as long as that user has not let this one in.
#[derive(Clone, Debug)]
pub struct NodeOfUser {
    pub node: NodeId,
    pub uid: u32,
    pub domain: DomainConfig,
}
