//! Groups: segments of which each holder has a copy in its own memory, and the central switch copies each store to all of them.
//!
//! A group's number is that of the switch. Its memory is not passed from holder to holder, as it is under one kernel: whoever joins
//! receives from then on, in memory that is zero, and is told whether it may have missed something (record 0060).

use std::num::NonZeroU64;

use beeline_fabric::{
    Call, Holder, LocalSegment, MemberRange, Name, NodeId, Part, Refusal, RemoteSegment, SegmentId, Value,
};
use beeline_link_sim::des::Picoseconds;

use crate::mapped::Mapped;
use crate::member::HostMember;

/// How long others may come and go before a join is given up.
const PATIENCE: Picoseconds = Picoseconds::from_ns(10_000_000_000);
/// Between two attempts.
const REST: Picoseconds = Picoseconds::from_ns(1_000);

/// A group, as one of its holders has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldGroup {
    pub local: LocalSegment,
    /// It is certain that nobody held it, so nothing was stored that is not here. Whoever comes later does not have what was stored
    /// before; the event that somebody has connected says that his stores from there on are vouched for.
    pub is_first: bool,
}

/// The segment under which the memory of a group of the switch is found.
fn name_of(group: usize) -> Name {
    Name::segment_of(NodeId::GROUPS, SegmentId(group as u32))
}

impl HostMember {
    /// Joins a group of the switch: its window is copied to this host from here on. To others it is a segment of
    /// [`NodeId::GROUPS`], once it is available.
    ///
    /// # Errors
    /// [`Refusal::NoSuchSegment`]: the switch has no such group. [`Refusal::IllegalOperation`]: it does not copy it to this host.
    /// [`Refusal::Nospc`]: the window is smaller. [`Refusal::SegmentidUsed`]: this member holds it, or others do in another size.
    pub fn join_group(&mut self, id: SegmentId, bytes: u64) -> Result<HeldGroup, Refusal> {
        let group = id.0 as usize;
        let region = self.core().group_memory(group).ok_or(Refusal::NoSuchSegment)?;
        if bytes > region.bytes as u64 {
            return Err(Refusal::Nospc);
        }
        if self.groups.values().any(|held| *held == group) {
            return Err(Refusal::SegmentidUsed);
        }
        // Of an earlier time that this host held it.
        for offset in (0..bytes as usize).step_by(8) {
            if self.core().load(region, offset) != 0 {
                self.core().store(region, offset, 0);
            }
        }
        if !self.core().set_receives(group, true) {
            return Err(Refusal::IllegalOperation);
        }
        let held = self.hold(group, bytes);
        if held.is_err() {
            self.core().set_receives(group, false);
        }
        held
    }

    fn hold(&mut self, group: usize, bytes: u64) -> Result<HeldGroup, Refusal> {
        // The same for all who ever hold it: the memory is the switch's, and there is no other one under the name.
        let number = NonZeroU64::MIN.saturating_add(group as u64);
        let until = self.now() + PATIENCE;
        let local = loop {
            let of = self.holder_among(group, MemberRange::default());
            if of.is_some_and(|holder| holder.bytes != bytes) {
                return Err(Refusal::SegmentidUsed);
            }
            match self.call(Call::Hold { name: name_of(group), bytes, group: number, of }) {
                Ok(Value::Local(local, _)) => break local,
                Err(Refusal::SegmentidUsed) if self.now() < until => {
                    let again = self.now() + REST;
                    self.serve(again, |_| false);
                }
                Err(refusal) => return Err(refusal),
                Ok(_) => return Err(Refusal::System),
            }
        };
        self.groups.insert(local, group);
        // Of two that join at the same time at least one sees the other behind this.
        let is_certain = self.names.barrier();
        let is_first = is_certain && !self.names.is_elsewhere(name_of(group));
        let mut unseen = vec![MemberRange::default()];
        while let Some(among) = unseen.pop() {
            let Some(holder) = self.holder_among(group, among) else { continue };
            if holder.bytes != bytes {
                self.call(Call::RemoveSegment { local, is_forced: true })?;
                return Err(Refusal::SegmentidUsed);
            }
            unseen.extend(among.without(holder.member));
        }
        Ok(HeldGroup { local, is_first })
    }

    /// Another holder of a group, among these.
    fn holder_among(&mut self, group: usize, among: MemberRange) -> Option<Holder> {
        let (node, id) = (NodeId::GROUPS, SegmentId(group as u32));
        match self.call(Call::FindHolder { node, id, among }) {
            Ok(Value::Holder(holder)) => Some(holder),
            _ => None,
        }
    }

    /// Maps a part of a group that is connected to, for stores. They come to every holder but this host itself, also to those that
    /// have joined since; sequences are about the holders that the connection knows now.
    ///
    /// # Errors
    /// As the member refuses it.
    pub fn map_group(&mut self, remote: RemoteSegment, id: SegmentId, part: Part) -> Result<Mapped, Refusal> {
        let window = self.core().group_address(id.0 as usize).ok_or(Refusal::NoSuchSegment)?;
        let Value::MapRemote(_, _, part) = self.call(Call::MapRemote(remote, part))? else {
            return Err(Refusal::IllegalOperation);
        };
        let mapped = self.mapped(remote, window + part.offset, part.bytes);
        self.or_undone(Call::UnmapRemote(remote), mapped)
    }

    /// How many holders a connection knows at this moment; 1 if its segment is one member's alone.
    pub fn holders_of(&self, remote: RemoteSegment) -> usize {
        self.member.holders_of(remote)
    }
}
