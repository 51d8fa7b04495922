//! Loads of cores, and reads of the device among its writes.

use beeline_link_contract::{DmaMemory, Link};
use beeline_link_sim::machine::{CoreId, Next, Sim};

use crate::probe::{Probe, Reaction};
use crate::{assert_at_rest, ns, once, patterned, run, settings};

/// Loads that are started before the first is answered are answered each with its own word.
#[test]
fn loads_that_overlap_get_their_own_answers() {
    let sim = Sim::new(Probe::with([]), settings(1), 1).unwrap();
    let mut link = sim.link(CoreId(0));
    sim.with(|machine| machine.device().words[3..6].copy_from_slice(&[30, 40, 50]));
    let mut reads = Vec::new();
    once(&sim, || {
        for register in 3..6 {
            reads.push(link.start_read(8 * register).unwrap().unwrap());
        }
    });
    let answers: Vec<_> = reads.iter().rev().map(|read| link.poll_read(*read).unwrap()).collect();
    assert_eq!(answers, [Some(50), Some(40), Some(30)]);
    assert_eq!(link.poll_read(reads[0]).unwrap(), None, "an answer is there once");
    assert_at_rest(&sim);
}

/// The device writes, and reads the same bytes before programs see them: a read passes no write in front of it.
#[test]
fn a_read_sees_the_writes_in_front_of_it() {
    let mut machine = settings(1);
    // Writes leave at once and are seen late; the read is behind them all the same.
    machine.device.write_start = ns(0);
    machine.device.write_interval = ns(0);
    machine.root.write_visible = ns(5_000);
    let sim = Sim::new(Probe::with([]), machine, 1).unwrap();
    let memory = patterned(&sim, 4096);
    let address = memory.address() + 100;
    let data = vec![0xee; 1000];
    sim.with(|machine| machine.device().reactions.push_back(Reaction::WriteAndRead { address, data }));
    let mut link = sim.link(CoreId(0));
    once(&sim, || assert!(link.write_register(0, 1).unwrap()));
    let completed = sim.with(|machine| machine.device().completed.clone());
    assert_eq!(completed[0].data, Ok(vec![0xee; 1000]));
    assert_at_rest(&sim);
}

/// With one tag a read has to wait for the one before; no more requests are outstanding than there are tags.
#[test]
fn tags_bound_the_reads_that_are_outstanding() {
    let time = |read_tags| {
        let mut machine = settings(1);
        machine.device.read_tags = read_tags;
        let sim = Sim::new(Probe::with([]), machine, 1).unwrap();
        let memory = patterned(&sim, 4096);
        let read = Reaction::Read { address: memory.address(), bytes: 64 };
        // Each doorbell asks for two reads at once: the first by its reaction, the second when that is answered.
        sim.with(|machine| machine.device().reactions.extend(vec![read; 16]));
        let mut link = sim.link(CoreId(0));
        once(&sim, || {
            for _ in 0..8 {
                link.write_register(0, 1).unwrap();
            }
        });
        assert_at_rest(&sim);
        let completed = sim.with(|machine| machine.device().completed.clone());
        assert_eq!(completed.len(), 16);
        completed[15].at_ps - completed[0].asked_at_ps
    };
    let (one, two, eight) = (time(1), time(2), time(8));
    // From a request on the wire to its data: 24 bytes, the way, memory, 20 + 64 bytes, the way. The first waits for the
    // engine to start, the last until the logic has the data.
    let round_ps = (24 + 100 + 250 + 84 + 100) * 1000;
    assert_eq!(one, 16 * round_ps + (50 + 25) * 1000);
    assert!(two > 8 * round_ps && two < 9 * round_ps, "{two}");
    assert!(eight > 2 * round_ps && eight < 4 * round_ps, "{eight}");
}

/// What the device writes is seen at the first poll after it is visible, in the order in which it was written.
#[test]
fn a_poll_sees_what_is_visible_and_not_before() {
    let sim = Sim::new(Probe::with([]), settings(1), 1).unwrap();
    let mut memory = patterned(&sim, 4096);
    let base = memory.address();
    memory.store(0, 0);
    memory.store(2048, 0);
    let word = |value: u64| value.to_le_bytes().to_vec();
    let writes = [
        Reaction::Write { address: base + 2048, data: word(7) },
        Reaction::Write { address: base, data: word(9) },
    ];
    sim.with(|machine| machine.device().reactions.extend(writes));
    let mut link = sim.link(CoreId(0));
    sim.end_turn(CoreId(0), Next::Again);
    let (mut turns, mut seen_at) = (0, None);
    let began = sim.with(|machine| machine.core_clock(CoreId(0)));
    run(&sim, |core| {
        turns += 1;
        if turns == 1 {
            link.write_register(0, 1).unwrap();
            link.write_register(0, 1).unwrap();
            return Next::Poll;
        }
        let now = sim.with(|machine| machine.core_clock(core));
        if memory.load_acquire(0) == 9 {
            assert_eq!(memory.load(2048), 7, "what was written first is seen first");
            seen_at = Some(now);
            return Next::Never;
        }
        Next::Poll
    });
    let seen = seen_at.expect("the flag was seen") - began;
    // Second doorbell: one uncached store (10) later, 112 as a link packet of 8 bytes on the wire and so on; here only that
    // polls happen every 2 ns from the end of the second store on.
    assert_eq!((seen.0 - 20_000) % 2_000, 0);
    assert!(turns >= 3, "the first write was a change as well");
}
