//! Sleeping on descriptors, and for a time.

use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::nanosleep;

/// Sleeps until one of them is ready, or the time is over, which is no error: the caller looks at the clock.
pub(crate) fn poll_for(watched: &mut [PollFd<'_>], left: Option<Duration>) -> Result<(), Errno> {
    poll(watched, timespec(left).as_ref()).map(drop)
}

pub(crate) fn timespec(left: Option<Duration>) -> Option<Timespec> {
    left.map(|left| Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 }))
}

/// Sleeps for less than a second: not in a function of the C library, in which a thread would be cancelled.
pub(crate) fn sleep_for(pause: Duration) {
    let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() });
}
