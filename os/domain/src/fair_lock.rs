//! Whose piece of a long work is next: one at a time, in the order in which they came.
//!
//! So the workers of a domain together take no more than one core, however many works are under way, and a short work waits
//! for one piece of each of the others, however long those are.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use beeline_mmio::Pace;

/// A lock that is fair: whoever asked first is next.
#[derive(Debug, Default)]
pub(crate) struct FairLock {
    tickets: Mutex<Tickets>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Tickets {
    /// The next to be given.
    next: u64,
    /// The one whose turn it is.
    current: u64,
}

/// One turn; dropping it makes it the next one's.
struct Turn<'a>(&'a FairLock);

impl FairLock {
    fn lock(&self) -> MutexGuard<'_, Tickets> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Turn<'_> {
        let mut tickets = self.lock();
        let ticket = tickets.next;
        tickets.next += 1;
        while tickets.current != ticket {
            tickets = self.moved.wait(tickets).unwrap_or_else(PoisonError::into_inner);
        }
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut tickets = self.0.lock();
        tickets.current += 1;
        if tickets.current != tickets.next {
            self.0.moved.notify_all();
        }
    }
}

impl Pace for FairLock {
    fn piece(&self, work: &mut dyn FnMut()) {
        let _turn = self.take();
        work();
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_short_work_waits_for_one_piece_of_a_long_one() {
        let turns = FairLock::default();
        let (begun, wait) = channel();
        let (go, may) = channel::<()>();
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let (turns, order) = (&turns, &order);
            scope.spawn(move || {
                for piece in 0..3 {
                    turns.piece(&mut || {
                        if piece == 0 {
                            begun.send(()).unwrap();
                            may.recv().unwrap();
                        }
                        order.lock().unwrap().push("long");
                    });
                }
            });
            wait.recv().unwrap();
            scope.spawn(move || turns.piece(&mut || order.lock().unwrap().push("short")));
            while turns.lock().next < 2 {
                std::thread::yield_now();
            }
            go.send(()).unwrap();
        });
        assert_eq!(*order.lock().unwrap(), ["long", "short", "long", "long"]);
    }

    #[test]
    fn a_piece_that_panics_gives_its_turn_back() {
        let turns = FairLock::default();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            turns.piece(&mut || panic!("a piece"));
        }));
        assert!(panicked.is_err());
        turns.piece(&mut || {});
    }
}
