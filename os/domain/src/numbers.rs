//! The numbers under which this library holds descriptors for a process: which there are, and above which they shall be.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use beeline_mmio::{PerProcess, ThisProcess};

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
    /// What tells a thread that waits for an offer of new files in a domain's folder.
    Arrival,
    /// Memory of a window that is made in advance, for the next sender.
    Window,
    /// The words of a registry, or its locks.
    Registry,
    /// The table of connections.
    Connections,
    /// What changes with who has a port ([`crate::PortMarks`]).
    PortMarks,
    /// What a sleeper is woken by, or the socket from which others are ([`crate::Bell`]).
    Bell,
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
            Purpose::Arrival => "the wait for an offer",
            Purpose::Window => "a window for the next sender",
            Purpose::Registry => "a registry",
            Purpose::Connections => "the table of connections",
            Purpose::PortMarks => "the marks of ports",
            Purpose::Bell => "a bell",
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
/// Memory of windows has a descriptor only while it is made and mapped, but for one that waits for the next sender, and those that peers send belong to who gets them.
pub fn descriptors() -> Vec<(RawFd, Purpose)> {
    held().iter().map(|(number, purpose)| (*number, *purpose)).collect()
}

/// Has every descriptor that the library opens from now on take a number of at least `lowest`; those that are open stay where
/// they are ([`crate::move_descriptors_above`] moves them). Call it before the first domain is opened, and a program that numbers,
/// closes or duplicates its own descriptors from below never meets ours.
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

/// The lowest number that a new descriptor may have.
pub(crate) fn lowest() -> RawFd {
    // Relaxed: a number alone.
    FLOOR.load(Ordering::Relaxed)
}

/// An open file under a number that is listed for as long as it is open.
#[derive(Debug)]
pub(crate) struct Number {
    /// `None` once it is being dropped.
    fd: Option<OwnedFd>,
    /// Whether the number stands for a file of somebody else, which must not be closed.
    is_lost: AtomicBool,
    made_by: ThisProcess,
}

impl Number {
    pub(crate) fn new(fd: OwnedFd, purpose: Purpose) -> Self {
        held().insert(fd.as_raw_fd(), purpose);
        Number { fd: Some(fd), is_lost: AtomicBool::new(false), made_by: ThisProcess::get() }
    }

    #[cfg(test)]
    #[cfg(not(loom))]
    pub(crate) fn fd_mut(&mut self) -> &mut OwnedFd {
        self.fd.as_mut().expect("it is taken out by the drop alone")
    }

    /// Has the number left open when this is dropped.
    pub(crate) fn set_lost(&self) {
        // Relaxed: the last owner's drop comes after it by the count of owners.
        self.is_lost.store(true, Ordering::Relaxed);
    }
}

impl AsFd for Number {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("it is taken out by the drop alone").as_fd()
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        let Some(fd) = self.fd.take() else { return };
        if self.made_by.is_this() {
            // Before it is closed: the next descriptor of ours may get the number at once.
            held().remove(&fd.as_raw_fd());
        }
        if *self.is_lost.get_mut() {
            let number = fd.into_raw_fd();
            tracing::error!(
                number,
                "other code of this process closed or replaced a descriptor of the library"
            );
        }
    }
}
