//! Which open file a number stands for.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

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
}

impl FileIdentity {
    pub(crate) fn of(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        let stat = rustix::fs::fstat(fd)?;
        let is_anonymous = FileType::from_raw_mode(stat.st_mode) == FileType::Unknown;
        let event = if is_anonymous { event_number(fd) } else { EventNumber::None };
        Ok(FileIdentity { device: stat.st_dev, inode: stat.st_ino, event })
    }

    pub(crate) fn is_same(self, other: Self) -> bool {
        let is_unknown = [self.event, other.event].contains(&EventNumber::Unknown);
        (self.device, self.inode) == (other.device, other.inode) && (is_unknown || self.event == other.event)
    }
}

/// Whether `fd` is of the same kind of file, by one system call: an event that took the number of an event is not noticed.
pub(crate) fn is_same_kind(fd: BorrowedFd<'_>, opened: FileIdentity) -> bool {
    let Ok(stat) = rustix::fs::fstat(fd) else { return false };
    (stat.st_dev, stat.st_ino) == (opened.device, opened.inode)
}

/// The number of an eventfd (Linux 5.2).
fn event_number(fd: BorrowedFd<'_>) -> EventNumber {
    let Ok(info) = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())) else {
        return EventNumber::Unknown;
    };
    let number = info.lines().find_map(|line| line.strip_prefix("eventfd-id:")?.trim().parse().ok());
    number.map_or(EventNumber::None, EventNumber::Event)
}
