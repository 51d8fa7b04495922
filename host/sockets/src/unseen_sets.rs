//! Sets of epoll that a program makes and waits at by system calls of its own, without the C library: no hook sees them.
//!
//! Runtimes do so that bring their own system calls, while the connections in their sets are of the C library. What such a set waits for would never
//! be told of a window. So a connection is looked for in them before it leaves the kernel: a runtime has put it in by then.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::readlink;
use rustix::time::{ClockId, clock_gettime};

use crate::carried::Carried;
use crate::numbers;
use crate::readiness::Sets;

/// What `readlink` says of the descriptor of a set.
const OF_A_SET: &[u8] = b"anon_inode:[eventpoll]";
/// Numbers above those of connections that are looked at, too: the set of a runtime that is made behind its first connection.
const ABOVE: RawFd = 64;
/// Of the time of the thread, at most one part in so many goes into looking.
const SELDOM: u32 = 20;

/// What this thread has had of a core.
fn own_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Finds connections in sets that were made by nobody the library knows of.
#[derive(Debug)]
pub(crate) struct UnseenSets {
    known: Arc<Sets<Carried>>,
    /// A connection was in one: so are the others of this program, or will be.
    were_found: bool,
    next_look: Instant,
}

impl UnseenSets {
    pub(crate) fn new(known: Arc<Sets<Carried>>) -> Self {
        UnseenSets { known, were_found: false, next_look: Instant::now() }
    }

    /// When it can be said of connections whether they are in such a set.
    pub(crate) fn due(&self) -> Instant {
        self.next_look
    }

    /// Whether any of these connections is waited for by calls that nobody sees, as far as that can be known now.
    ///
    /// It costs a `readlink` for each descriptor that is no connection, up to the highest of theirs.
    pub(crate) fn have_any(&mut self, connections: &[RawFd]) -> bool {
        let (now, begun) = (Instant::now(), own_time());
        if let Some(highest) = connections.iter().max()
            && !self.were_found
        {
            self.were_found =
                (0..highest + ABOVE).any(|set| self.is_unseen(set) && has_member(set, connections));
            // What others had of the core meanwhile is no cost of looking.
            self.next_look = now + own_time().saturating_sub(begun) * SELDOM;
        }
        self.were_found
    }

    fn is_unseen(&self, number: RawFd) -> bool {
        // No file is opened to list the descriptors: it would take a number that the program may be about to get. Of a set that is found one is.
        numbers::number(number).is_some_and(|number| !number.is_known())
            && self.known.find(number).is_none()
            && readlink(format!("/proc/self/fd/{number}"), Vec::new())
                .is_ok_and(|kind| kind.as_bytes() == OF_A_SET)
    }
}

/// Whether a set has one of these, by what the kernel says of the set: a line for each member, `tfd:`, its number and more.
fn has_member(set: RawFd, connections: &[RawFd]) -> bool {
    let said = std::fs::read_to_string(format!("/proc/self/fdinfo/{set}")).unwrap_or_default();
    let members = said.lines().filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next());
    members.filter_map(|number| number.parse().ok()).any(|member| connections.contains(&member))
}
