//! Which open file a number stands for.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

/// The file system that has pidfds since Linux 6.9, and numbers them by their process.
const PID_FS_MAGIC: rustix::fs::FsWord = 0x5049_4446;

/// What tells an open file from others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
    event: EventNumber,
}

/// Files without a name share an inode; the kernel numbers events beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventNumber {
    Event(u64),
    /// Not an event.
    None,
    /// `/proc` does not say, as where a process has changed its root.
    Unknown,
    /// The file has an inode of its own, so that nothing more need be known of it.
    Needless,
}

impl FileIdentity {
    pub(crate) fn of(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        let stat = rustix::fs::fstat(fd)?;
        let shares_inode =
            FileType::from_raw_mode(stat.st_mode) == FileType::Unknown && !is_numbered_pidfd(fd);
        let event = if shares_inode { event_number(fd) } else { EventNumber::Needless };
        Ok(FileIdentity { device: stat.st_dev, inode: stat.st_ino, event })
    }

    /// Whether `fd` is the file of this identity. One system call where the file has an inode of its own, as sockets have; for
    /// an event, three more.
    pub(crate) fn is_of(self, fd: BorrowedFd<'_>) -> bool {
        is_same_kind(fd, self)
            && (self.event == EventNumber::Needless || {
                let found = event_number(fd);
                [self.event, found].contains(&EventNumber::Unknown) || self.event == found
            })
    }

    /// Whether `relative` in `parent` leads to the file of this identity, which has an inode of its own.
    pub(crate) fn is_named(self, parent: BorrowedFd<'_>, relative: &Path) -> bool {
        let named = rustix::fs::statat(parent, relative, AtFlags::SYMLINK_NOFOLLOW);
        named.is_ok_and(|named| (named.st_dev, named.st_ino) == (self.device, self.inode))
    }
}

/// Whether `fd` is of the same kind of file, by one system call: an event that took the number of an event is not noticed.
pub(crate) fn is_same_kind(fd: BorrowedFd<'_>, opened: FileIdentity) -> bool {
    let Ok(stat) = rustix::fs::fstat(fd) else { return false };
    (stat.st_dev, stat.st_ino) == (opened.device, opened.inode)
}

/// Whether a descriptor is a pidfd whose inode is the process's own. Those of kernels before Linux 6.9 are files without a name, all
/// with one inode.
pub(crate) fn is_numbered_pidfd(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|system| system.f_type == PID_FS_MAGIC)
}

/// The number of an eventfd (Linux 5.2).
fn event_number(fd: BorrowedFd<'_>) -> EventNumber {
    let Ok(info) = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())) else {
        return EventNumber::Unknown;
    };
    let number = info.lines().find_map(|line| line.strip_prefix("eventfd-id:")?.trim().parse().ok());
    number.map_or(EventNumber::None, EventNumber::Event)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::event::{EventfdFlags, eventfd};
    use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

    use super::*;

    fn pidfd(pid: Pid) -> OwnedFd {
        pidfd_open(pid, PidfdFlags::empty()).unwrap()
    }

    #[test]
    fn event_is_told_from_another_event_and_from_other_files() {
        let [one, other] = [0, 0].map(|count| eventfd(count, EventfdFlags::CLOEXEC).unwrap());
        let identity = FileIdentity::of(one.as_fd()).unwrap();
        assert!(identity.is_of(one.as_fd()) && identity.is_of(one.try_clone().unwrap().as_fd()));
        assert!(!identity.is_of(other.as_fd()));
        assert!(!identity.is_of(pidfd(getpid()).as_fd()));
        assert!(!FileIdentity::of(pidfd(getpid()).as_fd()).unwrap().is_of(one.as_fd()));
    }

    /// Where the kernel gives pidfds inodes of their own, that is enough, and `/proc` is not read for them.
    #[test]
    fn numbered_pidfd_is_told_from_that_of_another_process() {
        let (own, parent) = (pidfd(getpid()), pidfd(rustix::process::getppid().unwrap()));
        if !is_numbered_pidfd(own.as_fd()) {
            return;
        }
        let identity = FileIdentity::of(own.as_fd()).unwrap();
        assert_eq!(identity.event, EventNumber::Needless);
        assert!(identity.is_of(own.as_fd()) && !identity.is_of(parent.as_fd()));
    }
}
