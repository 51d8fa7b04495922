//! The public API of segments that several processes hold.

use beeline_fabric::{LocalSegment, Refusal, RemoteSegment, SegmentId};

use crate::member::FabricMember;

/// A segment that several processes hold, as one of them has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub local: LocalSegment,
    /// The size of the segment.
    pub bytes: u64,
    /// Nobody held it, and its bytes are zero. Whoever comes later finds what was stored so far.
    pub is_first: bool,
}

impl FabricMember {
    /// Joins a group: makes this process a holder of the segment that all processes have which join under this number, of whatever
    /// node. All of them have one memory, and a store of anybody is seen by each. It lasts as long as one of them lives and has not removed
    /// its segment, or a map of it is there.
    ///
    /// To others it is a segment of [`NodeId::GROUPS`](beeline_fabric::NodeId::GROUPS), once a holder has made it available.
    ///
    /// # Errors
    /// [`Refusal::GroupOfAnotherSize`]. [`Refusal::NodeNotResponding`]: no holder has answered in ten seconds,
    /// nor the one that was asked at their end in as many more.
    pub fn join_group(&self, id: SegmentId, bytes: u64) -> Result<Held, Refusal> {
        let (local, is_first) = self.shared.join(id, bytes)?;
        Ok(Held { local, bytes, is_first })
    }

    /// Lets other processes of this node hold a segment of this one ([`FabricMember::attach`]). Connections to it go on as long as one of
    /// them holds it.
    ///
    /// # Errors
    /// There is no such segment ([`Refusal::IllegalParameter`]); it is private, or has no memory that could be passed
    /// ([`Refusal::IllegalOperation`]).
    pub fn share(&self, local: LocalSegment) -> Result<(), Refusal> {
        self.shared.share(local)
    }

    /// Makes this process a holder of a segment that another process of its node has shared. It is prepared for no adapter, and available
    /// by none.
    ///
    /// # Errors
    /// [`Refusal::NoSuchSegment`] and [`Refusal::NodeNotResponding`]: nobody of the node has it. [`Refusal::ConnectionRefused`]: it
    /// is not shared.
    pub fn attach(&self, id: SegmentId) -> Result<Held, Refusal> {
        let (local, bytes) = self.shared.attach(id)?;
        Ok(Held { local, bytes, is_first: false })
    }

    /// How many holders a connection knows at this moment; 1 if its segment is one member's alone.
    pub fn holders_of(&self, remote: RemoteSegment) -> usize {
        self.shared.lock().member.holders_of(remote)
    }
}
