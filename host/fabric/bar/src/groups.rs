//! The public API of segments that several members hold.

use beeline_fabric::{LocalSegment, Refusal, RemoteSegment, SegmentId};

use crate::member::BarMember;

/// A segment that several members hold, as one of them has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarHeld {
    pub local: LocalSegment,
    /// The size of the segment.
    pub bytes: u64,
    /// Nobody held it, and its bytes are zero. Whoever comes later finds what was stored so far.
    pub is_first: bool,
}

impl BarMember {
    /// Joins a group: makes this member a holder of the segment that all members have which join under this number, of whatever node. It
    /// is one memory in the area of the member that made it, and a store of anybody is seen by each. It lasts until the last holder is gone or has removed its
    /// segment, and the last map is gone. Until then nobody takes the slot of the member that made it, even if that is gone.
    ///
    /// To others it is a segment of [`NodeId::GROUPS`](beeline_fabric::NodeId::GROUPS), once a holder has made it available.
    ///
    /// # Errors
    /// [`Refusal::GroupOfAnotherSize`]. [`Refusal::Nospc`]: this member's area has no room for a group that nobody holds.
    /// [`Refusal::NodeNotResponding`]: holders come and go, and this member has become none in ten seconds.
    pub fn join_group(&self, id: SegmentId, bytes: u64) -> Result<BarHeld, Refusal> {
        let (local, is_first) = self.shared.join(id, bytes)?;
        Ok(BarHeld { local, bytes, is_first })
    }

    /// Lets other members of this node hold a segment of this one ([`BarMember::attach`]). It stays where it is, in the area of this member,
    /// as long as one of them holds it or has it mapped, and connections to it go on as long. What somebody was connected to already is not
    /// given out again when that ends.
    ///
    /// # Errors
    /// There is no such segment ([`Refusal::IllegalParameter`]); it is private ([`Refusal::IllegalOperation`]); this member holds, or has
    /// made, as many of several as it can ([`Refusal::MaxEntries`]).
    pub fn share(&self, local: LocalSegment) -> Result<(), Refusal> {
        self.shared.share(local)
    }

    /// Makes this member a holder of a segment that another member of its node has shared, or had: whether the one that made it lives
    /// does not count. It is prepared for no adapter, and available by none.
    ///
    /// # Errors
    /// [`Refusal::NoSuchSegment`]: nobody of the node has it. [`Refusal::ConnectionRefused`]: it is not shared.
    /// [`Refusal::NodeNotResponding`]: holders come and go, and this member has become none in ten seconds.
    pub fn attach(&self, id: SegmentId) -> Result<BarHeld, Refusal> {
        let (local, bytes) = self.shared.attach(id)?;
        Ok(BarHeld { local, bytes, is_first: false })
    }

    /// How many holders a connection knows at this moment; 1 if its segment is one member's alone.
    pub fn holders_of(&self, remote: RemoteSegment) -> usize {
        self.shared.lock().member.holders_of(remote)
    }
}
