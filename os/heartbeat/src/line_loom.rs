//! A line under loom: every interleaving and every allowed reordering of its stores and loads.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p beeline-heartbeat --lib --release loom_models`.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::*;

/// The words of the model. The others are like `ACCEPTED`, and each would cost the model a factor.
const USED: [usize; 2] = [BEAT, ACCEPTED];

struct Words {
    words: [AtomicU64; WORDS],
    beat: Ordering,
}

impl LineWords for Words {
    fn store(&self, at: usize, word: u64) {
        if USED.contains(&at) {
            self.words[at].store(word, Ordering::Relaxed);
        }
    }

    fn store_release(&self, at: usize, word: u64) {
        self.words[at].store(word, self.beat);
    }

    fn load(&self, at: usize) -> u64 {
        if USED.contains(&at) { self.words[at].load(Ordering::Relaxed) } else { 0 }
    }

    fn load_acquire(&self, at: usize) -> u64 {
        self.words[at].load(Ordering::Acquire)
    }
}

const FIRST: u32 = 1;
const SECOND: u32 = 2;
const PEER: u32 = 7;

/// A side that takes a peer, and then comes anew; what the other one sees meanwhile.
fn model(beat: Ordering, check: impl Fn(&Line) + Send + Sync + Copy + 'static) {
    loom::model(move || {
        let words = Arc::new(Words { words: Default::default(), beat });
        let writer = {
            let words = Arc::clone(&words);
            thread::spawn(move || {
                let said = |incarnation, beat, accepted| Said {
                    incarnation,
                    beat,
                    accepted,
                    declared_down: 0,
                    declared: 0,
                    is_disabled: false,
                };
                store_line(&*words, &said(FIRST, 1, 0).encode());
                store_line(&*words, &said(FIRST, 2, PEER).encode());
                store_line(&*words, &said(SECOND, 1, 0).encode());
            })
        };
        check(&load_line(&*words));
        writer.join().unwrap();
    });
}

/// What `Said::decode` reads of the words that the model has.
fn decode(line: &Line) -> Option<Said> {
    let (beat, accepted) = (line[BEAT], line[ACCEPTED]);
    let rest = Said {
        incarnation: incarnation_of(beat),
        beat: 0,
        accepted: 0,
        declared_down: 0,
        declared: 0,
        is_disabled: false,
    };
    let mut whole = rest.encode();
    (whole[BEAT], whole[ACCEPTED]) = (beat, accepted);
    Said::decode(&whole)
}

fn agrees(incarnation: u32, beat: u32, accepted: u32) {
    match (incarnation, beat) {
        (FIRST, 1) => assert!(accepted == 0 || accepted == PEER),
        (FIRST, 2) => assert_eq!(accepted, PEER, "it was said before the beat"),
        (SECOND, 1) => assert_eq!(accepted, 0, "the first incarnation said that"),
        found => panic!("nobody said {found:?}"),
    }
}

#[test]
fn line_that_is_read_is_of_one_incarnation_and_as_new_as_its_beat() {
    model(Ordering::Release, |line| {
        if let Some(said) = decode(line) {
            agrees(said.incarnation, said.beat, said.accepted);
        }
    });
}

#[test]
#[should_panic(expected = "nobody takes")]
fn without_incarnations_in_the_words_a_reader_believes_what_nobody_said() {
    model(Ordering::Release, |line| {
        if incarnation_of(line[BEAT]) == FIRST && line[BEAT] as u32 == 2 {
            assert_eq!(line[ACCEPTED] as u32, PEER, "nobody takes back what it said");
        }
    });
}

#[test]
#[should_panic(expected = "it was said before the beat")]
fn beat_that_is_not_released_shows_itself_before_what_was_said_with_it() {
    model(Ordering::Relaxed, |line| {
        if let Some(said) = decode(line) {
            agrees(said.incarnation, said.beat, said.accepted);
        }
    });
}
