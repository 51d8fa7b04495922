//! The loop that waits for one thing.

use std::time::{Duration, Instant};

use beeline_contract_memory::{Sleeper, Wait, WaitPolicy};

use crate::Idle;

/// Waits for one thing: spins, yields, then sleeps until the other side wakes it, at most until a deadline.
///
/// The sleeper pays for the wake-up (docs/design.md, decision 5): it announces itself, looks once more and only then sleeps,
/// with a bound. The side that stores only looks at a flag in its own memory.
#[derive(Debug)]
pub struct Waiter<'a, Z> {
    policy: &'a WaitPolicy,
    sleeper: &'a mut Z,
    deadline: Option<Instant>,
}

impl<'a, Z: Sleeper> Waiter<'a, Z> {
    /// Waits until `deadline`, without one for ever.
    pub fn new(policy: &'a WaitPolicy, sleeper: &'a mut Z, deadline: Option<Instant>) -> Self {
        Waiter { policy, sleeper, deadline }
    }

    fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// How long the next sleep may take; not 0, which some sleeps take for no limit.
    fn sleep_limit(&self, limit: Duration) -> Duration {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        left.map_or(limit, |left| limit.min(left)).max(Duration::from_nanos(1))
    }
}

impl<Z: Sleeper> Wait for Waiter<'_, Z> {
    fn wait<T, E>(&mut self, mut look: impl FnMut(bool) -> Result<Option<T>, E>) -> Result<Option<T>, E> {
        let mut idle = Idle::new(*self.policy);
        loop {
            if let Some(found) = look(false)? {
                return Ok(Some(found));
            }
            if idle.is_check_due() {
                if self.is_over() {
                    return Ok(None);
                }
                // Someone who never sleeps must learn of a death too.
                if self.sleeper.is_peer_gone()
                    && let Some(found) = look(true)?
                {
                    return Ok(Some(found));
                }
            }
            let Some(limit) = idle.pass() else { continue };
            self.sleeper.prepare();
            match look(self.sleeper.is_peer_gone()) {
                Ok(None) => {
                    let limit = self.sleep_limit(limit);
                    self.sleeper.park(limit);
                }
                found => {
                    self.sleeper.cancel();
                    return found;
                }
            }
        }
    }
}

/// The sleeper of who has nobody to wake it: it does not sleep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Awake;

impl Sleeper for Awake {
    fn prepare(&mut self) {}

    fn park(&mut self, _limit: Duration) {}

    fn cancel(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes down what it is asked.
    #[derive(Default)]
    struct Script {
        calls: Vec<&'static str>,
        is_peer_gone: bool,
    }

    impl Sleeper for Script {
        fn prepare(&mut self) {
            self.calls.push("prepare");
        }
        fn park(&mut self, limit: Duration) {
            assert!(limit > Duration::ZERO && limit <= Duration::from_secs(60));
            self.calls.push("park");
        }
        fn cancel(&mut self) {
            self.calls.push("cancel");
        }
        fn is_peer_gone(&self) -> bool {
            self.is_peer_gone
        }
    }

    const SLEEP_AT_ONCE: WaitPolicy =
        WaitPolicy::new().spins(0).yields(0).sleep(Some(Duration::from_secs(60)));

    /// A look that finds something the time of this number.
    fn at(time: u32) -> impl FnMut(bool) -> Result<Option<u32>, ()> {
        let mut looks = 0;
        move |_| {
            looks += 1;
            Ok((looks == time).then_some(looks))
        }
    }

    #[test]
    fn what_is_there_is_found_without_a_sleep() {
        let mut sleeper = Script::default();
        assert_eq!(Waiter::new(&SLEEP_AT_ONCE, &mut sleeper, None).wait(at(1)), Ok(Some(1)));
        assert!(sleeper.calls.is_empty());
    }

    #[test]
    fn sleeper_announces_itself_looks_again_and_withdraws_when_something_came() {
        let mut sleeper = Script::default();
        assert_eq!(Waiter::new(&SLEEP_AT_ONCE, &mut sleeper, None).wait(at(2)), Ok(Some(2)));
        assert_eq!(sleeper.calls, ["prepare", "cancel"]);
        sleeper.calls.clear();
        assert_eq!(Waiter::new(&SLEEP_AT_ONCE, &mut sleeper, None).wait(at(5)), Ok(Some(5)));
        assert_eq!(sleeper.calls, ["prepare", "park", "prepare", "park"]);
    }

    #[test]
    fn announcement_is_withdrawn_when_a_look_fails() {
        let mut sleeper = Script::default();
        let mut looks = 0;
        let found = Waiter::new(&SLEEP_AT_ONCE, &mut sleeper, None).wait(|_| {
            looks += 1;
            if looks == 2 { Err("broken") } else { Ok(None::<()>) }
        });
        assert_eq!((found, sleeper.calls.as_slice()), (Err("broken"), &["prepare", "cancel"][..]));
    }

    #[test]
    fn passed_deadline_ends_the_wait_in_every_phase() {
        let past = Some(Instant::now());
        for policy in [WaitPolicy::SPIN, WaitPolicy::default(), SLEEP_AT_ONCE] {
            let mut sleeper = Script::default();
            assert_eq!(Waiter::new(&policy, &mut sleeper, past).wait(at(1_000_000)), Ok(None));
            assert!(sleeper.calls.is_empty());
        }
    }

    #[test]
    fn look_is_told_that_the_peer_is_gone_in_every_phase() {
        for policy in [WaitPolicy::SPIN, WaitPolicy::new().spins(3).yields(5).sleep(None), SLEEP_AT_ONCE] {
            let mut sleeper = Script { is_peer_gone: true, ..Script::default() };
            let found = Waiter::new(&policy, &mut sleeper, None)
                .wait(|gone| if gone { Err("gone") } else { Ok(None::<()>) });
            assert_eq!(found, Err("gone"));
        }
    }
}
