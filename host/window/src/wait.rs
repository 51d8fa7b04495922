//! Waiting, outside the state machines: spin, then yield, then sleep, each with a budget.
//!
//! The sleeper pays for the wake-up (docs/design.md, decision 5): it announces itself, looks once more and only then
//! sleeps, with a bound. The side that stores does nothing but look at a flag in its own memory. How to sleep is behind
//! [`Sleeper`]; who is alive too, asked only on the way to sleep.

use std::time::{Duration, Instant};

use beeline_contract_memory::{CreditSink, CreditSource, LoadPort, Sleeper, StorePort};

use crate::arrival::ArrivalTest;
use crate::error::{ReceiveError, SendError};
use crate::{Message, Receiver, Sent, Writer};

/// How long to look in which way before the next, more patient one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

impl Default for WaitPolicy {
    /// Spins for some tens of microseconds, yields a few times, then sleeps for at most 100 ms at a time.
    fn default() -> Self {
        WaitPolicy { spins: 10_000, yields: 16, sleep: Some(Duration::from_millis(100)) }
    }
}

/// Looks between two readings of the clock while spinning: a reading costs as much as several looks.
const SPINS_PER_CLOCK: u32 = 64;

/// One wait: which phase it is in.
struct Wait<'a> {
    policy: &'a WaitPolicy,
    deadline: Option<Instant>,
    spins: u32,
    yields: u32,
}

impl<'a> Wait<'a> {
    fn new(policy: &'a WaitPolicy, deadline: Option<Instant>) -> Self {
        Wait { policy, deadline, spins: 0, yields: 0 }
    }

    fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Passes time between two looks without sleeping; `false` once it is time to sleep.
    fn pause(&mut self) -> bool {
        if self.spins < self.policy.spins {
            self.spins += 1;
            core::hint::spin_loop();
            return true;
        }
        if self.yields < self.policy.yields || self.policy.sleep.is_none() {
            self.yields = self.yields.saturating_add(1);
            std::thread::yield_now();
            return true;
        }
        false
    }

    fn reads_clock(&self) -> bool {
        self.spins.is_multiple_of(SPINS_PER_CLOCK) || self.spins == self.policy.spins
    }

    /// How long the next sleep may take.
    fn sleep_limit(&self) -> Duration {
        let limit = self.policy.sleep.unwrap_or_default();
        match self.deadline {
            Some(deadline) => limit.min(deadline.saturating_duration_since(Instant::now())),
            None => limit,
        }
    }
}

/// Looks until something is found or the deadline is past (`None`). `look` is told whether the peer is known to be
/// gone; it must then find something or fail.
fn wait<T, E, Z: Sleeper>(
    policy: &WaitPolicy,
    sleeper: &mut Z,
    deadline: Option<Instant>,
    mut look: impl FnMut(bool) -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let mut wait = Wait::new(policy, deadline);
    loop {
        if let Some(found) = look(false)? {
            return Ok(Some(found));
        }
        if wait.reads_clock() && wait.is_over() {
            return Ok(None);
        }
        if wait.pause() {
            // Someone who never sleeps must learn of a death too.
            if wait.reads_clock()
                && sleeper.is_peer_gone()
                && let Some(found) = look(true)?
            {
                return Ok(Some(found));
            }
            continue;
        }
        sleeper.prepare();
        match look(sleeper.is_peer_gone()) {
            Ok(None) => sleeper.park(wait.sleep_limit()),
            Ok(Some(found)) => {
                sleeper.cancel();
                return Ok(Some(found));
            }
            Err(error) => {
                sleeper.cancel();
                return Err(error);
            }
        }
    }
}

impl<P: StorePort, C: CreditSource> Writer<P, C> {
    /// Sends one message, waiting for room until `deadline` (for ever without one): [`Sent::Full`] when it passed.
    ///
    /// # Errors
    /// As [`Writer::try_send`], and [`SendError::ReceiverGone`].
    pub fn send_wait<Z: Sleeper>(
        &mut self,
        payload: &[u8],
        policy: &WaitPolicy,
        sleeper: &mut Z,
        deadline: Option<Instant>,
    ) -> Result<Sent, SendError> {
        let sent = wait(policy, sleeper, deadline, |peer_gone| match self.try_send(payload)? {
            Sent::Sent => Ok(Some(Sent::Sent)),
            Sent::Full if peer_gone => Err(SendError::ReceiverGone),
            Sent::Full => Ok(None),
        })?;
        Ok(sent.unwrap_or(Sent::Full))
    }

    /// Waits until `lines` lines can be stored, until `deadline` (for ever without one): `false` when it passed. For
    /// reservations and batches, which cannot wait themselves; all lines of the window are free when everything sent
    /// was received. More lines than the window has are taken for all.
    ///
    /// # Errors
    /// As [`Writer::try_send`], and [`SendError::ReceiverGone`].
    pub fn room_wait<Z: Sleeper>(
        &mut self,
        lines: u32,
        policy: &WaitPolicy,
        sleeper: &mut Z,
        deadline: Option<Instant>,
    ) -> Result<bool, SendError> {
        let lines = lines.min(self.lines());
        let found = wait(policy, sleeper, deadline, |peer_gone| {
            if self.free_lines() >= lines || self.refresh()? >= lines {
                Ok(Some(()))
            } else if peer_gone {
                Err(SendError::ReceiverGone)
            } else {
                Ok(None)
            }
        })?;
        Ok(found.is_some())
    }
}

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Receiver<L, S, A> {
    /// The next message, waited for until `deadline` (for ever without one): `None` when it passed. A sender that
    /// `sleeper` knows to be gone is taken note of as by [`Receiver::sender_gone`].
    ///
    /// # Errors
    /// As [`Receiver::poll`].
    pub fn recv_wait<Z: Sleeper>(
        &mut self,
        policy: &WaitPolicy,
        sleeper: &mut Z,
        deadline: Option<Instant>,
    ) -> Result<Option<Message<'_, L, S, A>>, ReceiveError> {
        let delivery = wait(policy, sleeper, deadline, |peer_gone| {
            if peer_gone {
                self.sender_gone();
            }
            self.advance()
        })?;
        Ok(delivery.map(|delivery| Message::new(self, delivery)))
    }
}

#[cfg(test)]
mod tests;
