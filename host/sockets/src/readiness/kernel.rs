//! What is asked of the kernel by a call of the program: the real calls, with the program's signal mask, and the clock.
//!
//! The hooks make one of these for each call, since only they have the mask and the real functions.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::epoll::Event;
use rustix::io::Errno;

use super::entry::PollEntry;

/// What both kinds of call need.
pub trait Clock {
    /// Of a clock that never goes back.
    fn now(&self) -> Duration;

    /// Whether a signal waits that ends the call. From the first time that this is asked, signals wait for the kernel's sleep, which
    /// lets them through as the call does; it is asked as often as the kernel is while a call spins.
    fn is_interrupted(&mut self) -> bool;
}

/// One call of `epoll_wait`, `epoll_pwait` or `epoll_pwait2`.
pub trait EpollKernel: Clock {
    /// The program's descriptor.
    fn epoll(&self) -> BorrowedFd<'_>;

    /// Asks without waiting.
    fn look(&mut self, out: &mut [Event]) -> Result<usize, Errno>;

    /// Sleeps with the program's signal mask; `None` is for ever.
    fn sleep(&mut self, out: &mut [Event], limit: Option<Duration>) -> Result<usize, Errno>;
}

/// One call of `poll`, `ppoll`, `select` or `pselect`.
pub trait PollKernel: Clock {
    /// Asks without waiting. Every entry's answer is written.
    fn look(&mut self, entries: &mut [PollEntry]) -> Result<usize, Errno>;

    /// Sleeps with the program's signal mask; `None` is for ever.
    fn sleep(&mut self, entries: &mut [PollEntry], limit: Option<Duration>) -> Result<usize, Errno>;
}

/// One call of `select` or `pselect`: what it comes to when it has connections that a window may have bytes for.
pub trait SelectKernel: PollKernel {
    /// The program's own call, with its own sets and time-out.
    fn select(&mut self) -> Result<usize, Errno>;
}
