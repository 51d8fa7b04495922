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
/// What a yield took counts for at most so much.
const MOST_COUNTED: Duration = Duration::from_millis(10);
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

    /// How long others had the core, for a moment each time.
    pub(crate) fn given(&self) -> Duration {
        self.given
    }

    /// Behind a sleep: it looks for a microsecond again before it gives way.
    pub(crate) fn begin_anew(&mut self) {
        (self.times, self.next) = (0, self.every);
    }

    /// Has others run, if some want the core.
    #[inline]
    pub(crate) fn give_way(&mut self) {
        self.times = self.times.saturating_add(1);
        if self.times >= self.next {
            let began = Instant::now();
            if KEEPS_UNTIL.get().is_none_or(|until| began >= until) {
                std::thread::yield_now();
                self.note(began.elapsed(), began);
            }
        }
    }

    /// A yield that began then took so long.
    fn note(&mut self, took: Duration, began: Instant) {
        self.next = self.times.saturating_add(if took < SHORT { self.times } else { self.every });
        if took < LONG {
            self.given += took;
        } else {
            // A process that was stopped meanwhile keeps nothing for hours.
            KEEPS_UNTIL.set(began.checked_add(took.min(MOST_COUNTED) * KEPT_TIMES));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At which of so many times it gives way, if each yield takes so long.
    fn given(times: u32, every: u32, took: Duration) -> Vec<u32> {
        KEEPS_UNTIL.set(None);
        let (mut courtesy, now) = (Courtesy::new(every), Instant::now());
        (1..=times)
            .filter(|_| {
                courtesy.times += 1;
                let gives = courtesy.times >= courtesy.next && KEEPS_UNTIL.get().is_none();
                if gives {
                    courtesy.note(took, now);
                }
                gives
            })
            .collect()
    }

    #[test]
    fn core_that_nobody_wants_is_given_less_and_less_often() {
        assert_eq!(given(50, 1, Duration::ZERO), [1, 2, 4, 8, 16, 32]);
        assert_eq!(given(50, 4, Duration::ZERO), [4, 8, 16, 32]);
    }

    #[test]
    fn core_is_given_each_time_while_others_use_it_for_a_moment() {
        assert_eq!(given(20, 1, SHORT), Vec::from_iter(1..=20));
        assert_eq!(given(20, 4, SHORT), [4, 8, 12, 16, 20]);
    }

    #[test]
    fn core_is_kept_behind_a_yield_that_took_long_and_not_for_hours() {
        assert_eq!(given(20, 1, LONG), [1]);
        let (mut courtesy, began) = (Courtesy::new(1), Instant::now());
        courtesy.note(2 * LONG, began);
        assert_eq!(KEEPS_UNTIL.get(), Some(began + 2 * LONG * KEPT_TIMES));
        courtesy.note(Duration::from_secs(3600), began);
        assert_eq!(KEEPS_UNTIL.get(), Some(began + MOST_COUNTED * KEPT_TIMES));
        assert_eq!(courtesy.given(), Duration::ZERO, "as if it had slept");
        KEEPS_UNTIL.set(Some(Instant::now() + Duration::from_secs(60)));
        (0..100).for_each(|_| courtesy.give_way());
        assert_eq!(courtesy.given(), Duration::ZERO);
        KEEPS_UNTIL.set(None);
        courtesy.begin_anew();
        courtesy.give_way();
        assert!(courtesy.given() > Duration::ZERO || KEEPS_UNTIL.get().is_some());
    }
}
