//! Interrupts of cores at random: lines leave in pieces, and nothing else changes.

use beeline_contract_link::Link;
use beeline_contract_memory::StorePort;
use beeline_link_sim::cpu::Release;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{CoreId, Sim};

use crate::probe::{Probe, Taken};
use crate::{WINDOWS_AT, assert_at_rest, ns, once, settings};

const LINES: u32 = 1000;

/// What the device took of a thousand lines, how many interrupts there were, and how long the core worked.
fn stored(
    interval: Picoseconds,
    handler: Picoseconds,
    release: Release,
    seed: u64,
) -> (Vec<Taken>, u64, u64) {
    let mut machine = settings(1);
    // 16 ns for a line, so that many interrupts come while one is being filled.
    machine.core.store_bytes = 8;
    machine.core.store = ns(2);
    machine.core.release = release;
    machine.core.interrupt_interval = interval;
    machine.core.interrupt = handler;
    let sim = Sim::new(Probe::with([]), machine, seed).expect("a machine that can be");
    let mut window = sim.link(CoreId(0)).window(0).expect("a window");
    once(&sim, || {
        for line in 0..LINES {
            window.store_line(line, &std::array::from_fn(|word| u64::from(line) * 8 + word as u64));
        }
    });
    assert_at_rest(&sim);
    let worked = sim.with(|machine| machine.core_worked(CoreId(0)).0 / 1000);
    let interrupts = sim.interrupts(CoreId(0));
    (sim.with(|machine| std::mem::take(&mut machine.device().taken)), interrupts, worked)
}

/// Each word once, at its place; returns how many writes were no whole line.
fn assert_whole(taken: &[Taken]) -> usize {
    let mut found = vec![0; LINES as usize * 8];
    for write in taken {
        let first = (write.offset_bytes - WINDOWS_AT) / 8;
        for (word, bytes) in (first..).zip(write.data.as_chunks::<8>().0) {
            assert_eq!(u64::from_le_bytes(*bytes), word);
            found[word as usize] += 1;
        }
    }
    assert!(found.iter().all(|times| *times == 1), "a word is missing or came twice");
    taken.iter().filter(|write| write.data.len() < 64).count()
}

#[test]
fn lines_leave_in_pieces_and_nothing_is_lost() {
    for release in [Release::Fifo, Release::OldestRandom, Release::Random] {
        let (taken, interrupts, worked_ns) = stored(ns(1_000), ns(100), release, 1);
        let pieces = assert_whole(&taken);
        // Two for each line that was hit; an interrupt between two lines hits none.
        assert!(pieces > 0 && pieces as u64 <= 2 * interrupts, "{pieces} pieces of {interrupts} interrupts");
        let (whole, none, undisturbed_ns) = stored(ns(0), ns(0), release, 1);
        assert_eq!((assert_whole(&whole), none), (0, 0));
        assert!(worked_ns > undisturbed_ns, "{worked_ns} ns with handlers, {undisturbed_ns} without");
    }
}

/// With a wire that is never the limit, what interrupts cost is their handlers and nothing else.
#[test]
fn a_core_loses_the_time_of_the_handlers() {
    let spent = |handler| {
        let mut machine = settings(1);
        machine.core.interrupt_interval = ns(10_000);
        machine.core.interrupt = handler;
        let sim = Sim::new(Probe::with([]), machine, 3).expect("a machine that can be");
        once(&sim, || (0..1000).for_each(|_| sim.work(CoreId(0), ns(1_000))));
        (sim.with(|machine| machine.core_worked(CoreId(0)).0), sim.interrupts(CoreId(0)))
    };
    let (worked, interrupts) = spent(ns(700));
    assert_eq!(worked, 1_000_000_000 + interrupts * 700_000);
    // 1 ms of work in 7 % more time: 107 in the mean, give or take four times their root.
    assert!((67..=147).contains(&interrupts), "{interrupts}");
    assert_eq!(spent(ns(0)).0, 1_000_000_000);
}

#[test]
fn a_seed_is_a_run() {
    let run = |seed| stored(ns(500), ns(50), Release::Random, seed);
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).0, run(8).0);
}

/// Interrupts never end; a machine does, and what lies in a buffer leaves by the next one.
#[test]
fn a_machine_comes_to_rest_and_its_last_words_leave() {
    let mut machine = settings(1);
    machine.core.interrupt_interval = ns(5_000);
    machine.core.interrupt = ns(100);
    let sim = Sim::new(Probe::with([]), machine, 1).expect("a machine that can be");
    let mut window = sim.link(CoreId(0)).window(0).expect("a window");
    once(&sim, || window.store_word(0, 3, 42));
    assert_at_rest(&sim);
    let taken = sim.with(|machine| machine.device().taken.clone());
    assert_eq!((taken.len(), taken[0].offset_bytes, taken[0].data.len()), (1, WINDOWS_AT + 24, 8));
}
