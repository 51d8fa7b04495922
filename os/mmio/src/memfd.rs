//! Descriptors of memory that has no size yet.

use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, Mode};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::MapError;

/// Rights of a memfd. The kernel makes it everybody's to write: a process of any user that was passed a descriptor for reading could
/// open it anew for writing, through its own `/proc/self/fd`. Reading stays everybody's, since whoever has a descriptor may read
/// and opens it anew for that; nobody gets at the memory without one.
const MODE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::ROTH);

/// A memfd that can be sealed, that no other user opens anew for writing and that, where the kernel knows the flag (Linux 6.3), is
/// never executed.
pub(crate) fn create_memfd(name: &str, flags: MemfdFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = match rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => rustix::fs::memfd_create(name, flags),
        result => result,
    }?;
    rustix::fs::fchmod(&fd, MODE)?;
    Ok(fd)
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

/// Not on aarch64, where tests run in an emulator of one process.
#[cfg(all(test, not(miri), not(target_arch = "aarch64")))]
mod tests {
    use std::fs::File;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use rustix::fs::OFlags;

    use super::*;

    /// A user who is nobody's owner.
    const NOBODY: u32 = 65534;

    /// Whether a process of [`NOBODY`] that is passed `fd` can open its file anew, as the shell's `redirection` does.
    fn opens_anew(fd: &OwnedFd, redirection: &str) -> bool {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 3{redirection}/proc/self/fd/0")]).uid(NOBODY).gid(NOBODY);
        shell.stdin(Stdio::from(File::from(fd.try_clone().expect("a copy")))).stderr(Stdio::null());
        shell.status().expect("a shell").success()
    }

    #[test]
    fn another_user_opens_for_writing_nothing_that_it_was_passed_for_reading() {
        if !rustix::process::geteuid().is_root() {
            println!("left out: only root starts a process of another user");
            return;
        }
        let fd = create_memfd("beeline-test", MemfdFlags::empty()).unwrap();
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
        let read_only = rustix::fs::open(link, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        assert_eq!((opens_anew(&read_only, "<"), opens_anew(&read_only, "<>")), (true, false));
        // Whoever was passed a descriptor for both opens its file anew for reading, to map a segment read-only.
        assert!(opens_anew(&fd, "<"));
    }
}
