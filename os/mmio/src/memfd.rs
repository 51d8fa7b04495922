//! Descriptors of memory that has no size yet.

use std::os::fd::OwnedFd;

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::MapError;

/// A memfd that can be sealed and, where the kernel knows the flag (Linux 6.3), never executed.
pub(crate) fn create_memfd(name: &str, flags: MemfdFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => rustix::fs::memfd_create(name, flags),
        result => result,
    }
}

/// Gives a memfd its size. One that the limit on the size of files forbids is refused here: the kernel would send a signal
/// that ends the process (SIGXFSZ), and the signals are the program's.
pub(crate) fn set_size(fd: &OwnedFd, name: &str, bytes: usize) -> Result<(), MapError> {
    match getrlimit(Resource::Fsize).current {
        Some(limit_bytes) if limit_bytes < bytes as u64 => {
            Err(MapError::FileSize { name: name.to_owned(), bytes, limit_bytes })
        }
        _ => rustix::fs::ftruncate(fd, bytes as u64).map_err(|errno| MapError::Create {
            name: name.to_owned(),
            bytes,
            errno,
        }),
    }
}
