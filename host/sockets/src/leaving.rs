//! The library leaves a process for ever, because that is about to do what the library, or a thread of it, does not stand: it installs a filter of system calls, gets a
//! namespace that is for a process with one thread, or has code that goes past the hooks.
//!
//! Connections are the kernel's before ([`Sockets::hand_over_if_unused`]). Here what came back is paid, their endpoints are let go, and the threads end; other processes
//! see that this one closes in order what it had with them, and lives on.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use crate::debts;
use crate::endpoint::Endpoint;
use crate::endpoints::endpoint;
use crate::numbers::{self, What};
use crate::sleepers::OwnBell;
use crate::sockets::Sockets;

/// How long threads may take to end: one that looks for a process that is stopped sees it late.
const ENDED_WITHIN: Duration = Duration::from_secs(2);

/// What becomes of what the library has not done yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Its threads stay until it is done.
    IsDone,
    /// They end: a connection of which bytes would be missing is reset, and datagrams of windows are lost.
    IsLost,
}

impl Sockets {
    /// Leaves the process, of which these numbers may be connections. Whether nothing of the library runs any more: it knows no number, and
    /// the kernel has no thread of the library's.
    pub fn leave(&self, numbers: impl Iterator<Item = RawFd>, rest: Rest) -> bool {
        let is_paid = self.settle();
        if !is_paid && rest == Rest::IsLost {
            debts::lose_all();
        }
        let known = numbers.filter(|number| !self.leave_number(*number, rest)).count();
        OwnBell::end_of_this_thread();
        if known > 0 {
            return false;
        }
        let Some(background) = self.background() else { return true };
        let have_ended = background.end_threads(Instant::now() + ENDED_WITHIN);
        if have_ended {
            background.end();
        } else {
            tracing::warn!("threads of the library do not end");
        }
        have_ended
    }

    /// Calls on the number are the kernel's from now on. `false` for one that is known still: its bytes came back, and the next ones come behind them; or it has
    /// datagrams that the program has not received.
    fn leave_number(&self, number: RawFd, rest: Rest) -> bool {
        let Some(entry) = numbers::number(number) else { return true };
        match entry.claim().0 {
            What::Endpoint(index) if endpoint(index).is_this_process_s() => {
                let endpoint = endpoint(index);
                if Endpoint::owes(&mut endpoint.lock_writer()) {
                    return false;
                }
                if entry.forget() != What::Endpoint(index) {
                    // Another thread has closed it meanwhile, and ends it.
                    return true;
                }
                // Who waits at it goes on in the kernel.
                endpoint.ring_bells();
                self.end_endpoint(endpoint, None);
            }
            What::Endpoint(_) => _ = entry.forget(),
            What::Datagrams(_) if rest == Rest::IsDone => return false,
            _ => self.forget_number(number),
        }
        true
    }
}
