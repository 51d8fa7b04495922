//! Waiting for an offer that is not there yet.
//!
//! The kernel tells when a file appears in the domain's folder (inotify). A socket accepts connections a moment after its
//! file has appeared, which the kernel does not tell, and a folder that this user may only search or a network namespace
//! cannot be watched: those are polled, at bounded intervals.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, RawFd};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{OFlags, fcntl_getfl};

use crate::DomainConfig;
use crate::descriptor::Descriptor;
use crate::domain::Domain;
use crate::error::{ConnectError, DomainError};
use crate::folder::{Folder, FolderError};
use crate::moving::{self, Movable, Registered};
use crate::numbers::Purpose;
use crate::place::Place;
use crate::window::WindowError;

/// Between two attempts without an event, where the folder is watched.
const WATCHED_INTERVAL: Duration = Duration::from_millis(250);
/// The same where it is not, or where a socket is there on which nobody listens.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How near an attempt to connect came to an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// Nobody offers the name: it has no socket.
    NoSocket,
    /// The name has a socket on which nobody listens: its owner was killed, or is about to listen.
    NoListener,
}

/// Errors that tell whether an owner may still come.
pub trait MayArrive {
    /// `Some` where nobody offers the name now; `None` for an error that waiting does not cure.
    fn absence(&self) -> Option<Absence>;
}

impl MayArrive for ConnectError {
    fn absence(&self) -> Option<Absence> {
        match self {
            ConnectError::Absent { .. } => Some(Absence::NoSocket),
            ConnectError::OwnerDied { .. } => Some(Absence::NoListener),
            _ => None,
        }
    }
}

impl MayArrive for DomainError {
    fn absence(&self) -> Option<Absence> {
        let is_absent = matches!(self, DomainError::Folder(FolderError::ForeignAbsent { .. }));
        is_absent.then_some(Absence::NoSocket)
    }
}

impl MayArrive for WindowError {
    fn absence(&self) -> Option<Absence> {
        if let WindowError::Connect(error) = self { error.absence() } else { None }
    }
}

impl Domain {
    /// Opens another user's domain as [`Domain::open_foreign`] does, and waits for at most `timeout` until its owner has made
    /// it and opened it to other users. Looks again at bounded intervals: a folder that may not be read cannot be watched.
    ///
    /// # Errors
    /// As [`Domain::open_foreign`]: at once for what waiting does not cure, else when the time is over.
    pub fn open_foreign_awaiting(
        config: &DomainConfig,
        owner_uid: u32,
        timeout: Duration,
    ) -> Result<Domain, DomainError> {
        let started = Instant::now();
        loop {
            let error = match Domain::open_foreign(config, owner_uid) {
                Ok(domain) => return Ok(domain),
                Err(error) => error,
            };
            let left = timeout.saturating_sub(started.elapsed());
            if !error.owner_may_come() || left.is_zero() {
                return Err(error);
            }
            std::thread::sleep(left.min(POLL_INTERVAL));
        }
    }

    /// Repeats `attempt` while nobody offers the name that it connects to, for at most `timeout`; gives its last result.
    ///
    /// `attempt` is told how much of `timeout` is left, and runs at least once. Between attempts the thread sleeps until a
    /// file appears in the domain's folder, and looks again by itself after some milliseconds where the kernel cannot tell.
    ///
    /// # Errors
    /// What the last attempt gave: at once if it is not an absence, else when the time is over.
    pub fn retry_until_offered<T, E: MayArrive>(
        &self,
        timeout: Duration,
        mut attempt: impl FnMut(Duration) -> Result<T, E>,
    ) -> Result<T, E> {
        let started = Instant::now();
        let mut watch = None;
        loop {
            let error = match attempt(timeout.saturating_sub(started.elapsed())) {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let left = timeout.saturating_sub(started.elapsed());
            let Some(absence) = error.absence().filter(|_| !left.is_zero()) else { return Err(error) };
            match &watch {
                // What appeared between the attempt and the start of the watch is found by the next attempt.
                None => watch = Some(Watch::start(self.place())),
                Some(watch) => watch.wait(absence, left),
            }
        }
    }
}

/// Events of a folder, where it can be watched; a network namespace cannot.
struct Watch(Option<(Arc<Queue>, Registered)>);

/// The kernel's queue of such events.
struct Queue(Descriptor);

impl Movable for Queue {
    fn move_above(&self, lowest: RawFd) -> io::Result<()> {
        Ok(self.0.move_above(lowest, None)?)
    }
}

impl Watch {
    fn start(place: &Place) -> Watch {
        Watch(place.folder().and_then(|folder| Self::of(folder)))
    }

    fn of(folder: &Folder) -> Option<(Arc<Queue>, Registered)> {
        let events = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ATTRIB | WatchFlags::ONLYDIR;
        let watched = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).and_then(|queue| {
            let (path, _folder) = folder.through_descriptor(".");
            inotify::add_watch(&queue, path, events)?;
            let queue = Arc::new(Queue(Descriptor::new(queue, Purpose::Arrival)));
            let moves: Weak<Queue> = Arc::downgrade(&queue);
            Ok((queue, moving::register(moves)))
        });
        if let Err(error) = &watched {
            tracing::debug!(%error, folder = %folder.path().display(), "cannot watch the folder; it is polled");
        }
        watched.ok()
    }

    /// Sleeps until something changed in the folder, an interval is over, or `left` is.
    fn wait(&self, absence: Absence, left: Duration) {
        // Without the queue, or where other code of this process closed it, the folder is polled.
        let live = || self.0.as_ref().and_then(|(queue, _)| queue.0.check().ok());
        let (Some(queue), Absence::NoSocket) = (live(), absence) else {
            return std::thread::sleep(left.min(POLL_INTERVAL));
        };
        let limit = Timespec::try_from(left.min(WATCHED_INTERVAL)).expect("a quarter of a second fits");
        // An error (a signal) ends the sleep early, which costs one attempt.
        let _ = rustix::event::poll(&mut [PollFd::new(&queue, PollFlags::IN)], Some(&limit));
        // Its number may have become another file's meanwhile, from which nothing may be read.
        let Some(queue) = live() else { return };
        // One of the program's that watches nothing is like ours whose folder is gone, and a read of it could wait for ever.
        if !fcntl_getfl(&queue).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK)) {
            return;
        }
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(queue.as_fd(), &mut space);
        while events.next().is_ok() {}
    }
}
