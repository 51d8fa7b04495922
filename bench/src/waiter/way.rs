//! What one thread waits for, and how: the two ends of many windows, eventfds or sockets.

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::BenchError;

/// Longest single sleep, after which a side looks whether the other one has failed.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// Events that are taken of an epoll set at a time.
const EVENTS: usize = 64;

/// The end that sends into one of many.
pub(super) trait Sends: Send {
    /// Whether it was sent; there is no room otherwise.
    fn try_send(&mut self, number: usize, stamp: u64) -> Result<bool, BenchError>;
}

/// The end that waits for all of them.
pub(super) trait Waits: Send {
    /// Takes what has come, and waits for it, for a second at most: how many messages.
    fn take(&mut self) -> Result<u64, BenchError>;
}

/// Both ends of something that was made once and is measured in many rounds.
pub(super) struct Rig {
    pub(super) sends: Box<dyn Sends>,
    pub(super) waits: Box<dyn Waits>,
}

/// Something failed that is not a rival's.
pub(super) fn failed(what: &dyn std::fmt::Display) -> BenchError {
    BenchError::Rival { rival: "many windows".to_owned(), what: what.to_string() }
}

/// Sleeps until the descriptor is readable, for [`LONGEST_SLEEP`] at most.
pub(super) fn wait_readable(descriptor: BorrowedFd<'_>) -> Result<(), BenchError> {
    let limit = Timespec { tv_sec: LONGEST_SLEEP.as_secs() as i64, tv_nsec: 0 };
    match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}

/// An epoll set of numbered descriptors, level triggered.
pub(super) struct Set {
    epoll: OwnedFd,
    ready: Vec<usize>,
}

impl Set {
    pub(super) fn new() -> Result<Self, BenchError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| failed(&error))?;
        Ok(Set { epoll, ready: Vec::with_capacity(EVENTS) })
    }

    pub(super) fn add(&self, descriptor: BorrowedFd<'_>, number: usize) -> Result<(), BenchError> {
        let data = EventData::new_u64(number as u64);
        epoll::add(&self.epoll, descriptor, data, EventFlags::IN).map_err(|error| failed(&error))
    }

    /// Waits until one is readable, and gives the numbers of those that are.
    pub(super) fn wait(&mut self) -> Result<impl Iterator<Item = usize>, BenchError> {
        let limit = Timespec { tv_sec: LONGEST_SLEEP.as_secs() as i64, tv_nsec: 0 };
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        self.ready.clear();
        match epoll::wait(&self.epoll, &mut events, Some(&limit)) {
            Ok((events, _)) => self.ready.extend(events.iter().map(|event| event.data.u64() as usize)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed(&error)),
        }
        Ok(self.ready.iter().copied())
    }
}
