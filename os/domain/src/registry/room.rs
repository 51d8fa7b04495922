//! Writing into files, where the program may have a limit on their size (RLIMIT_FSIZE).
//!
//! What the limit forbids is refused here: the kernel would send a signal that ends the process (SIGXFSZ), and the signals are the program's.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::words::BUCKET_BYTES;

/// Makes a file so long, with room for every word from now on.
pub(crate) fn make_room(fd: BorrowedFd<'_>, bytes: u64) -> Result<(), Errno> {
    allow(bytes)?;
    match rustix::fs::fallocate(fd, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        made => return made,
    }
    let zeros = [0; BUCKET_BYTES];
    (0..bytes).step_by(BUCKET_BYTES).try_for_each(|offset| write_whole(fd, &zeros, offset))
}

/// Writes all of these bytes, or fails.
pub(crate) fn write_whole(fd: impl AsFd, bytes: &[u8], offset: u64) -> Result<(), Errno> {
    // Also of a file that is as long already.
    allow(offset + bytes.len() as u64)?;
    match rustix::io::retry_on_intr(|| rustix::io::pwrite(&fd, bytes, offset)) {
        Ok(written) if written == bytes.len() => Ok(()),
        Ok(_) => Err(Errno::NOSPC),
        Err(errno) => Err(errno),
    }
}

/// Whether files may have so many bytes.
fn allow(bytes: u64) -> Result<(), Errno> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if limit < bytes => Err(Errno::FBIG),
        _ => Ok(()),
    }
}
