//! How one side of a window sleeps until the other side wakes it (docs/design.md, decision 5: the sleeper pays).
//!
//! The waiting loop is written once (`host/window`, `wait.rs`) over this trait; `os/domain` gives it a flag, a
//! membarrier and a futex, loom tests a model of them. The other side's half is [`crate::StorePort::wake_receiver`]
//! and [`crate::CreditSink::publish`], which look at the flag after their stores and wake the sleeper.

use core::time::Duration;

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
