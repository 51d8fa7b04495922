//! What a member asks of the program around it: whatever blocks, or asks the kernel.

use alloc::vec::Vec;

use crate::ids::{AskId, MemberNumber, Name, NodeId, PairId, Slot};
use crate::segment::holder::Holder;

/// Something to be done outside the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// An operation on the names of a node; answered by [`Member::answered`](crate::Member::answered).
    Name(AskId, NameOp),
    /// A pair with a member, whose segments are to be used; answered by [`Member::reached`](crate::Member::reached).
    Reach {
        /// The pair to be made.
        pair: PairId,
        /// The node of the other member.
        node: NodeId,
        member: MemberNumber,
    },
    /// A sign to the other member of a pair that it should look.
    Ring(PairId),
    /// The end of a pair that was made: what the other side publishes is no board.
    Close(PairId),
    /// Memory of the bank to be made zero and given back: a segment was removed, or a new one has what another member may have used. Nobody uses it.
    Punch {
        /// Where it begins.
        offset: u64,
        /// Its size.
        bytes: u64,
    },
}

/// An operation on names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameOp {
    /// Puts a name, if no living member has it. Names of groups, and of
    /// interrupts of groups, are those of [`NodeId::GROUPS`], others of this member's node. One of
    /// [`NameKind::SharedInterrupt`](crate::NameKind) may be beside others of it, but not beside an interrupt of the same number that is alone;
    /// one of [`NameKind::GroupInterrupt`](crate::NameKind) beside others of it.
    Put(Name, Slot),
    /// Puts a name of this node, if no living member has it, also of a kind of which there may be several.
    PutFirst(Name, Slot),
    /// Puts a name beside those of other holders, if one of these is the one whose memory this member has and has it open, or if
    /// nobody who lives has the name.
    PutBeside(Name, Slot, Holder),
    /// Removes a name of this node. Nothing is done with the answer.
    Remove(Name, Slot),
    Find(NodeId, Name),
}

/// The answer of an operation on names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The name is put, or removed.
    Done,
    /// A living member has the name.
    Taken,
    /// There is no room for another name.
    Full,
    Found(Found),
    /// The system refuses it.
    Failed,
}

/// What was found under a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Whether any member of the node lives.
    pub is_node_alive: bool,
    /// Who may have what is named, and where: each board says whether it has.
    pub candidates: Vec<Candidate>,
}

/// A member that may have what is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub member: MemberNumber,
    /// The entry of its board.
    pub slot: Slot,
}

/// What came of an attempt to reach a member.
#[derive(Debug)]
pub enum Reached<V, C> {
    /// Its board, and the words for what is claimed of it, all zero.
    Provider {
        /// The other member's board.
        board: V,
        /// This member's claims.
        claims: C,
    },
    /// It does not answer.
    NotResponding,
}
