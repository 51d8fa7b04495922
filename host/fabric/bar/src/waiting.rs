//! Waiting where nobody wakes who sleeps.

use std::time::{Duration, Instant};

use beeline_contract_memory::{Sleeper, Wait, WaitPolicy};
use beeline_wait::Waiter;

/// How long who waits does not look, when it has looked for a while.
const DOZE: Duration = Duration::from_micros(200);

/// Looks until something is found. Nobody wakes who sleeps, so naps are short.
pub(crate) fn wait_with<T, E>(
    policy: WaitPolicy,
    until: Option<Instant>,
    look: impl FnMut(bool) -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    Waiter::new(&policy, &mut Doze, until).wait(look)
}

struct Doze;

impl Sleeper for Doze {
    fn prepare(&mut self) {}

    fn park(&mut self, limit: Duration) {
        std::thread::sleep(limit.min(DOZE));
    }

    fn cancel(&mut self) {}
}
