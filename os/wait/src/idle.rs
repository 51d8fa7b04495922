//! What a loop does after a look that found nothing.

use std::time::Duration;

use beeline_contract_memory::WaitPolicy;

/// Looks between two that are worth a look at the clock, or at whether a peer lives: those cost as much as several looks.
const LOOKS_PER_CHECK: u32 = 64;

/// What to do before the next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Rest {
    /// Look again at once.
    Spin,
    /// Offer the core to others.
    Yield,
    /// Sleep at most this long.
    Sleep(Duration),
}

/// Counts looks that found nothing and says what to do, as a [`WaitPolicy`] has it.
#[derive(Clone, Debug)]
pub struct Idle {
    policy: WaitPolicy,
    looks: u32,
}

impl Idle {
    /// Nothing has been looked for yet.
    pub const fn new(policy: WaitPolicy) -> Self {
        Idle { policy, looks: 0 }
    }

    /// Something was found: the next look that finds nothing is the first one.
    #[inline(always)]
    pub fn busy(&mut self) {
        self.looks = 0;
    }

    /// The loop slept: the next looks yield before it sleeps again, in case more follows what woke it.
    pub fn slept(&mut self) {
        self.looks = self.looks.min(self.policy.spins);
    }

    /// A look found nothing.
    #[inline]
    pub fn rest(&mut self) -> Rest {
        self.looks = self.looks.saturating_add(1);
        let WaitPolicy { spins, yields, sleep, .. } = self.policy;
        match sleep {
            _ if self.looks <= spins => Rest::Spin,
            Some(limit) if self.looks > spins.saturating_add(yields) => Rest::Sleep(limit),
            _ => Rest::Yield,
        }
    }

    /// As [`Idle::rest`], but spins and yields by itself: how long to sleep, if it is time to.
    #[inline]
    pub fn pass(&mut self) -> Option<Duration> {
        match self.rest() {
            Rest::Spin => core::hint::spin_loop(),
            Rest::Yield => std::thread::yield_now(),
            Rest::Sleep(limit) => return Some(limit),
        }
        None
    }

    /// Whether a check that costs as much as several looks is due: every 64th look while spinning, each one after that.
    #[inline]
    pub fn is_check_due(&self) -> bool {
        self.looks >= self.policy.spins || self.looks.is_multiple_of(LOOKS_PER_CHECK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_deepens_and_work_brings_it_back() {
        let limit = Duration::from_millis(5);
        let mut idle = Idle::new(WaitPolicy::new().spins(2).yields(1).sleep(Some(limit)));
        let rests: Vec<Rest> = (0..5).map(|_| idle.rest()).collect();
        assert_eq!(rests, [Rest::Spin, Rest::Spin, Rest::Yield, Rest::Sleep(limit), Rest::Sleep(limit)]);
        idle.slept();
        assert_eq!((idle.rest(), idle.rest()), (Rest::Yield, Rest::Sleep(limit)));
        idle.busy();
        assert_eq!(idle.rest(), Rest::Spin);
    }

    #[test]
    fn policy_without_sleep_spins_or_yields_for_ever() {
        let mut spin = Idle::new(WaitPolicy::SPIN);
        assert!((0..100_000).all(|_| spin.rest() == Rest::Spin));
        let mut yielding = Idle::new(WaitPolicy::new().spins(0).yields(0).sleep(None));
        assert!((0..100_000).all(|_| yielding.rest() == Rest::Yield));
    }

    #[test]
    fn checks_are_due_now_and_then_while_spinning_and_always_after() {
        let mut idle = Idle::new(WaitPolicy::new().spins(100).yields(10).sleep(None));
        let due: Vec<u32> = (0..104)
            .filter(|_| {
                let is_due = idle.is_check_due();
                let _ = idle.rest();
                is_due
            })
            .collect();
        assert_eq!(due, [0, 64, 100, 101, 102, 103]);
    }
}
