//! Waiting for a device: look, then offer the core to others, then sleep; as windows wait for a peer.

use std::time::{Duration, Instant};

use beeline_contract_memory::Sleeper;
use beeline_domain::MemorySleeper;
use beeline_window::WaitPolicy;

use crate::error::NicGone;

/// Looks between two readings of the clock and two looks whether the device is alive.
const LOOKS_PER_CHECK: u32 = 64;

/// How a port waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub policy: WaitPolicy,
    pub sleeper: Option<MemorySleeper>,
}

impl Waiting {
    /// Calls `look` until it finds what is waited for, or the deadline is past: `false`. `is_gone` ends the wait with
    /// [`NicGone`].
    pub(crate) fn wait<S, E: From<NicGone>>(
        &mut self,
        state: &mut S,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut S) -> Result<bool, E>,
        is_gone: impl Fn(&mut S) -> bool,
    ) -> Result<bool, E> {
        let mut looks = 0u32;
        loop {
            if look(state)? {
                return Ok(true);
            }
            looks = looks.saturating_add(1);
            if looks.is_multiple_of(LOOKS_PER_CHECK) || looks > self.policy.spins {
                if is_gone(state) {
                    return Err(NicGone.into());
                }
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return Ok(false);
                }
            }
            if looks <= self.policy.spins {
                core::hint::spin_loop();
            } else if looks - self.policy.spins <= self.policy.yields || !self.sleeps() {
                std::thread::yield_now();
            } else if self.sleep(state, deadline, &mut look)? {
                return Ok(true);
            }
        }
    }

    fn sleeps(&self) -> bool {
        self.policy.sleep.is_some() && self.sleeper.is_some()
    }

    /// Announces the sleep, looks once more, sleeps. Whether that look found it.
    fn sleep<S, E>(
        &mut self,
        state: &mut S,
        deadline: Option<Instant>,
        look: &mut impl FnMut(&mut S) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let (Some(sleeper), Some(limit)) = (&mut self.sleeper, self.policy.sleep) else { return Ok(false) };
        let left =
            deadline.map_or(limit, |deadline| deadline.saturating_duration_since(Instant::now()).min(limit));
        sleeper.prepare();
        let found = look(state);
        match found {
            Ok(false) => sleeper.park(left.max(Duration::from_nanos(1))),
            Ok(true) | Err(_) => sleeper.cancel(),
        }
        found
    }
}
