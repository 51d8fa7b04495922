//! A member that holds a segment, and what its memory is asked for by.

use core::num::NonZeroU64;

use crate::ids::{MemberNumber, PairId, Slot};

/// What a member asks another one for: the memory of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    /// The entry of the other member's board.
    pub slot: Slot,
    /// Which of the segments that the entry has had.
    pub incarnation: u32,
}

/// A member that holds a segment together with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The pair that this member has with it.
    pub pair: PairId,
    pub member: MemberNumber,
    pub lent: Lent,
    /// The size of the segment.
    pub bytes: u64,
    /// Which segment of several holders it is.
    pub group: NonZeroU64,
}
