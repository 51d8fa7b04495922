//! The sleep of a receive: on the socket, and on the bell of its thread, which senders ring while it is announced.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::carried::Carried;
use crate::process::Process;
use crate::readiness::Watched;
use crate::sleepers::OwnBell;

/// How long a thread sleeps that nobody can ring.
const UNRUNG: Duration = Duration::from_millis(1);

/// A thread that has announced that it sleeps.
struct Announced<'a> {
    carried: Carried,
    bell: &'a std::sync::Arc<OwnBell>,
}

impl Drop for Announced<'_> {
    /// Of a thread that is cancelled, too.
    fn drop(&mut self) {
        self.bell.withdraw();
        self.carried.remove_sleeper(self.bell);
    }
}

/// Sleeps until something comes by the socket or a window, for `left` at most. It does not where `is_worth_a_look` says, behind the announcement, that there is
/// something. Whether it slept by a bell.
pub(crate) fn sleep_rung(
    process: &Process,
    socket: BorrowedFd<'_>,
    carried: Carried,
    left: Option<Duration>,
    is_worth_a_look: impl FnOnce() -> bool,
) -> (Result<(), Errno>, bool) {
    let bell = OwnBell::of_this_thread().ok().filter(|bell| carried.add_sleeper(bell));
    let Some(bell) = bell else {
        let left = left.map_or(UNRUNG, |left| left.min(UNRUNG));
        return (process.sleep(&mut [PollFd::new(&socket, PollFlags::IN)], Some(left)), false);
    };
    bell.announce();
    let _announced = Announced { carried, bell: &bell };
    if is_worth_a_look() {
        return (Ok(()), false);
    }
    let ringing = bell.bell();
    let mut watched = [PollFd::new(&socket, PollFlags::IN), PollFd::new(&ringing, PollFlags::IN)];
    let slept = process.sleep(&mut watched, left);
    if !watched[1].revents().is_empty() {
        // Where it is not this thread's bell any more, the next sleep finds that, and is by another.
        bell.clear_at_next_sleep();
    }
    (slept, true)
}
