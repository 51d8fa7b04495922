//! Memory of the program that is locked into RAM.

use core::ptr::NonNull;

use super::super::process_maps;
use super::error::RegisterError;
use crate::MapError;

/// Whether some of the memory is locked into RAM.
pub(super) fn is_locked(address: usize, bytes: usize) -> bool {
    // What is known of each mapping takes the kernel as long as there are pages. Mostly nothing is locked.
    process_maps::has_locked() && process_maps::is_any_locked(address, bytes)
}

/// Locks memory into RAM.
pub(super) fn lock(start: NonNull<u8>, bytes: usize) -> Result<(), RegisterError> {
    // SAFETY: to lock memory changes no byte of it.
    unsafe { rustix::mm::mlock(start.as_ptr().cast(), bytes) }.map_err(|errno| {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
        RegisterError::NoMemory(MapError::Lock { bytes, limit_bytes: limit.unwrap_or(u64::MAX), errno })
    })
}
