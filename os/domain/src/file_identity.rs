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
    number: FileNumber,
}

/// Files without a name share an inode; what the kernel tells of some beside it, in `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileNumber {
    Event(u64),
    /// Of a pidfd. `None` once its process has gone, or where it is none of this namespace.
    Process(Option<u32>),
    /// Of an inotify: what it watches. `None` once that is gone.
    Watch(Option<Watched>),
    /// It is none of these, and every other that is none is like it.
    None,
    /// `/proc` does not say, as where a process has changed its root.
    Unknown,
    /// The file has an inode of its own, so that nothing more need be known of it.
    Needless,
}

/// What an inotify watches, and for which events. Another that watches the same for the same is like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Watched {
    device: u64,
    inode: u64,
    mask: u64,
}

impl FileNumber {
    /// Whether a file of which this was told may be one of which the other is told now.
    fn may_be(self, found: FileNumber) -> bool {
        match (self, found) {
            (FileNumber::None, _) | (_, FileNumber::None) => false,
            (FileNumber::Unknown, _) | (_, FileNumber::Unknown) => true,
            (FileNumber::Process(opened), FileNumber::Process(found)) => is_same_or_gone(opened, found),
            (FileNumber::Watch(opened), FileNumber::Watch(found)) => is_same_or_gone(opened, found),
            _ => self == found,
        }
    }
}

fn is_same_or_gone<T: PartialEq>(opened: Option<T>, found: Option<T>) -> bool {
    opened == found || opened.is_none() || found.is_none()
}

impl FileIdentity {
    pub(crate) fn of(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        let stat = rustix::fs::fstat(fd)?;
        let shares_inode =
            FileType::from_raw_mode(stat.st_mode) == FileType::Unknown && !is_numbered_pidfd(fd);
        let number = if shares_inode { file_number(fd) } else { FileNumber::Needless };
        Ok(FileIdentity { device: stat.st_dev, inode: stat.st_ino, number })
    }

    /// Whether `fd` is the file of this identity. One system call where the file has an inode of its own, as sockets have; for
    /// an event or an inotify, and for a pidfd before Linux 6.9, some more for a look at `/proc`.
    pub(crate) fn is_of(self, fd: BorrowedFd<'_>) -> bool {
        is_same_kind(fd, self) && (self.number == FileNumber::Needless || self.number.may_be(file_number(fd)))
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

/// The number of an eventfd, of the process of a pidfd, or of what an inotify watches.
fn file_number(fd: BorrowedFd<'_>) -> FileNumber {
    let fd = fd.as_raw_fd();
    let Ok(info) = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")) else {
        return FileNumber::Unknown;
    };
    let told = told_number(&info);
    // Of an inotify that watches nothing no line tells.
    let is_inotify = || {
        let kind = std::fs::read_link(format!("/proc/self/fd/{fd}"));
        kind.is_ok_and(|kind| kind.as_os_str() == "anon_inode:inotify")
    };
    if told == FileNumber::None && is_inotify() { FileNumber::Watch(None) } else { told }
}

/// What the lines say that the kernel has of an open file.
fn told_number(info: &str) -> FileNumber {
    let value = |name| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if let Some(number) = value("eventfd-id:").and_then(|number| number.parse().ok()) {
        return FileNumber::Event(number);
    }
    if let Some(process) = value("Pid:") {
        // It is -1 of a process that has gone, and 0 of one that has no number here.
        return FileNumber::Process(process.parse().ok().filter(|process| *process != 0));
    }
    if let Some(watch) = value("inotify ") {
        return FileNumber::Watch(told_watch(watch));
    }
    // An event before Linux 5.2 has no number.
    if value("eventfd-count:").is_some() { FileNumber::Unknown } else { FileNumber::None }
}

/// As in `wd:1 ino:992037 sdev:fe00000 mask:184 ignored_mask:0`, all hexadecimal.
fn told_watch(line: &str) -> Option<Watched> {
    let value = |name| {
        let value = line.split_ascii_whitespace().find_map(|word| word.strip_prefix(name))?;
        u64::from_str_radix(value, 16).ok()
    };
    Some(Watched { device: value("sdev:")?, inode: value("ino:")?, mask: value("mask:")? })
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::event::{EventfdFlags, eventfd};
    use rustix::fs::inotify;
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

    /// As on a kernel that gives all pidfds one inode, and every other file without a name the same.
    #[test]
    fn pidfd_that_shares_its_inode_is_told_from_another_and_from_files_that_have_no_number() {
        let (own, parent) = (pidfd(getpid()), pidfd(rustix::process::getppid().unwrap()));
        let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let epoll = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).unwrap();
        let is_own = |fd: &OwnedFd| file_number(own.as_fd()).may_be(file_number(fd.as_fd()));
        assert!(is_own(&own) && is_own(&own.try_clone().unwrap()));
        assert!(!is_own(&parent) && !is_own(&event) && !is_own(&epoll));
        let number = FileIdentity::of(epoll.as_fd()).unwrap().number;
        assert!(!number.may_be(file_number(epoll.as_fd())), "each is like every other");
    }

    #[test]
    fn inotify_is_told_from_others_by_what_it_watches_and_stays_itself_when_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let watch = |path: &Path| {
            let queue = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
            inotify::add_watch(&queue, path, inotify::WatchFlags::CREATE).unwrap();
            queue
        };
        let (ours, other) = (watch(folder.path()), watch(Path::new("/")));
        let epoll = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).unwrap();
        let identity = FileIdentity::of(ours.as_fd()).unwrap();
        let is_ours = |fd: &OwnedFd| identity.is_of(fd.as_fd());
        assert!(is_ours(&ours) && is_ours(&ours.try_clone().unwrap()));
        assert!(!is_ours(&other) && !is_ours(&epoll));
        drop(folder);
        assert!(is_ours(&ours) && !is_ours(&other) && !is_ours(&epoll));
    }

    #[test]
    fn process_that_has_gone_leaves_its_pidfd_what_it_was_and_an_old_event_may_be_any() {
        let told = told_number;
        let (one, gone) = (told("pos:\t0\nPid:\t12\nNSpid:\t12\n"), told("Pid:\t-1\nNSpid:\t-1\n"));
        assert_eq!((one, gone), (FileNumber::Process(Some(12)), FileNumber::Process(None)));
        assert!(one.may_be(gone) && gone.may_be(one) && !one.may_be(told("Pid:\t13\n")));
        assert_eq!(told("eventfd-count:  0\neventfd-id: 7\n"), FileNumber::Event(7));
        let old = told("pos:\t0\neventfd-count:  0\n");
        assert!(old.may_be(old) && !old.may_be(told("pos:\t0\n")));
    }

    /// Where the kernel gives pidfds inodes of their own, that is enough, and `/proc` is not read for them.
    #[test]
    fn numbered_pidfd_is_told_from_that_of_another_process() {
        let (own, parent) = (pidfd(getpid()), pidfd(rustix::process::getppid().unwrap()));
        if !is_numbered_pidfd(own.as_fd()) {
            return;
        }
        let identity = FileIdentity::of(own.as_fd()).unwrap();
        assert_eq!(identity.number, FileNumber::Needless);
        assert!(identity.is_of(own.as_fd()) && !identity.is_of(parent.as_fd()));
    }
}
