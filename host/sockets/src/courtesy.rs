//! A thread that spins gives its core to others that want it.
//!
//! Where more threads spin than there are cores, the one that is to answer may wait for the core of the one that waits for the answer. So who has looked for
//! about a microsecond without success yields the core; if nobody wants it that takes a third of a microsecond, and is done again only after twice as many looks.
//!
//! A thread that computes keeps the core for milliseconds once it has it, which is worse than to sleep: who sleeps is woken at once. So behind a yield
//! that took long a thread keeps its core for many times as long, and spins and sleeps as if it were alone.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Nobody else ran.
const SHORT: Duration = Duration::from_micros(1);
/// Longer than threads have the core that exchange messages.
const LONG: Duration = Duration::from_micros(200);
/// How many times as long as a yield took the core is kept, so that such yields cost one part in so many.
const KEPT_TIMES: u32 = 32;

thread_local! {
    /// Until when this thread gives its core to nobody.
    static KEEPS_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// What one wait knows of others that want its core.
#[derive(Debug)]
pub(crate) struct Courtesy {
    /// Times that it could have given way, and at which of them it does.
    times: u32,
    next: u32,
    /// Times between two, where somebody wants the core.
    every: u32,
    given: Duration,
}

impl Courtesy {
    /// For a wait that says once in about a microsecond divided by `every` that it could give way.
    pub(crate) const fn new(every: u32) -> Self {
        Courtesy { times: 0, next: every, every, given: Duration::ZERO }
    }

    /// How long others had the core.
    pub(crate) fn given(&self) -> Duration {
        self.given
    }

    /// Has others run, if some want the core.
    #[inline]
    pub(crate) fn give_way(&mut self) {
        self.times = self.times.saturating_add(1);
        if self.times >= self.next {
            self.give_way_by(std::thread::yield_now);
        }
    }

    fn give_way_by(&mut self, give: impl FnOnce()) {
        self.next = self.times.saturating_mul(2);
        let began = Instant::now();
        if KEEPS_UNTIL.get().is_some_and(|until| began < until) {
            return;
        }
        give();
        let took = began.elapsed();
        self.given += took;
        if took >= SHORT {
            self.next = self.times.saturating_add(self.every);
        }
        if took >= LONG {
            KEEPS_UNTIL.set(began.checked_add(took * KEPT_TIMES));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often it gives way of so many times, if others run so long each time.
    fn given(times: u32, others_run: Duration) -> u32 {
        let (mut courtesy, mut given) = (Courtesy::new(1), 0);
        for _ in 0..times {
            courtesy.times += 1;
            if courtesy.times < courtesy.next {
                continue;
            }
            courtesy.give_way_by(|| {
                given += 1;
                let began = Instant::now();
                while began.elapsed() < others_run {
                    std::hint::spin_loop();
                }
            });
        }
        assert!(courtesy.given() >= others_run * given);
        given
    }

    #[test]
    fn core_is_given_each_time_while_others_use_it_for_a_moment() {
        KEEPS_UNTIL.set(None);
        let begun = Instant::now();
        // A machine that stops this thread for as long as that has it keep its core.
        assert!(given(20, 2 * SHORT) == 20 || begun.elapsed() >= LONG);
    }

    #[test]
    fn core_is_kept_behind_a_yield_that_took_long() {
        KEEPS_UNTIL.set(None);
        assert_eq!(given(1, LONG), 1);
        KEEPS_UNTIL.set(KEEPS_UNTIL.get().map(|until| until + Duration::from_secs(60)));
        assert_eq!(given(20, LONG), 0, "also of the next wait of the thread");
        KEEPS_UNTIL.set(Some(Instant::now()));
        assert_eq!(given(1, SHORT), 1);
    }
}
