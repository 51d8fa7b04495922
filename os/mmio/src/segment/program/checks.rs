//! What is at addresses of the program, as the kernel lists it.

use std::io;

use rustix::io::Errno;

use super::super::process_maps::{self, Entry};
use super::error::RegisterError;

/// Memory that is mapped for loads and, unless it is a source only, for stores.
pub(super) fn is_mapped(address: usize, bytes: usize, is_source_only: bool) -> Result<(), RegisterError> {
    all(address, bytes, |entry| match entry {
        Entry { is_readable: false, .. } => Err("may not be loaded"),
        Entry { is_writable: false, .. } if !is_source_only => Err("may not be stored to"),
        _ => Ok(()),
    })
}

/// Private memory without a file behind it, for loads and stores, that is no stack as far as that can be known: stacks of other threads
/// look as all memory does.
pub(super) fn is_private(address: usize, bytes: usize) -> Result<(), RegisterError> {
    all(address, bytes, |entry| match entry {
        Entry { is_shared: true, .. } => Err("is shared memory already"),
        Entry { inode: 1.., .. } => Err("is a private mapping of a file"),
        entry if entry.name().starts_with("[stack") => Err("is a stack"),
        Entry { is_readable: true, is_writable: true, .. } => Ok(()),
        _ => Err("is not for loads and stores"),
    })?;
    let end = address + bytes;
    match own_stack() {
        Some((start, stack_end)) if start < end && address < stack_end => {
            Err(refused((address, bytes), format!("the stack of this thread is at {start:#x}")))
        }
        _ => Ok(()),
    }
}

/// What is mapped there cannot be found out.
pub(super) fn not_known(address: usize, bytes: usize) -> impl Fn(io::Error) -> RegisterError {
    move |error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        RegisterError::Refused { address, bytes, what: "found in `/proc/self/maps`", errno }
    }
}

fn refused((address, bytes): (usize, usize), why: String) -> RegisterError {
    RegisterError::NotThere { address, bytes, why }
}

/// Whether every byte is mapped, and each mapping is such.
fn all(
    address: usize,
    bytes: usize,
    check: impl Fn(&Entry) -> Result<(), &'static str>,
) -> Result<(), RegisterError> {
    let range = (address, bytes);
    let mut next = address;
    for entry in process_maps::inside(address, bytes).map_err(not_known(address, bytes))? {
        if entry.start > next {
            break;
        }
        let at = entry.start.max(address);
        check(&entry).map_err(|why| refused(range, format!("at {at:#x} it {why} ({})", entry.name())))?;
        next = entry.end;
    }
    if next < address + bytes {
        return Err(refused(range, format!("nothing is mapped at {next:#x}")));
    }
    Ok(())
}

/// Where the stack of the calling thread begins and ends.
fn own_stack() -> Option<(usize, usize)> {
    let mut attributes = core::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: asks for the thread that calls.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: a living thread, and room for what is to be known of it.
    if unsafe { libc::pthread_getattr_np(thread, attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut start, mut bytes) = (core::ptr::null_mut(), 0);
    // SAFETY: filled by the call above, which has not failed.
    let found = unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut bytes) };
    // SAFETY: as above, and not used afterwards.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    (found == 0).then(|| (start.addr(), start.addr().saturating_add(bytes)))
}
