//! Two threads on two cores that time something together, and end together when it takes too long.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use beeline_mmio::{cpu, thread};

/// Where both threads wait for each other.
#[derive(Debug)]
pub(crate) struct Meeting {
    /// Times that a thread has come to a turn.
    came: AtomicU64,
    given_up: AtomicBool,
    deadline: Instant,
}

/// Runs both sides, each on its core. `None` when a core cannot be had, a side gives up, or the deadline has passed.
pub(crate) fn on_both<A: Send, B: Send>(
    cores: [usize; 2],
    deadline: Instant,
    first: impl FnOnce(&Meeting) -> Option<A> + Send,
    second: impl FnOnce(&Meeting) -> Option<B> + Send,
) -> Option<(A, B)> {
    let meeting = Meeting { came: AtomicU64::new(0), given_up: AtomicBool::new(false), deadline };
    std::thread::scope(|scope| {
        let side = "beeline-tuning";
        let first = thread::spawn_in(scope, side, || meeting.run(cores[0], first)).ok()?;
        let second = thread::spawn_in(scope, side, || meeting.run(cores[1], second));
        if second.is_err() {
            meeting.give_up();
        }
        let first = first.join().expect("a side that times does not panic");
        let second = second.ok()?.join().expect("a side that times does not panic");
        Some((first?, second?))
    })
}

impl Meeting {
    fn run<T>(&self, core: usize, side: impl FnOnce(&Self) -> Option<T>) -> Option<T> {
        let done = cpu::pin_current_thread(core).ok().and_then(|()| side(self));
        if done.is_none() {
            self.give_up();
        }
        done
    }

    fn give_up(&self) {
        // Relaxed: it only ends loops; nothing is read on the strength of it.
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Waits until both threads have come to this turn, counted from 0.
    pub(crate) fn meet(&self, turn: u64) -> Option<()> {
        // Release: what this thread did in the last turn is seen by the other one in this. Acquire: pairs with it.
        self.came.fetch_add(1, Ordering::Release);
        self.until(|| (self.came.load(Ordering::Acquire) >= 2 * (turn + 1)).then_some(()))
    }

    /// Spins until `done`; `None` when all of it takes too long, or the other thread has given up.
    #[inline(always)]
    pub(crate) fn until<T>(&self, mut done: impl FnMut() -> Option<T>) -> Option<T> {
        loop {
            for _ in 0..1000 {
                if let Some(value) = done() {
                    return Some(value);
                }
                spin_loop();
            }
            // Relaxed: as in `give_up`.
            if Instant::now() > self.deadline || self.given_up.load(Ordering::Relaxed) {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn both_sides_meet_turn_by_turn() {
        let Some(cores) = cpu::two_cores() else { return };
        let turns = |meeting: &Meeting| (0..100).try_for_each(|turn| meeting.meet(turn)).map(|()| 7);
        assert_eq!(on_both(cores, soon(), turns, turns), Some((7, 7)));
    }

    #[test]
    fn side_that_gives_up_ends_the_other() {
        let Some(cores) = cpu::two_cores() else { return };
        let waits = |meeting: &Meeting| meeting.until(|| None::<()>);
        assert_eq!(on_both(cores, soon(), waits, |_| None::<()>), None);
    }

    #[test]
    fn deadline_and_core_that_is_not_there_end_both() {
        let Some(cores) = cpu::two_cores() else { return };
        let waits = |meeting: &Meeting| meeting.until(|| None::<()>);
        assert_eq!(on_both(cores, Instant::now(), waits, waits), None);
        assert_eq!(on_both([cores[0], 1 << 20], soon(), waits, waits), None);
    }
}
