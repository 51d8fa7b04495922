//! Two ends that publish and look at the same time, under loom: every interleaving and every allowed reordering of the real code.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p beeline-domain --lib --release loom_models`.

use std::convert::Infallible;
use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

use super::*;

/// The two words of a pair.
struct Pair {
    words: [AtomicU64; 2],
    has_barrier: bool,
}

impl Words for Pair {
    type Error = Infallible;

    fn write(&self, slot: usize, word: u64) -> Result<(), Infallible> {
        self.words[slot].store(word, Ordering::Relaxed);
        Ok(())
    }

    fn barrier(&self) {
        if self.has_barrier {
            fence(Ordering::SeqCst);
        }
    }

    fn read(&self, slot: usize) -> Result<u64, Infallible> {
        Ok(self.words[slot].load(Ordering::Relaxed))
    }
}

fn resident(place: u16) -> Resident {
    Resident::new(place, NonZeroU64::MIN).unwrap()
}

fn at_least_one_finds_the_other(has_barrier: bool) {
    loom::model(move || {
        let pair = Arc::new(Pair { words: [AtomicU64::new(0), AtomicU64::new(0)], has_barrier });
        let end = |pair: Arc<Pair>, own_slot: usize| {
            move || {
                let spot = Spot { own_slot, other_slot: 1 - own_slot, tag: 9 };
                let Ok(found) = publish_and_look(&*pair, spot, resident(own_slot as u16));
                found
            }
        };
        let first = thread::spawn(end(Arc::clone(&pair), 0));
        let second = end(pair, 1)();
        let first = first.join().unwrap();
        assert!(first.is_some() || second.is_some(), "both missed");
        assert!(first.is_none_or(|found| found == resident(1)));
        assert!(second.is_none_or(|found| found == resident(0)));
    });
}

#[test]
fn of_two_ends_at_least_one_finds_the_other() {
    at_least_one_finds_the_other(true);
}

#[test]
#[should_panic(expected = "both missed")]
fn without_the_barrier_both_may_miss() {
    at_least_one_finds_the_other(false);
}
