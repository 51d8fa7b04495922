//! Segments: what `include/beeline_segment.h` declares, each function a gate, a check and a call.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use std::os::fd::{AsFd, IntoRawFd};

use beeline::segment::{
    Access, CopyError, FaultGuard, HugePages, MapError, MappedSegment, OnLoss, Pages, SegmentError,
    SegmentOptions, create, create_huge,
};
use beeline_ffi::{
    Bytes, Failure, Handle, HandleVariable, Kind, Memory, Options, OptionsOfC, Out, Outcome, Pinned, Text,
    duplicate, edge,
};

use crate::window::status::{LOST, OK, REFUSED};

/// A segment of C. Any thread may use it.
pub struct beeline_segment(MappedSegment);

impl Kind for beeline_segment {
    const NAME: &'static str = "segment";
    const TAG: u8 = 0x3b;
}

/// Copies of some bytes cost little more than the handle: so its use costs nothing.
static SEGMENTS: Pinned<beeline_segment> = Pinned::new();

/// `struct beeline_segment_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct beeline_segment_options {
    size: usize,
    offset: u64,
    length: u64,
    address: *mut c_void,
    kind: u32,
    access: u32,
    pages: u32,
    huge_pages: u32,
    on_loss: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<beeline_segment_options>() == 56);

// SAFETY: `#[repr(C)]` above; integers and pointers, the first the size.
unsafe impl OptionsOfC for beeline_segment_options {
    const FIRST_BYTES: usize = 56;
}

/// One of the values that an option may have, by its number.
fn by_number<T: Copy>(values: &[T], number: u32, field: &str) -> Outcome<T> {
    values.get(number as usize).copied().ok_or_else(|| {
        let most = values.len() - 1;
        Failure::invalid(format!("options.{field} = {number}; it must be a number of its enum, 0 to {most}"))
    })
}

/// The segment's options, and whether the descriptor is of a file.
fn read(options: &Options<'_, beeline_segment_options>) -> Outcome<(SegmentOptions, bool)> {
    let Some(given) = options.read()? else { return Ok((SegmentOptions::default(), false)) };
    if given.reserved != 0 {
        return Err(Failure::invalid(format!("options.reserved = {}; it must be 0", given.reserved)));
    }
    let bytes = usize::try_from(given.length)
        .map_err(|_| Failure::invalid(format!("options.length = {}; nothing is that long", given.length)))?;
    let is_file = by_number(&[false, true], given.kind, "kind")?;
    let chosen = SegmentOptions {
        offset_bytes: given.offset,
        bytes: (bytes != 0).then_some(bytes),
        address: (!given.address.is_null()).then(|| given.address.addr()),
        access: by_number(&[Access::ReadWrite, Access::ReadOnly], given.access, "access")?,
        pages: by_number(&[Pages::Lazy, Pages::Present], given.pages, "pages")?,
        huge_pages: by_number(
            &[HugePages::No, HugePages::Wished, HugePages::Required],
            given.huge_pages,
            "huge_pages",
        )?,
        // Last: it may install a handler of SIGBUS, which options that are refused must not.
        on_loss: match by_number(&[0, 1, 2], given.on_loss, "on_loss")? {
            0 => OnLoss::Refused,
            1 => OnLoss::Fatal,
            _ => OnLoss::Guarded(FaultGuard::install().map_err(|error| of_segment(&error.into()))?),
        },
    };
    Ok((chosen, is_file))
}

#[cold]
fn of_segment(error: &SegmentError) -> Failure {
    match error {
        SegmentError::Unaligned { .. } | SegmentError::Outside { .. } | SegmentError::Size { .. } => {
            Failure::invalid(error.to_string())
        }
        _ => Failure::new(REFUSED, error.to_string()),
    }
}

#[cold]
fn of_map(error: &MapError) -> Failure {
    match error {
        MapError::Size { .. } => Failure::invalid(error.to_string()),
        _ => Failure::new(REFUSED, error.to_string()),
    }
}

#[cold]
fn of_copy(error: CopyError) -> Failure {
    match error {
        CopyError::Lost => Failure::new(LOST, error.to_string()),
        CopyError::Outside { .. } | CopyError::ReadOnly => Failure::invalid(error.to_string()),
    }
}

#[unsafe(no_mangle)]
extern "C" fn beeline_segment_create(
    name: Text<'_>,
    length: usize,
    huge_pages: c_int,
    descriptor: Out<'_, c_int>,
) -> c_int {
    edge("beeline_segment_create", || {
        descriptor.put(-1, "descriptor")?;
        let name = name.read("name")?;
        let memory = match huge_pages {
            0 => create(name, length),
            1 => create_huge(name, length),
            other => return Err(Failure::invalid(format!("huge_pages = {other}; it must be 0 or 1"))),
        };
        let memory = memory.map_err(|error| of_map(&error))?;
        descriptor.put(memory.into_raw_fd(), "descriptor")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_segment_map(
    descriptor: c_int,
    options: Options<'_, beeline_segment_options>,
    segment: Out<'_, Handle<beeline_segment>>,
) -> c_int {
    edge("beeline_segment_map", || {
        segment.put(Handle::NULL, "segment")?;
        // A copy of our own: another thread may close the number that C gave.
        let memory = duplicate(descriptor)
            .map_err(|error| Failure::invalid(format!("descriptor = {descriptor}; {error}")))?;
        let (options, is_file) = read(&options)?;
        let mapped = if is_file {
            MappedSegment::file(memory.as_fd(), &options)
        } else {
            MappedSegment::memory(memory.as_fd(), &options)
        };
        let mapped = beeline_segment(mapped.map_err(|error| of_segment(&error))?);
        segment.put(SEGMENTS.insert(mapped)?, "segment")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_segment_close(segment: HandleVariable<'_, beeline_segment>) -> c_int {
    edge("beeline_segment_close", || SEGMENTS.close(&segment, |_| ()).map(|_| OK))
}

#[unsafe(no_mangle)]
extern "C" fn beeline_segment_length(segment: Handle<beeline_segment>, length: Out<'_, usize>) -> c_int {
    edge("beeline_segment_length", || {
        length.put(0, "length")?;
        length.put(SEGMENTS.with(segment, |segment| segment.0.bytes())?, "length")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_segment_at(
    segment: Handle<beeline_segment>,
    offset: usize,
    length: usize,
    address: Out<'_, *mut c_void>,
) -> c_int {
    edge("beeline_segment_at", || {
        address.put(null_mut(), "address")?;
        SEGMENTS.with(segment, |segment| {
            let outside = || {
                let (bytes, whole) = (length, segment.0.bytes());
                of_copy(CopyError::Outside { bytes, offset_bytes: offset, whole })
            };
            let pointer = segment.0.pointer(offset, length).ok_or_else(outside)?;
            address.put(pointer.as_ptr().as_ptr().cast(), "address")?;
            Ok(OK)
        })?
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_segment_write(
    segment: Handle<beeline_segment>,
    offset: usize,
    bytes: Bytes<'_>,
    length: usize,
) -> c_int {
    edge("beeline_segment_write", || {
        SEGMENTS.with(segment, |segment| {
            segment.0.copy_in(offset, bytes.read(length, "bytes")?).map_err(of_copy)?;
            Ok(OK)
        })?
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_segment_read(
    segment: Handle<beeline_segment>,
    offset: usize,
    memory: Memory<'_>,
    length: usize,
) -> c_int {
    edge("beeline_segment_read", || {
        SEGMENTS.with(segment, |segment| {
            segment.0.copy_out(offset, memory.fill(length, "memory")?).map_err(of_copy)?;
            Ok(OK)
        })?
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_segment_is_intact(segment: Handle<beeline_segment>) -> c_int {
    edge("beeline_segment_is_intact", || {
        let is_intact = SEGMENTS.with(segment, |segment| segment.0.is_intact())?;
        if is_intact { Ok(OK) } else { Err(of_copy(CopyError::Lost)) }
    })
}
