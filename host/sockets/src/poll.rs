//! Sleeping on descriptors.

use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;

/// Sleeps until one of them is ready, or the time is over, which is no error: the caller looks at the clock.
pub(crate) fn poll_for(watched: &mut [PollFd<'_>], left: Option<Duration>) -> Result<(), Errno> {
    poll(watched, timespec(left).as_ref()).map(drop)
}

pub(crate) fn timespec(left: Option<Duration>) -> Option<Timespec> {
    left.map(|left| Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 }))
}
