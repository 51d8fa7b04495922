//! A thread that spins gives its core to others that want it.
//!
//! Where more threads spin than there are cores, the one that is to answer may wait for the core of the one that waits for the answer. So who has looked for
//! about a microsecond without success yields the core; if nobody wants it that takes a third of a microsecond, and is done again only after twice as many looks.
//!
//! A thread that computes keeps the core for milliseconds once it has it, which is worse than to sleep: who sleeps is woken at once. So behind a yield
//! that took long a thread keeps its core for many times as long, and spins and sleeps as if it were alone.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A yield that took less found nobody who wanted the core.
const SHORT: Duration = Duration::from_micros(1);
/// Longer than threads have the core that exchange messages.
const LONG: Duration = Duration::from_micros(200);
/// What a yield took counts for at most so much.
const MOST_COUNTED: Duration = Duration::from_millis(10);
/// A spin lasts longer by what others have of the core, at most so many times as long.
const MOST_EXTENDED: u32 = 4;
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
    /// How long others had the core, and how long when it last began to spin.
    given: Duration,
    given_before: Duration,
}

impl Courtesy {
    /// For a wait that calls [`Courtesy::give_way`] `every` times in about a microsecond.
    pub(crate) const fn new(every: u32) -> Self {
        Courtesy { times: 0, next: every, every, given: Duration::ZERO, given_before: Duration::ZERO }
    }

    /// How long others had the core in this wait, without yields that took long.
    pub(crate) fn given(&self) -> Duration {
        self.given
    }

    /// The same since it last began to spin: what others have of the core is not spun.
    pub(crate) fn given_in_this_spin(&self) -> Duration {
        self.given - self.given_before
    }

    /// How long a spin of so long lasts by the clock. A call with a time-out is not late by much, however often others have the core.
    pub(crate) fn extended(&self, spin: Duration) -> Duration {
        spin + self.given_in_this_spin().min(MOST_EXTENDED * spin)
    }

    /// Behind a sleep: it looks for a microsecond again before it gives way.
    pub(crate) fn begin_to_spin(&mut self) {
        (self.times, self.next, self.given_before) = (0, self.every, self.given);
    }

    /// Has others run, if some want the core.
    #[inline]
    pub(crate) fn give_way(&mut self) {
        if self.is_time() {
            let began = Instant::now();
            if !is_kept(began) {
                std::thread::yield_now();
                self.note(began.elapsed(), began);
            }
        }
    }

    #[inline]
    fn is_time(&mut self) -> bool {
        self.times = self.times.saturating_add(1);
        self.times >= self.next
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

/// Whether this thread gives its core to nobody for now.
fn is_kept(now: Instant) -> bool {
    KEEPS_UNTIL.get().is_some_and(|until| now < until)
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
                let gives = courtesy.is_time() && !is_kept(now);
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
    fn spin_lasts_longer_by_what_others_had_in_it_up_to_four_times_as_long() {
        let (mut courtesy, now, spin) = (Courtesy::new(1), Instant::now(), 10 * SHORT);
        courtesy.note(3 * SHORT, now);
        courtesy.note(4 * SHORT, now);
        assert_eq!((courtesy.extended(spin), courtesy.given()), (17 * SHORT, 7 * SHORT));
        courtesy.begin_to_spin();
        assert_eq!((courtesy.extended(spin), courtesy.given()), (spin, 7 * SHORT));
        courtesy.note(50 * SHORT, now);
        assert_eq!(courtesy.extended(spin), 5 * spin);
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
        courtesy.begin_to_spin();
        courtesy.give_way();
        assert!(courtesy.given() > Duration::ZERO || KEEPS_UNTIL.get().is_some());
    }
}
