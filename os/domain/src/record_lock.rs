//! Record locks: exclusive locks of bytes of a file, which belong to the one process that took them (`fcntl`).
//!
//! Children do not have them, and the kernel ends them with the process. They keep no thread of the process itself out, and closing
//! *any* descriptor of the file ends all of them: whoever takes some has the file open once.

use std::os::fd::AsFd;

use nix::fcntl::FcntlArg;
use nix::libc;
use rustix::io::Errno;

/// Bytes of a file, which need not be there: the first one, and how many they are, 0 for all from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) i64, pub(crate) i64);

/// A lock that another process has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Other {
    /// 0 for a process outside this pid namespace, and for locks of other kinds.
    pub(crate) pid: u32,
    pub(crate) bytes: Bytes,
}

/// Locks bytes; `false` if another process has some of them locked.
pub(crate) fn try_lock(file: impl AsFd, bytes: Bytes) -> Result<bool, Errno> {
    match control(file, FcntlArg::F_SETLK(&lock(libc::F_WRLCK, bytes))) {
        Ok(()) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Gives up what this process has of these bytes.
pub(crate) fn unlock(file: impl AsFd, bytes: Bytes) -> Result<(), Errno> {
    control(file, FcntlArg::F_SETLK(&lock(libc::F_UNLCK, bytes)))
}

/// A lock of another process that keeps this one from locking bytes. Locks nothing.
pub(crate) fn other(file: impl AsFd, bytes: Bytes) -> Result<Option<Other>, Errno> {
    let mut found = lock(libc::F_WRLCK, bytes);
    control(file, FcntlArg::F_GETLK(&mut found))?;
    let is_free = found.l_type == libc::F_UNLCK as libc::c_short;
    Ok((!is_free).then(|| Other {
        pid: u32::try_from(found.l_pid).unwrap_or(0),
        bytes: Bytes(found.l_start, found.l_len),
    }))
}

fn control(file: impl AsFd, what: FcntlArg<'_>) -> Result<(), Errno> {
    match nix::fcntl::fcntl(file, what) {
        Ok(_) => Ok(()),
        Err(error) => Err(Errno::from_raw_os_error(error as i32)),
    }
}

fn lock(kind: i32, Bytes(start, count): Bytes) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: count,
        l_pid: 0,
    }
}
