//! A part of a segment, mapped.

use std::ptr::NonNull;
use std::sync::Arc;

use beeline_fabric::{Call, Part, Refusal};
use beeline_fabric_transfer::Of;
use beeline_mmio::{Access, CopyError, MappedSegment, Pages, RegisteredMemory, SegmentOptions};

use crate::error::NotMapped;
use crate::fetch::{Found, Place};
use crate::shared::Shared;

/// Pages of what is not larger are brought in when it is mapped, the others when they are touched.
const PRESENT_BYTES: u64 = 64 << 10;

/// How a part of a segment is mapped. The default is for loads and stores, at any address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapOptions {
    /// For loads alone, or stores too.
    pub access: Access,
    /// Where its first byte is to be: as far behind a page as the part is in its segment, and never in the place of another mapping.
    pub address: Option<usize>,
    /// Not through the caches: each load and store is one of the device's bus, in the order of the program. Memory of the host has no such
    /// maps.
    pub is_uncached: bool,
}

/// A part of a segment that is mapped into this process, until it is dropped. Memory of a segment whose member has gone stays as long as
/// it is mapped.
#[derive(Debug)]
pub struct Map {
    /// Nothing once it is unmapped.
    segment: Option<MappedSegment>,
    /// Where in `segment` the part begins.
    start: usize,
    /// Where the part begins on the bus.
    bus_address: Option<u64>,
    of: Of,
    shared: Arc<Shared>,
}

impl Map {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        of: Of,
        part: Part,
        options: MapOptions,
    ) -> Result<Self, NotMapped> {
        let found = shared.call_to_map(of, part)?;
        // From here on the segment counts a map, which is dropped with this.
        let mut map = Map { segment: None, start: 0, bus_address: None, of, shared: Arc::clone(shared) };
        let (segment, start) = match found {
            Found::Program(memory) => (in_program(&memory, part, options)?, 0),
            found => {
                let place = shared.have(found, of, part)?;
                map.bus_address = place.bus_address();
                map_in(&place, options)?
            }
        };
        (map.segment, map.start) = (Some(segment), start);
        Ok(map)
    }

    /// Returns what the part may be used for.
    #[inline]
    pub fn access(&self) -> Access {
        self.mapped().access()
    }

    /// Returns the bytes of the part.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.segment.as_ref().map_or(0, |segment| segment.bytes() - self.start)
    }

    /// The first byte. Valid until this is dropped, and not counted; what may be done with it is said at [`MappedSegment::as_ptr`].
    #[inline]
    pub fn as_ptr(&self) -> NonNull<u8> {
        let start = self.mapped().as_ptr();
        NonNull::new(start.as_ptr().wrapping_add(self.start)).expect("inside a mapping, which is not at 0")
    }

    /// Where the part begins on the bus, if it is of a device. A device that reaches that one uses this address.
    pub fn bus_address(&self) -> Option<u64> {
        self.bus_address
    }

    /// Copies bytes into the part, as [`MappedSegment::copy_in`] does.
    ///
    /// # Errors
    /// They reach outside.
    pub fn copy_in(&self, offset_bytes: usize, bytes: &[u8]) -> Result<(), CopyError> {
        self.mapped().copy_in(self.start.saturating_add(offset_bytes), bytes)
    }

    /// Copies bytes out of the part, as [`MappedSegment::copy_out`] does.
    ///
    /// # Errors
    /// They reach outside.
    pub fn copy_out(&self, offset_bytes: usize, bytes: &mut [u8]) -> Result<(), CopyError> {
        self.mapped().copy_out(self.start.saturating_add(offset_bytes), bytes)
    }

    /// The mapping, and where in it the part begins.
    pub(crate) fn mapping(&self) -> (&MappedSegment, usize) {
        (self.mapped(), self.start)
    }

    #[inline]
    fn mapped(&self) -> &MappedSegment {
        self.segment.as_ref().expect("nobody has a map that is not mapped")
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // First: afterwards the segment may be removed.
        self.segment = None;
        let unmap = match self.of {
            Of::Local(local) => Call::UnmapLocal(local),
            Of::Remote(remote) => Call::UnmapRemote(remote),
        };
        if let Err(refusal) = self.shared.call(unmap) {
            tracing::debug!(%refusal, "a map is dropped where there is no segment");
        }
    }
}

/// A part of memory of the program at the addresses that it has there.
fn in_program(
    memory: &Arc<RegisteredMemory>,
    part: Part,
    options: MapOptions,
) -> Result<MappedSegment, NotMapped> {
    if options.is_uncached {
        return Err(NotMapped::Cached);
    }
    let in_memory = |value: u64| usize::try_from(value).map_err(|_| Refusal::OutOfRange);
    let (offset, bytes) = (in_memory(part.offset)?, in_memory(part.bytes)?);
    if options.address.is_some_and(|address| address != memory.address().wrapping_add(offset)) {
        return Err(Refusal::IllegalAddress.into());
    }
    match memory.segment(offset, bytes, options.access) {
        Ok(segment) => Ok(segment.ok_or(Refusal::System)?),
        Err(CopyError::ReadOnly) => Err(Refusal::IllegalOperation.into()),
        Err(_) => Err(Refusal::OutOfRange.into()),
    }
}

/// Maps a part of a segment, and says where in the mapping it begins. What a peer says of its bank is checked against the memory that it has
/// passed.
fn map_in(place: &Place, options: MapOptions) -> Result<(MappedSegment, usize), NotMapped> {
    let Place { memory, offset, part } = place;
    let first = memory.offset_bytes().checked_add(*offset).and_then(|first| first.checked_add(part.offset));
    let first = first.ok_or(Refusal::OutOfRange)?;
    let start = first % memory.page_bytes().map_err(NotMapped::Unexamined)?;
    let bytes = usize::try_from(part.bytes).ok().and_then(|bytes| bytes.checked_add(start as usize));
    let pages = if part.bytes <= PRESENT_BYTES { Pages::Present } else { Pages::Lazy };
    let mapped = SegmentOptions {
        offset_bytes: first - start,
        bytes: Some(bytes.ok_or(Refusal::Nospc)?),
        pages,
        access: options.access,
        // One that is below `start` is no multiple of a page, which is said.
        address: options.address.map(|address| address.wrapping_sub(start as usize)),
        ..SegmentOptions::default()
    };
    Ok((memory.map(options.is_uncached, mapped)?, start as usize))
}
