//! One call's time: when it began, and when it has to end.

use std::time::Duration;

use super::kernel::Clock;

/// How often the kernel is asked while windows have something to report.
pub(crate) const ASK_EVERY: Duration = Duration::from_micros(50);
/// How often the kernel is asked, and signals are looked for, while a call spins.
pub(crate) const SPIN_ASK_EVERY: Duration = Duration::from_micros(20);
/// How long a call sleeps where a window has nobody to ring.
pub(crate) const UNRUNG_SLEEP: Duration = Duration::from_millis(1);
/// Looks at windows between two looks at the clock.
pub(crate) const LOOKS_PER_TIME: u32 = 8;
/// Looks at the clock after which a call first gives its core to others that want it: about a microsecond.
pub(crate) const LOOKS_GIVEN: u32 = 4;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) start: Duration,
    deadline: Option<Duration>,
}

impl Call {
    pub(crate) fn new(clock: &impl Clock, limit: Option<Duration>) -> Self {
        Call::beginning(clock.now(), limit)
    }

    /// Of one that begins now.
    pub(crate) fn beginning(start: Duration, limit: Option<Duration>) -> Self {
        // An end that no clock reaches is none.
        Call { start, deadline: limit.and_then(|limit| start.checked_add(limit)) }
    }

    pub(crate) fn is_over(&self, now: Duration) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// What is left, at most `bound`.
    pub(crate) fn left(&self, now: Duration, bound: Option<Duration>) -> Option<Duration> {
        let left = self.deadline.map(|deadline| deadline.saturating_sub(now));
        match (left, bound) {
            (Some(left), Some(bound)) => Some(left.min(bound)),
            (left, bound) => left.or(bound),
        }
    }
}
