//! The sleep protocol under loom: every interleaving and every allowed reordering of the real code.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p beeline-domain --lib --release loom_models`. A lost wake-up shows as
//! a deadlock, because the model's futex has no bound.

use std::sync::Arc;
use std::time::Duration;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread::{self, Thread};

use super::*;

/// A futex word: as in the kernel, the comparison and the enqueueing are one step under a lock that wakers take too.
#[derive(Default)]
pub(crate) struct ModelFutex {
    word: AtomicU32,
    sleeper: Mutex<Option<Thread>>,
}

impl Futex for ModelFutex {
    fn load(&self) -> u32 {
        self.word.load(Ordering::Relaxed)
    }

    fn set(&self, bits: u32) {
        self.word.fetch_or(bits, Ordering::Release);
    }

    fn clear(&self, bits: u32) {
        self.word.fetch_and(!bits, Ordering::Relaxed);
    }

    fn take(&self) -> u32 {
        self.word.swap(AWAKE, Ordering::AcqRel)
    }

    fn wait(&self, expected: u32, _timeout: Duration) -> bool {
        let mut sleeper = self.sleeper.lock().unwrap();
        if self.word.load(Ordering::Relaxed) == expected {
            *sleeper = Some(thread::current());
            drop(sleeper);
            thread::park();
        }
        true
    }

    fn wake(&self) {
        let sleeper = self.sleeper.lock().unwrap().take();
        if let Some(sleeper) = sleeper {
            sleeper.unpark();
        }
    }
}

/// Which of the two fences are there.
#[derive(Clone, Copy)]
pub(crate) struct Fences {
    pub(crate) light: bool,
    pub(crate) heavy: bool,
}

pub(crate) const BOTH: Fences = Fences { light: true, heavy: true };

impl Barriers for Fences {
    fn light(&self) {
        if self.light {
            fence(Ordering::SeqCst);
        }
    }

    fn heavy(&self) {
        if self.heavy {
            fence(Ordering::SeqCst);
        }
    }
}

#[derive(Default)]
struct Channel {
    flag: ModelFutex,
    word: AtomicU64,
}

/// A receiver that sleeps whenever it has seen all there is, until it has seen the last of `messages`.
pub(crate) fn sleep_until(flag: &ModelFutex, word: &AtomicU64, fences: Fences, messages: u64) {
    loop {
        let seen = word.load(Ordering::Relaxed);
        if seen == messages {
            return;
        }
        prepare(flag, ASLEEP, &fences);
        if word.load(Ordering::Relaxed) == seen {
            assert!(park(flag, Duration::MAX));
        } else {
            cancel(flag, ASLEEP);
        }
    }
}

/// A sender stores `messages` messages; a receiver that sleeps whenever it has seen all there is must get the last.
fn no_wake_up_is_lost(fences: Fences, messages: u64) {
    loom::model(move || {
        let channel = Arc::new(Channel::default());
        let sender = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || {
                for message in 1..=messages {
                    channel.word.store(message, Ordering::Relaxed);
                    wake_if_asleep(&channel.flag, &fences, || unreachable!("nobody listens"));
                }
            })
        };
        sleep_until(&channel.flag, &channel.word, fences, messages);
        sender.join().unwrap();
    });
}

#[test]
fn one_message_wakes_the_receiver() {
    no_wake_up_is_lost(BOTH, 1);
}

#[test]
fn two_messages_wake_the_receiver() {
    no_wake_up_is_lost(BOTH, 2);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_membarrier_a_wake_up_is_lost() {
    no_wake_up_is_lost(Fences { light: false, heavy: false }, 1);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_sleepers_half_a_wake_up_is_lost() {
    no_wake_up_is_lost(Fences { heavy: false, ..BOTH }, 1);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_senders_half_a_wake_up_is_lost() {
    no_wake_up_is_lost(Fences { light: false, ..BOTH }, 1);
}

/// The domain's thread declares a peer gone; whoever sleeps for it must not sleep on.
fn a_departure_is_not_slept_through(fences: Fences) {
    loom::model(move || {
        let shared = Arc::new((Presence::new(), ModelFutex::default()));
        let watcher = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.0.depart(Departure::Died);
                rouse(&shared.1);
            })
        };
        while shared.0.is_present() {
            prepare(&shared.1, ASLEEP, &fences);
            if shared.0.is_present() {
                assert!(park(&shared.1, Duration::MAX));
            } else {
                cancel(&shared.1, ASLEEP);
            }
        }
        assert_eq!(shared.0.departure(), Some(Departure::Died));
        watcher.join().unwrap();
    });
}

#[test]
fn a_departure_wakes_the_sleeper() {
    a_departure_is_not_slept_through(BOTH);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_sleepers_half_a_departure_is_slept_through() {
    a_departure_is_not_slept_through(Fences { heavy: false, ..BOTH });
}
