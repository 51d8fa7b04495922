//! What the loop does after a round in which nothing happened.

use std::time::Duration;

use crate::IdlePolicy;

/// What the loop does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Look again at once.
    Spin,
    /// Give the core to others.
    Yield,
    /// Sleep at most this long.
    Sleep(Duration),
}

/// Counts empty rounds and chooses by policy.
#[derive(Debug)]
pub(crate) struct Idle {
    policy: IdlePolicy,
    empty_rounds: u32,
}

impl Idle {
    pub(crate) fn new(policy: IdlePolicy) -> Self {
        Idle { policy, empty_rounds: 0 }
    }

    /// Something happened.
    #[inline(always)]
    pub(crate) fn busy(&mut self) {
        self.empty_rounds = 0;
    }

    /// It slept: the next rounds yield, in case more follows, before it sleeps again.
    pub(crate) fn slept(&mut self) {
        if let IdlePolicy::Sleep { spin_rounds, .. } = self.policy {
            self.empty_rounds = self.empty_rounds.min(spin_rounds);
        }
    }

    /// Counts a round in which nothing happened.
    #[inline]
    pub(crate) fn rest(&mut self) -> Rest {
        self.empty_rounds = self.empty_rounds.saturating_add(1);
        match self.policy {
            IdlePolicy::Spin => Rest::Spin,
            IdlePolicy::Yield { spin_rounds } | IdlePolicy::Sleep { spin_rounds, .. }
                if self.empty_rounds <= spin_rounds =>
            {
                Rest::Spin
            }
            IdlePolicy::Yield { .. } => Rest::Yield,
            IdlePolicy::Sleep { spin_rounds, yield_rounds, limit } => {
                if self.empty_rounds <= spin_rounds.saturating_add(yield_rounds) {
                    Rest::Yield
                } else {
                    Rest::Sleep(limit)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_deepens_and_work_brings_it_back() {
        let limit = Duration::from_millis(5);
        let mut idle = Idle::new(IdlePolicy::Sleep { spin_rounds: 2, yield_rounds: 1, limit });
        let rests: Vec<Rest> = (0..5).map(|_| idle.rest()).collect();
        assert_eq!(rests, [Rest::Spin, Rest::Spin, Rest::Yield, Rest::Sleep(limit), Rest::Sleep(limit)]);
        idle.slept();
        assert_eq!((idle.rest(), idle.rest()), (Rest::Yield, Rest::Sleep(limit)));
        idle.busy();
        assert_eq!(idle.rest(), Rest::Spin);
        let mut spin = Idle::new(IdlePolicy::Spin);
        assert!((0..100_000).all(|_| spin.rest() == Rest::Spin));
        let mut yielding = Idle::new(IdlePolicy::Yield { spin_rounds: 0 });
        assert_eq!(yielding.rest(), Rest::Yield);
    }
}
