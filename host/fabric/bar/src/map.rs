//! A part of a segment: bytes of the memory, which is mapped once.

use std::num::NonZeroU64;
use std::ptr::NonNull;
use std::sync::Arc;

use beeline_fabric::{Call, Done, Memory, Part, Refusal, Value};
use beeline_fabric_transfer::{Of, Place};
use beeline_mmio::{Access, CopyError, MappedPointer, MappedSegment, SegmentOptions};

use crate::error::NotMapped;
use crate::joint::Joint;
use crate::private;
use crate::shared::{Shared, State};

/// How a part of a segment is mapped. The default is for loads and stores, at any address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BarMapOptions {
    /// For loads alone, or stores too.
    pub access: Access,
    /// Where its first byte is to be: as far behind a page as the part is in the memory, and never in the place of another mapping.
    pub address: Option<usize>,
    /// Not through the caches: each load and store is one of the device's bus, in the order of the program.
    pub is_uncached: bool,
}

/// A part of a segment, until it is dropped. As long as it is there nobody else gets the memory of a segment's member that has gone.
#[derive(Debug)]
pub struct BarMap {
    shared: Arc<Shared>,
    pointer: MappedPointer,
    /// A mapping for this part alone: not of loads and stores, or at an address that was asked for.
    own: Option<MappedSegment>,
    /// Where in its mapping it begins.
    start: usize,
    of: Of,
    /// The slot whose area it is in; that of this member for memory of this process alone.
    slot: usize,
    is_private: bool,
    /// The memory of several holders that it uses, if it is of one.
    group: Option<NonZeroU64>,
}

impl BarMap {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        of: Of,
        part: Part,
        options: BarMapOptions,
    ) -> Result<Self, NotMapped> {
        shared.check()?;
        if options.is_uncached && !shared.space.source.is_uncached() {
            return Err(NotMapped::Cached);
        }
        let call = match of {
            Of::Local(local) => Call::MapLocal(local, part),
            Of::Remote(remote) => Call::MapRemote(remote, part),
        };
        shared.enter(|state, now| {
            let Done::Now(value) = state.member.call(call, now)? else { return Err(Refusal::System.into()) };
            let group = group_of(state, (value, of));
            let joint = group.map(|group| state.joints.begin(group, &mut state.peers)).transpose();
            let mapped = joint.map_err(NotMapped::from).and_then(|joint| {
                let placed = place(shared, state, (value, of), joint, options);
                let mapped = placed.and_then(|Placed { slot, own, start, bytes, is_private }| {
                    let segment = own.as_ref().unwrap_or(&shared.space.segment);
                    let pointer = segment.pointer(start, bytes).ok_or(NotMapped::Outside)?;
                    Ok(BarMap {
                        shared: Arc::clone(shared),
                        pointer,
                        own,
                        start,
                        of,
                        slot,
                        is_private,
                        group,
                    })
                });
                mapped.inspect_err(|_| {
                    group.into_iter().for_each(|group| state.joints.end(group, &mut state.peers));
                })
            });
            match &mapped {
                Ok(map) => state.peers[map.slot].maps += 1,
                Err(_) => unmap(state, of, now),
            }
            mapped
        })
    }

    /// The first byte. Valid until this is dropped, and not counted; what may be done with it is said at
    /// [`MappedSegment::as_ptr`](beeline_mmio::MappedSegment::as_ptr).
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.pointer.as_ptr()
    }

    /// Returns the bytes of the part.
    pub fn bytes(&self) -> usize {
        self.pointer.bytes()
    }

    /// Returns what the part may be used for.
    pub fn access(&self) -> Access {
        self.pointer.access()
    }

    /// Whether no access has met memory that was gone, of the part or of what the members share.
    pub fn is_intact(&self) -> bool {
        self.pointer.is_intact() && self.shared.space.is_intact()
    }

    /// Whether it is of a device, whose maps are not cached.
    pub fn is_device(&self) -> bool {
        !self.is_private && self.shared.space.is_device()
    }

    /// Copies bytes into the part, as [`MappedSegment::copy_in`](beeline_mmio::MappedSegment::copy_in) does.
    ///
    /// # Errors
    /// They reach outside, or memory is gone.
    pub fn copy_in(&self, offset_bytes: usize, bytes: &[u8]) -> Result<(), CopyError> {
        self.segment().copy_in(self.at(offset_bytes, bytes.len())?, bytes)
    }

    /// Copies bytes out of the part, as [`MappedSegment::copy_out`](beeline_mmio::MappedSegment::copy_out) does.
    ///
    /// # Errors
    /// They reach outside, or memory is gone.
    pub fn copy_out(&self, offset_bytes: usize, bytes: &mut [u8]) -> Result<(), CopyError> {
        self.segment().copy_out(self.at(offset_bytes, bytes.len())?, bytes)
    }

    fn segment(&self) -> &MappedSegment {
        self.own.as_ref().unwrap_or(&self.shared.space.segment)
    }

    /// Where in its mapping it begins.
    pub(crate) fn place(&self) -> Place<'_> {
        Place { segment: self.segment(), start: self.start, bytes: self.bytes() }
    }

    fn at(&self, offset_bytes: usize, bytes: usize) -> Result<usize, CopyError> {
        let whole = self.bytes();
        if offset_bytes > whole || bytes > whole - offset_bytes {
            return Err(CopyError::Outside { bytes, offset_bytes, whole });
        }
        Ok(self.start + offset_bytes)
    }
}

/// The memory of several holders that is to be mapped, if it is one.
fn group_of(state: &State, mapped: (Value, Of)) -> Option<NonZeroU64> {
    match mapped {
        (Value::MapLocal(Memory::Own { .. }, _), Of::Local(local)) => {
            state.holdings.get(&local).map(|holding| holding.group)
        }
        // Also where it is in the bank of the member that shares it, which may remove it.
        (Value::MapRemote(..), Of::Remote(remote)) => state.member.group_of(remote),
        _ => None,
    }
}

/// Where a part is.
struct Placed {
    slot: usize,
    /// The mapping that it has for itself, if it has one.
    own: Option<MappedSegment>,
    start: usize,
    bytes: usize,
    is_private: bool,
}

fn place(
    shared: &Shared,
    state: &mut State,
    (value, of): (Value, Of),
    joint: Option<Joint>,
    options: BarMapOptions,
) -> Result<Placed, NotMapped> {
    if let (Some(joint), Value::MapLocal(_, part) | Value::MapRemote(_, _, part)) = (joint, value) {
        // What a connection says of its size is what another member says.
        let (start, bytes) = joint.place(part).ok_or(NotMapped::Outside)?;
        let (own, start) = own_mapping(shared, (start, bytes), options)?;
        return Ok(Placed { slot: joint.slot, own, start, bytes, is_private: false });
    }
    if let (Value::MapLocal(Memory::Own { .. }, part), Of::Local(local)) = (value, of) {
        if options.is_uncached {
            return Err(NotMapped::Cached);
        }
        let memory = state.private.get(&local).ok_or(Refusal::System)?;
        let BarMapOptions { access, address, .. } = options;
        let bytes = usize::try_from(part.bytes).map_err(|_| Refusal::OutOfRange)?;
        let (own, start) =
            private::map(memory, part, SegmentOptions { access, address, ..SegmentOptions::default() })?;
        return Ok(Placed { slot: shared.slot, own: Some(own), start, bytes, is_private: true });
    }
    let (slot, start, bytes) = found(shared, state, value).ok_or(NotMapped::Outside)?;
    let (own, start) = own_mapping(shared, (start, bytes), options)?;
    Ok(Placed { slot, own, start, bytes, is_private: false })
}

/// The mapping that a part needs for itself, and where in its mapping it begins.
fn own_mapping(
    shared: &Shared,
    (start, bytes): (usize, usize),
    options: BarMapOptions,
) -> Result<(Option<MappedSegment>, usize), NotMapped> {
    let BarMapOptions { access, address, .. } = options;
    if access == Access::ReadWrite && address.is_none() {
        return Ok((None, start));
    }
    let options = SegmentOptions { access, address, ..SegmentOptions::default() };
    let (own, start) = shared.space.map_again((start, bytes), options)?;
    Ok((Some(own), start))
}

/// The slot whose area it is, where in the memory it begins, and its size.
fn found(shared: &Shared, state: &mut State, value: Value) -> Option<(usize, usize, usize)> {
    let (slot, offset, part) = match value {
        Value::MapLocal(Memory::Bank { offset }, part) => (shared.slot, offset, part),
        // Where it lies is what the other member has said.
        Value::MapRemote(pair, Memory::Bank { offset }, part) => (state.peer_of(pair)?.slot, offset, part),
        _ => return None,
    };
    let (start, bytes) = shared.space.layout.place(slot, offset, part)?;
    Some((slot, start, bytes))
}

fn unmap(state: &mut State, of: Of, now: beeline_fabric::Nanos) {
    let call = match of {
        Of::Local(local) => Call::UnmapLocal(local),
        Of::Remote(remote) => Call::UnmapRemote(remote),
    };
    if let Err(refusal) = state.member.call(call, now) {
        tracing::debug!(%refusal, "a map is dropped that is not counted");
    }
}

impl Drop for BarMap {
    fn drop(&mut self) {
        if !self.shared.process.is_this() {
            return;
        }
        self.shared.unmap(self.slot, |state, now| {
            unmap(state, self.of, now);
            state.peers[self.slot].maps -= 1;
            self.group.into_iter().for_each(|group| state.joints.end(group, &mut state.peers));
        });
    }
}
