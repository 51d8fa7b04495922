//! Processes of other users: whom a member lets in, and where it finds their nodes.
//!
//! Each user has a domain of its own, whose folder no other user stores into. A member joins the domain of its user, and looks for nodes of
//! other users in theirs. Whoever of another user connects gets the board, and neither the bank nor the bells: of segments what is
//! exported to that user (`FabricMember::export`), each by a descriptor of its own, and no interrupts.

use beeline_domain::DomainConfig;
use beeline_fabric::NodeId;

/// What a member has to do with other users. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct OtherUsers {
    /// Users who may connect to what is exported to them.
    pub admitted: Vec<u32>,
    /// Nodes whose members are of other users.
    pub nodes: Vec<NodeOfUser>,
}

/// A node whose members are processes of another user. Nobody of it responds as long as that user has not let this one in.
#[derive(Clone, Debug)]
pub struct NodeOfUser {
    pub node: NodeId,
    pub uid: u32,
    pub domain: DomainConfig,
}
