//! Opening and ending a window under loom: the ring and the sleep protocol as they are, in memory that is modelled.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p beeline-domain --lib --release loom_models`. A lost wake-up shows as a deadlock.

use std::sync::Arc;
use std::time::Duration;

use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

use super::{Hearer, TellMemory, Teller};
use crate::protocol::loom_models::{BOTH, Fences, ModelFutex};
use crate::protocol::{ASLEEP, cancel, park, prepare, wake_if_asleep};

/// How the client publishes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mutant {
    None,
    /// The count is stored relaxed, so that it may be seen before what it counts.
    Unordered,
}

struct ModelRing {
    told: AtomicU64,
    entries: [AtomicU64; 2],
    mutant: Mutant,
}

impl TellMemory for ModelRing {
    fn told(&self) -> u64 {
        self.told.load(Ordering::Acquire)
    }

    fn publish(&self, told: u64) {
        let is_ordered = self.mutant == Mutant::None;
        self.told.store(told, if is_ordered { Ordering::Release } else { Ordering::Relaxed });
    }

    fn load(&self, at: u64) -> u64 {
        self.entries[at as usize % 2].load(Ordering::Relaxed)
    }

    fn store(&self, at: u64, entry: u64) {
        self.entries[at as usize % 2].store(entry, Ordering::Relaxed);
    }
}

struct Pair {
    ring: ModelRing,
    waiting: ModelFutex,
    /// What the client made ready before it opened the window.
    credits: AtomicU64,
}

/// A client opens `windows` windows, and the owner, which sleeps whenever it has heard of all, must hear of the last.
fn no_opened_window_is_slept_through(fences: Fences, mutant: Mutant, windows: u64) {
    loom::model(move || {
        let entries = [AtomicU64::new(0), AtomicU64::new(0)];
        let ring = ModelRing { told: AtomicU64::new(0), entries, mutant };
        let pair = Arc::new(Pair { ring, waiting: ModelFutex::default(), credits: AtomicU64::new(0) });
        let client = thread::spawn({
            let pair = Arc::clone(&pair);
            move || {
                let mut teller = Teller::default();
                for window in 1..=windows {
                    pair.credits.store(window, Ordering::Relaxed);
                    teller.tell(&pair.ring, window);
                    wake_if_asleep(&pair.waiting, &fences, || unreachable!("nobody listens"));
                }
            }
        });
        let (mut hearer, mut heard) = (Hearer::default(), 0);
        while heard < windows {
            if let Some(entry) = hearer.next(&pair.ring).expect("an honest client") {
                heard += 1;
                assert_eq!(entry, heard, "entries come in order");
                assert!(pair.credits.load(Ordering::Relaxed) >= heard, "it was ready before");
                continue;
            }
            prepare(&pair.waiting, ASLEEP, &fences);
            if pair.ring.told() == hearer.heard() {
                assert!(park(&pair.waiting, Duration::MAX));
            } else {
                cancel(&pair.waiting, ASLEEP);
            }
        }
        client.join().unwrap();
    });
}

#[test]
fn opened_window_wakes_the_owner() {
    no_opened_window_is_slept_through(BOTH, Mutant::None, 1);
}

#[test]
fn two_opened_windows_wake_the_owner() {
    no_opened_window_is_slept_through(BOTH, Mutant::None, 2);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_owners_barrier_an_opened_window_is_slept_through() {
    no_opened_window_is_slept_through(Fences { heavy: false, ..BOTH }, Mutant::None, 1);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_clients_barrier_an_opened_window_is_slept_through() {
    no_opened_window_is_slept_through(Fences { light: false, ..BOTH }, Mutant::None, 1);
}

#[test]
#[should_panic(expected = "entries come in order")]
fn count_that_is_not_ordered_after_its_entry_is_believed_too_early() {
    no_opened_window_is_slept_through(BOTH, Mutant::Unordered, 1);
}

/// A sender stores its last message and ends; the receiver, which sleeps until then, must see both.
fn no_end_is_slept_through(fences: Fences, is_ordered: bool) {
    loom::model(move || {
        let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(0), ModelFutex::default()));
        let sender = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                shared.0.store(7, Ordering::Relaxed);
                shared.1.store(1, if is_ordered { Ordering::Release } else { Ordering::Relaxed });
                wake_if_asleep(&shared.2, &fences, || unreachable!("nobody listens"));
            }
        });
        let (message, ended, waiting) = &*shared;
        while ended.load(Ordering::Relaxed) == 0 {
            prepare(waiting, ASLEEP, &fences);
            if ended.load(Ordering::Relaxed) == 0 {
                assert!(park(waiting, Duration::MAX));
            } else {
                cancel(waiting, ASLEEP);
            }
        }
        // As `Peer::departure`.
        fence(Ordering::Acquire);
        assert_eq!(message.load(Ordering::Relaxed), 7, "the last message is there");
        sender.join().unwrap();
    });
}

#[test]
fn end_wakes_the_receiver_and_comes_after_the_last_message() {
    no_end_is_slept_through(BOTH, true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_receivers_barrier_an_end_is_slept_through() {
    no_end_is_slept_through(Fences { heavy: false, ..BOTH }, true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_senders_barrier_an_end_is_slept_through() {
    no_end_is_slept_through(Fences { light: false, ..BOTH }, true);
}

#[test]
#[should_panic(expected = "the last message is there")]
fn end_that_is_not_ordered_hides_the_last_message() {
    no_end_is_slept_through(BOTH, false);
}
