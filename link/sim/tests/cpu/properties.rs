//! Whatever is stored leaves once, after it was stored, from as many buffers as there are.

use std::collections::BTreeMap;

use beeline_link_sim::cpu::{Blocked, CoreSettings, Release, WriteCombining};
use beeline_link_sim::des::{Picoseconds, stream};
use proptest::prelude::*;

use crate::{Path, piece, settings};

const LINES: u64 = 12;
const NEVER: Picoseconds = Picoseconds::NEVER;

/// What happens to the buffers in one step.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Words of a line are stored.
    Store { line: u64, words: u8 },
    /// The outlet has this much more room.
    Room(usize),
    /// The program does something else.
    Pass(u64),
    /// An interrupt or a fence.
    Flush,
    /// The core tends the buffers that wait.
    Tend,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..LINES, 1u8..=255).prop_map(|(line, words)| Step::Store { line, words }),
        6 => (0..LINES).prop_map(|line| Step::Store { line, words: 0xff }),
        4 => (0usize..4).prop_map(Step::Room),
        2 => (0u64..3000).prop_map(Step::Pass),
        1 => Just(Step::Flush),
        2 => Just(Step::Tend),
    ]
}

fn any_settings() -> impl Strategy<Value = CoreSettings> {
    let release = prop::sample::select(vec![Release::Fifo, Release::OldestRandom, Release::Random]);
    let times = (0u64..100, 0u64..1000, prop_oneof![Just(0u64), 1u64..2000]);
    (1usize..=10, release, times, prop::sample::select(vec![0u32, 300, 1000])).prop_map(
        |(buffers, release, (drain, busy, timeout), split_per_mille)| CoreSettings {
            buffers,
            release,
            drain_interval: Picoseconds(drain),
            busy: Picoseconds(busy),
            timeout: Picoseconds(timeout),
            split_per_mille,
            ..settings()
        },
    )
}

/// Words by their number: when the store was done, where it went.
type Stored = BTreeMap<u64, (Picoseconds, u64, usize)>;

/// Does the steps; every stored word has a number of its own. In the end everything leaves.
fn play(settings: &CoreSettings, steps: &[Step], seed: u64) -> Result<(Stored, Path), TestCaseError> {
    let mut wc = WriteCombining::new(settings, stream(seed, "core 0"));
    let mut path = Path::with_room(2);
    let mut stored = Stored::new();
    let mut now = Picoseconds::ZERO;
    for (first, step) in (0u64..).step_by(8).zip(steps) {
        match *step {
            Step::Store { line, words } => loop {
                match wc.store(now, &piece(line, words, first), settings, &mut path) {
                    Ok(done) => {
                        for word in (0..8).filter(|word| words >> word & 1 == 1) {
                            stored.insert(first + word as u64, (done, line, word));
                        }
                        now = done;
                        break;
                    }
                    Err(Blocked) => path.room += 1,
                }
            },
            Step::Room(more) => path.room += more,
            Step::Pass(span) => now += Picoseconds(span),
            Step::Flush => wc.flush(now, settings, &mut path),
            Step::Tend => {
                wc.drain(now, settings, &mut path);
                wc.expire(now, settings, &mut path);
            }
        }
        prop_assert!(wc.held() <= settings.buffers);
    }
    path.room = usize::MAX;
    wc.flush(now, settings, &mut path);
    wc.drain(NEVER, settings, &mut path);
    prop_assert_eq!((wc.held(), wc.drains_at()), (0, None));
    Ok((stored, path))
}

fn check(settings: &CoreSettings, stored: &Stored, path: &Path) -> Result<(), TestCaseError> {
    let mut last_left: BTreeMap<(u64, usize), u64> = BTreeMap::new();
    for pair in path.left.windows(2) {
        prop_assert!(pair[0].0 + settings.drain_interval <= pair[1].0, "one leaves after the other");
    }
    for (at, piece) in &path.left {
        for word in (0..8).filter(|word| piece.mask >> (word * 8) & 0xff != 0) {
            prop_assert_eq!(piece.mask >> (word * 8) & 0xff, 0xff, "words leave whole");
            let number = piece.words[word];
            let (done, line, stored_word) = stored[&number];
            prop_assert_eq!((line * 64, stored_word), (piece.offset_bytes, word));
            prop_assert!(*at >= done, "word {} left at {} and was stored at {}", number, at, done);
            // Numbers of a word only rise: none leaves twice, and a line keeps its order with itself.
            let before = last_left.insert((line, word), number);
            prop_assert!(before.is_none_or(|before| before < number));
        }
    }
    for (number, (_, line, word)) in stored {
        prop_assert!(last_left[&(*line, *word)] >= *number, "word {} never left", number);
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_stored_word_leaves_once_and_after_it_was_stored(
        settings in any_settings(),
        steps in prop::collection::vec(any_step(), 1..200),
        seed: u64,
    ) {
        let (stored, path) = play(&settings, &steps, seed)?;
        check(&settings, &stored, &path)?;
        let (_, again) = play(&settings, &steps, seed)?;
        prop_assert_eq!(format!("{:?}", path.left), format!("{:?}", again.left), "a seed is a run");
    }

    /// Lines that are stored in order: those that are older than one that leaves still have a buffer each. In order of
    /// filling none is.
    #[test]
    fn disorder_is_bounded_by_the_buffers(settings in any_settings(), seed: u64, room in 1usize..6) {
        let settings = CoreSettings { split_per_mille: 0, timeout: Picoseconds::ZERO, ..settings };
        let mut wc = WriteCombining::new(&settings, stream(seed, "core 0"));
        let mut path = Path::with_room(room);
        let mut now = Picoseconds::ZERO;
        let lines = 300;
        for line in 0..lines {
            while let Err(Blocked) = wc.store(now, &piece(line, 0xff, 0), &settings, &mut path) {
                path.room += room;
            }
            now += settings.store * 8;
        }
        path.room = usize::MAX;
        wc.drain(NEVER, &settings, &mut path);
        let order: Vec<u64> = path.left.iter().map(|(_, piece)| piece.offset_bytes / 64).collect();
        prop_assert_eq!(order.len() as u64, lines);
        let mut overtaken = 0;
        for (place, line) in order.iter().enumerate() {
            let older = order[place + 1..].iter().filter(|other| *other < line).count();
            prop_assert!(older < settings.buffers, "line {} passed {} lines", line, older);
            overtaken += older;
        }
        prop_assert!(settings.release != Release::Fifo || overtaken == 0);
    }
}

/// With several buffers both random rules do change the order, and the one that prefers age changes it less.
#[test]
fn random_rules_change_the_order() {
    let overtaken = |release| {
        let settings = CoreSettings { release, buffers: 10, busy: Picoseconds(100), ..settings() };
        let mut wc = WriteCombining::new(&settings, stream(3, "core 0"));
        let mut path = Path::with_room(usize::MAX);
        let mut now = Picoseconds::ZERO;
        for line in 0..10_000 {
            now = wc.store(now, &piece(line, 0xff, 0), &settings, &mut path).unwrap();
        }
        let order = path.lines();
        order.windows(2).filter(|pair| pair[0].1 > pair[1].1).count()
    };
    let [fifo, oldest, random] = [Release::Fifo, Release::OldestRandom, Release::Random].map(overtaken);
    assert!(fifo == 0 && oldest > 1000 && random > oldest, "{fifo}, {oldest}, {random}");
}
