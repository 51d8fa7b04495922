//! A descriptor that is readable when there may be something to do: an eventfd of this process, which no peer ever holds
//! (docs/decisions/0005-wake-ups-are-sockets.md says why not).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::{Arc, Weak};
use std::time::Duration;

use beeline_mmio::PerProcess;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::descriptor::{Descriptor, Held};
use crate::moving::{self, Movable, Registered};
use crate::numbers::Purpose;

/// A descriptor to poll. It is readable from the start and after [`Event::signal`], until [`Event::clear`]. Clones are the
/// same one.
#[derive(Clone, Debug)]
pub struct Event(Arc<State>);

#[derive(Debug)]
struct State {
    descriptor: Descriptor,
    /// What the program was given, which it may have put into a set by its number: it stands for the event as long as the event is
    /// there.
    shown: PerProcess<Held>,
    _moves: Registered,
}

impl Movable for State {
    fn move_above(&self, lowest: RawFd) -> io::Result<()> {
        if self.shown.get().is_some() {
            return Ok(());
        }
        Ok(self.descriptor.move_above(lowest, None)?)
    }
}

/// What clones of one event have in common, for as long as one of them is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EventKey(usize);

impl Event {
    /// Makes a readable one.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let descriptor = Descriptor::new(event, Purpose::Event);
        Ok(Event(Arc::new_cyclic(|event: &Weak<State>| State {
            descriptor,
            shown: PerProcess::new(),
            _moves: moving::register(event.clone()),
        })))
    }

    /// Makes it readable. Two system calls that never wait.
    pub fn signal(&self) {
        // Not into a file of the program that has got the number.
        let Ok(event) = self.0.descriptor.check_kind() else { return };
        // The only failure of a descriptor of ours is a full counter: it is readable.
        let _ = rustix::io::write(event, &1u64.to_ne_bytes());
    }

    /// Makes it unreadable until the next signal. Two system calls that never wait.
    pub fn clear(&self) {
        let Ok(event) = self.0.descriptor.check_kind() else { return };
        // The only failure of a descriptor of ours is an empty counter: it is unreadable.
        let _ = rustix::io::read(event, &mut [0u8; 8]);
    }

    /// Waits until it is readable, for at most `limit`; whether it is. A signal handler that runs meanwhile ends the wait.
    pub fn wait(&self, limit: Duration) -> bool {
        let Ok(tv_sec) = i64::try_from(limit.as_secs()) else {
            return self.wait(Duration::from_secs(1 << 40));
        };
        let limit = Timespec { tv_sec, tv_nsec: limit.subsec_nanos().into() };
        poll(&mut [PollFd::new(&self.0.descriptor.hold(), PollFlags::IN)], Some(&limit)) == Ok(1)
    }

    /// Whether both have one descriptor, so that a signal of either is a signal of both.
    pub fn is_same(&self, other: &Event) -> bool {
        self.key() == other.key()
    }

    pub(crate) fn key(&self) -> EventKey {
        EventKey(Arc::as_ptr(&self.0).addr())
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.shown.get_or_init(|| self.0.descriptor.hold()).as_fd()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn is_readable(event: impl AsFd) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&now)).unwrap() == 1
    }

    #[test]
    fn event_is_readable_until_it_is_cleared() {
        let event = Event::new().unwrap();
        assert!(is_readable(&event));
        event.clear();
        event.clear();
        assert!(!is_readable(&event));
        let clone = event.clone();
        clone.signal();
        clone.signal();
        assert!(is_readable(&event) && event.is_same(&clone));
        assert!(event.wait(Duration::MAX) && event.wait(Duration::ZERO));
        event.clear();
        assert!(!event.wait(Duration::ZERO) && !event.wait(Duration::from_micros(1)));
        assert!(!is_readable(&clone) && !event.is_same(&Event::new().unwrap()));
    }
}
