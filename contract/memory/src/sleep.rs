//! How one side of a window waits and sleeps until the other side wakes it (docs/design.md, decision 5: the sleeper pays).
//!
//! The waiting loop is written once, in `os/wait`, over [`Sleeper`]; `os/domain` gives that a flag, a membarrier and a futex,
//! loom tests a model of them. State machines do not wait: one that offers to wait is given a [`Wait`]. The other side's half is
//! [`crate::StorePort::wake_receiver`] and [`crate::CreditSink::publish`], which look at the flag after their stores and wake
//! the sleeper.

use core::time::Duration;

/// How long to look in which way before the next, more patient one: `WaitPolicy::new().spins(100).sleep(None)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct WaitPolicy {
    /// Looks one after the other, the core to ourselves.
    pub spins: u32,
    /// Then looks with the core offered to others in between.
    pub yields: u32,
    /// Then sleep until woken, at most this long at a time; `None`: go on yielding.
    pub sleep: Option<Duration>,
}

impl WaitPolicy {
    /// Never sleeps and never yields: the lowest latency, one core used up.
    pub const SPIN: WaitPolicy = WaitPolicy { spins: u32::MAX, yields: 0, sleep: None };

    /// Spins for some tens of microseconds, yields a few times, then sleeps for at most 100 ms at a time.
    pub const fn new() -> Self {
        WaitPolicy { spins: 10_000, yields: 16, sleep: Some(Duration::from_millis(100)) }
    }

    /// Looks so many times one after the other, the core to ourselves.
    pub const fn spins(self, spins: u32) -> Self {
        WaitPolicy { spins, ..self }
    }

    /// Then looks so many times with the core offered to others in between.
    pub const fn yields(self, yields: u32) -> Self {
        WaitPolicy { yields, ..self }
    }

    /// Then sleeps until it is woken, at most `limit` at a time; `None`: goes on yielding.
    pub const fn sleep(self, limit: Option<Duration>) -> Self {
        WaitPolicy { sleep: limit, ..self }
    }
}

impl Default for WaitPolicy {
    /// [`WaitPolicy::new`].
    fn default() -> Self {
        WaitPolicy::new()
    }
}

/// Whoever waits until a look finds something.
pub trait Wait {
    /// Looks until something is found, until the look fails, or until the waiter's time is over (`None`). `look` is told
    /// whether the peer is known to be gone: it must then find something or fail.
    ///
    /// # Errors
    /// Those of `look`.
    fn wait<T, E>(&mut self, look: impl FnMut(bool) -> Result<Option<T>, E>) -> Result<Option<T>, E>;
}

/// One side's way to sleep. The order of calls is `prepare`, one more look at what is waited for, and then `park`
/// (there was nothing) or `cancel` (there was something).
pub trait Sleeper {
    /// Announces that this side is about to sleep. When it returns, every store that the peer makes from now on is
    /// followed by a look at the announcement, and every store that it made before is seen by the caller's next look:
    /// raise the flag, then order it before the look on *both* sides (`MEMBARRIER_CMD_GLOBAL_EXPEDITED`).
    fn prepare(&mut self);

    /// Sleeps until the peer wakes this side, at most `limit`, and withdraws the announcement. It may return early
    /// for no reason; the caller looks again.
    fn park(&mut self, limit: Duration);

    /// Withdraws the announcement without sleeping.
    fn cancel(&mut self);

    /// Whether the kernel has shown that the peer is gone. Costs one relaxed load; asked on the way to sleep, never
    /// for every message.
    #[inline]
    fn is_peer_gone(&self) -> bool {
        false
    }
}
