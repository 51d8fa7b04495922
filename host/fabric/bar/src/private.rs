//! Private segments: memory of this process alone, which DMA copies from and to. Nobody connects to them, so they are no part of what the members
//! share.

use std::sync::Arc;

use beeline_fabric::{Call, Done, Part, Refusal, Value};
use beeline_mmio::{MappedSegment, MemoryOptions, SegmentOptions, SharedMemory, page_bytes};

use crate::error::NotMapped;
use crate::shared::Shared;

/// Makes a private segment of so many bytes.
pub(crate) fn create(shared: &Shared, call: Call, bytes: u64) -> Result<Value, Refusal> {
    shared.check()?;
    let bytes = usize::try_from(bytes).map_err(|_| Refusal::Nospc)?;
    let memory = SharedMemory::create("beeline-private", bytes, MemoryOptions::default());
    let memory = memory.map_err(|error| {
        tracing::debug!(%error, bytes, "no memory for a private segment");
        Refusal::Nospc
    })?;
    shared.enter(|state, now| match state.member.call(call, now)? {
        Done::Now(value @ Value::Local(local, _)) => {
            state.private.insert(local, Arc::new(memory));
            Ok(value)
        }
        Done::Now(_) | Done::Wait(_) => Err(Refusal::System),
    })
}

/// Maps a part of one, and says where in the mapping it begins. `options` say for what, and at which address.
pub(crate) fn map(
    memory: &SharedMemory,
    part: Part,
    options: SegmentOptions,
) -> Result<(MappedSegment, usize), NotMapped> {
    let in_memory = |value: u64| usize::try_from(value).map_err(|_| Refusal::OutOfRange);
    let (offset, bytes) = (in_memory(part.offset)?, in_memory(part.bytes)?);
    let before = offset % page_bytes();
    let options = SegmentOptions {
        offset_bytes: (offset - before) as u64,
        bytes: Some(before + bytes),
        address: options.address.map(|address| address.wrapping_sub(before)),
        ..options
    };
    Ok((MappedSegment::memory(memory.fd(), &options)?, before))
}
