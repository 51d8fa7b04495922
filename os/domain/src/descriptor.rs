//! Descriptors that this library holds for a process: which there are, above which number, and whether each is still the file
//! that it was.
//!
//! Other code of the process may close a descriptor of ours (`closefrom`, `close_range`), or have another file take its number
//! (`dup2`, or the next `open` after such a close). So before a number is used, and before it is closed, the file behind it is
//! compared with the one that was opened. Between that look and the use another thread may still take the number: this finds
//! a loss, it does not prevent one.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beeline_mmio::{PerProcess, ThisProcess};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fs::FileType;
use rustix::io::Errno;

/// What a descriptor of the library is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// A folder of a domain, or the one that holds the domains.
    Folder,
    /// The network namespace in which a domain lies.
    Namespace,
    /// The lock file of a name that this process offers.
    Claim,
    /// The socket of an offer, on which it listens.
    Offer,
    /// The socket of a connection.
    Connection,
    /// The process at the other end of a connection.
    Process,
    /// What a domain's thread waits on.
    Epoll,
    /// What wakes a domain's thread, or what a program waits on ([`crate::Event`]).
    Event,
}

impl fmt::Display for Purpose {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Purpose::Folder => "a domain's folder",
            Purpose::Namespace => "a domain's network namespace",
            Purpose::Claim => "the lock of an offer",
            Purpose::Offer => "the socket of an offer",
            Purpose::Connection => "the socket of a connection",
            Purpose::Process => "a peer's process",
            Purpose::Epoll => "the epoll of a domain's thread",
            Purpose::Event => "an event",
        })
    }
}

/// Descriptors of this process; a forked child begins with none, and its parent's lock may be locked for ever there.
static HELD: PerProcess<Mutex<BTreeMap<RawFd, Purpose>>> = PerProcess::new();
/// The lowest number that a new descriptor may have.
static FLOOR: AtomicI32 = AtomicI32::new(0);

fn held() -> MutexGuard<'static, BTreeMap<RawFd, Purpose>> {
    // Changed by single inserts and removals.
    HELD.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The descriptors that this library has open for domains, offers, connections and events of this process, by number. Those
/// that a child of fork inherited are not among them: nothing there uses them.
///
/// Memory of windows has a descriptor only while it is made and mapped, and those that peers send belong to who gets them.
pub fn descriptors() -> Vec<(RawFd, Purpose)> {
    held().iter().map(|(number, purpose)| (*number, *purpose)).collect()
}

/// Has every descriptor that the library opens from now on take a number of at least `lowest`; those that are open stay where
/// they are. Call it before the first domain is opened, and a program that numbers, closes or duplicates its own descriptors
/// from below never meets ours.
///
/// # Errors
/// The process may not have such numbers (`RLIMIT_NOFILE`).
pub fn place_descriptors_above(lowest: RawFd) -> io::Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let is_possible = u64::try_from(lowest).is_ok_and(|lowest| limit.is_none_or(|limit| lowest < limit));
    if !is_possible {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "RLIMIT_NOFILE allows no such descriptor"));
    }
    // Relaxed: a number alone.
    FLOOR.store(lowest, Ordering::Relaxed);
    Ok(())
}

/// A descriptor of ours, and which file it was opened as.
#[derive(Debug)]
pub(crate) struct Descriptor {
    /// `None` once it is being dropped.
    fd: Option<OwnedFd>,
    identity: Identity,
    made_by: ThisProcess,
}

/// What tells our file from others that may take its number.
#[derive(Debug)]
enum Identity {
    /// `None`: the kernel did not say, so that it is never ours.
    File(Option<FileIdentity>),
    /// An epoll is like every other; ours has an event in it that no other has.
    Epoll { event: Arc<Descriptor>, token: u64 },
    /// An epoll of ours watches it, and finds it by its number and by the file behind the number.
    Watched { by: Arc<Descriptor>, token: u64 },
}

/// What tells an open file from others.
#[derive(Clone, Copy, Debug)]
struct FileIdentity {
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
    fn of(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        let stat = rustix::fs::fstat(fd)?;
        let is_anonymous = FileType::from_raw_mode(stat.st_mode) == FileType::Unknown;
        let event = if is_anonymous { event_number(fd) } else { EventNumber::None };
        Ok(FileIdentity { device: stat.st_dev, inode: stat.st_ino, event })
    }

    fn is_same(self, other: Self) -> bool {
        let is_unknown = [self.event, other.event].contains(&EventNumber::Unknown);
        (self.device, self.inode) == (other.device, other.inode) && (is_unknown || self.event == other.event)
    }
}

/// The number of an eventfd (Linux 5.2).
fn event_number(fd: BorrowedFd<'_>) -> EventNumber {
    let Ok(info) = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())) else {
        return EventNumber::Unknown;
    };
    let number = info.lines().find_map(|line| line.strip_prefix("eventfd-id:")?.trim().parse().ok());
    number.map_or(EventNumber::None, EventNumber::Event)
}

/// Gives a new descriptor a number that is high enough. Where there is none free, the one it has is better than none.
fn raise(fd: OwnedFd) -> OwnedFd {
    // Relaxed: a number alone.
    let lowest = FLOOR.load(Ordering::Relaxed);
    let raised =
        if fd.as_raw_fd() < lowest { rustix::io::fcntl_dupfd_cloexec(&fd, lowest).ok() } else { None };
    raised.unwrap_or(fd)
}

impl Descriptor {
    /// Takes a new descriptor in, under a number that is high enough.
    pub(crate) fn new(fd: OwnedFd, purpose: Purpose) -> Self {
        let fd = raise(fd);
        let identity = Identity::File(FileIdentity::of(fd.as_fd()).ok());
        Self::list(fd, purpose, identity)
    }

    /// Takes a new epoll in and has it watch `event`, with `token`.
    pub(crate) fn epoll(epoll: OwnedFd, event: &Arc<Descriptor>, token: u64) -> Result<Self, Errno> {
        let epoll = raise(epoll);
        epoll::add(&epoll, &**event, EventData::new_u64(token), EventFlags::IN)?;
        let identity = Identity::Epoll { event: Arc::clone(event), token };
        Ok(Self::list(epoll, Purpose::Epoll, identity))
    }

    /// Takes a new descriptor in, and has `epoll` watch it with `token` for as long as it is open.
    pub(crate) fn watched(
        fd: OwnedFd,
        purpose: Purpose,
        by: &Arc<Descriptor>,
        token: u64,
    ) -> Result<Self, Errno> {
        let fd = raise(fd);
        epoll::add(&**by, &fd, EventData::new_u64(token), EventFlags::IN)?;
        Ok(Self::list(fd, purpose, Identity::Watched { by: Arc::clone(by), token }))
    }

    fn list(fd: OwnedFd, purpose: Purpose, identity: Identity) -> Self {
        held().insert(fd.as_raw_fd(), purpose);
        Descriptor { fd: Some(fd), identity, made_by: ThisProcess::get() }
    }

    /// Whether the number still stands for the file that it was made for. One system call; for an event, three more. For an
    /// epoll, whether the event in it is still ours, too.
    pub(crate) fn is_ours(&self) -> bool {
        match &self.identity {
            Identity::File(opened) => {
                let found = FileIdentity::of(self.as_fd());
                matches!((found, opened), (Ok(found), Some(opened)) if found.is_same(*opened))
            }
            // The kernel finds it by its number and by the file behind the number.
            Identity::Epoll { event, token } => {
                epoll::modify(self.as_fd(), &**event, EventData::new_u64(*token), EventFlags::IN).is_ok()
            }
            Identity::Watched { by, token } => {
                epoll::modify(&**by, self.as_fd(), EventData::new_u64(*token), EventFlags::IN).is_ok()
            }
        }
    }

    /// As [`Descriptor::is_ours`] by one system call, but an event that took the number of an event is not noticed.
    pub(crate) fn is_same_kind(&self) -> bool {
        let (Identity::File(Some(opened)), Ok(stat)) = (&self.identity, rustix::fs::fstat(self)) else {
            return false;
        };
        (stat.st_dev, stat.st_ino) == (opened.device, opened.inode)
    }

    /// Fails with `BADF` where the number no longer stands for the file that it was made for.
    pub(crate) fn check(&self) -> Result<BorrowedFd<'_>, Errno> {
        if self.is_ours() { Ok(self.as_fd()) } else { Err(Errno::BADF) }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("it is taken out by the drop alone").as_fd()
    }
}

impl Drop for Descriptor {
    /// Closes the file, unless the number stands for one of somebody else.
    fn drop(&mut self) {
        let is_ours = self.is_ours();
        let Some(fd) = self.fd.take() else { return };
        if self.made_by.is_this() {
            // Before it is closed: the next descriptor of ours may get the number at once.
            held().remove(&fd.as_raw_fd());
        }
        if !is_ours {
            let number = fd.into_raw_fd();
            tracing::error!(
                number,
                "other code of this process closed or replaced a descriptor of the library"
            );
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn event() -> OwnedFd {
        use rustix::event::{EventfdFlags, eventfd};
        eventfd(0, EventfdFlags::CLOEXEC).unwrap()
    }

    fn file() -> OwnedFd {
        rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap()
    }

    #[test]
    fn descriptor_is_listed_until_it_is_dropped() {
        let ours = Descriptor::new(event(), Purpose::Event);
        let number = ours.as_fd().as_raw_fd();
        assert!(ours.is_ours() && ours.check().is_ok());
        assert!(descriptors().contains(&(number, Purpose::Event)));
        drop(ours);
        assert!(!descriptors().contains(&(number, Purpose::Event)));
    }

    #[test]
    fn file_that_took_the_number_is_noticed_and_not_closed() {
        for (mine, other) in [(event(), file()), (file(), event()), (event(), event()), (file(), file())] {
            let mut ours = Descriptor::new(mine, Purpose::Event);
            let (reader, writer) = std::io::pipe().unwrap();
            for theirs in [&other, &OwnedFd::from(writer)] {
                // As `dup2` of other code does it, which knows the number alone.
                rustix::io::dup2(theirs, ours.fd.as_mut().unwrap()).unwrap();
                assert!(!ours.is_ours());
                assert_eq!(ours.check().err(), Some(Errno::BADF));
            }
            let number = ours.as_fd().as_raw_fd();
            drop(ours);
            // The copy of the writing end is still there, and is all that keeps the pipe open.
            assert_eq!(rustix::io::ioctl_fionread(&reader), Ok(0));
            let found = std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
            assert!(found.to_str().unwrap().starts_with("pipe:"), "{found:?}");
            nix::unistd::close(number).unwrap();
        }
    }

    #[test]
    fn number_that_the_process_may_not_have_is_refused() {
        for lowest in [-1, RawFd::MAX] {
            assert!(place_descriptors_above(lowest).is_err());
        }
    }
}
