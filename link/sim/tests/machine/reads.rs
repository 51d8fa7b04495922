//! Loads of cores, and reads of the device among its writes.

use beeline_contract_device::DmaError;
use beeline_contract_link::{DmaMemory, Link};
use beeline_link_sim::machine::{CoreId, Next, Sim};
use beeline_link_sim::pcie::{Answers, Kind, Packet, Side};

use crate::probe::{Probe, Reaction};
use crate::{assert_at_rest, ns, once, pattern, patterned, run, settings};

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

/// What the device asks for that is no memory: each of its requests is ended by one completion without data, by its status
/// unsupported, however it would have been cut. A request that memory answers is answered, also beside one that it does not.
#[test]
fn a_request_for_no_memory_gets_one_completion() {
    for (start, bytes, good_requests, bad_requests) in
        [(1 << 45, 512, 0, 1), (1 << 45, 1100, 0, 3), (4096 - 1024, 2048, 2, 2)]
    {
        let mut machine = settings(1);
        machine.root.answers = Answers::EachBoundary;
        machine.device.read_tags = 1;
        let sim = Sim::new(Probe::with([]), machine, 1).unwrap();
        let memory = patterned(&sim, 4096);
        let address = if start == 1 << 45 { start } else { memory.address() + start };
        let read = |address, bytes| Reaction::Read { address, bytes };
        sim.with(|machine| {
            machine.device().reactions.extend([read(address, bytes), read(memory.address(), 64)])
        });
        let mut link = sim.link(CoreId(0));
        once(&sim, || assert!(link.write_register(0, 1).unwrap()));
        assert_at_rest(&sim);
        let completed = sim.with(|machine| machine.device().completed.clone());
        assert_eq!(completed[0].data, Err(DmaError::BadAddress));
        assert_eq!(completed[1].data, Ok((0..64).map(pattern).collect()), "the tag is free again");
        sim.with(|machine| {
            assert_eq!(machine.totals().faults, bad_requests);
            let sent = |kind| machine.links()[0].carried(Side::Upstream).tlps[kind as usize].packets;
            assert_eq!(sent(Kind::Completion), bad_requests);
            assert_eq!(sent(Kind::CompletionWithData), good_requests * 512 / 64 + 1);
        });
    }
}

/// A read of nothing is a request whose one double word has no byte enabled, answered by a double word: it pushes the writes
/// in front of it as any read does, and is refused where no memory is.
#[test]
fn a_read_of_nothing_completes() {
    for read_tags in [1, 64] {
        let mut machine = settings(1);
        machine.device.read_tags = read_tags;
        machine.root.write_visible = ns(5_000);
        let sim = Sim::new(Probe::with([]), machine, 1).unwrap();
        let memory = patterned(&sim, 4096);
        let base = memory.address();
        let nothing = |address| Reaction::Read { address, bytes: 0 };
        let write = Reaction::Write { address: base, data: vec![1; 64] };
        sim.with(|machine| {
            machine.device().reactions.extend([write, nothing(base), nothing(1 << 45), nothing(base)]);
        });
        let mut link = sim.link(CoreId(0));
        once(&sim, || (0..2).for_each(|_| assert!(link.write_register(0, 1).unwrap())));
        assert_at_rest(&sim);
        let completed = sim.with(|machine| machine.device().completed.clone());
        let data: Vec<_> = completed.iter().map(|read| read.data.clone()).collect();
        assert_eq!(data, [Ok(vec![]), Err(DmaError::BadAddress), Ok(vec![])]);
        assert!(completed[0].at_ps - completed[0].asked_at_ps > 5_000_000, "it passed the write");
    }
}

/// What a device sends while a core waits for a load: the kinds of its packets in the order of the wire, and of each the
/// nanosecond at which it left.
fn sent_beside_a_load(register_read_ns: u64, write_start_ns: u64, is_read_first: bool) -> Vec<(Kind, u64)> {
    let mut machine = settings(1);
    machine.device.register_read = ns(register_read_ns);
    machine.device.write_start = ns(write_start_ns);
    let sim = Sim::new(Probe::with([]), machine, 1).expect("a machine");
    let address = patterned(&sim, 4096).address();
    let write = Reaction::Write { address, data: vec![7; 64] };
    let read = is_read_first.then_some(Reaction::Read { address, bytes: 64 });
    sim.with(|machine| {
        machine.device().reactions.extend(read.into_iter().chain([write]));
        machine.links_mut()[0].start_record();
    });
    let mut link = sim.link(CoreId(0));
    once(&sim, || {
        assert!(link.write_register(0, 1).expect("a register"));
        assert!(link.start_read(8).expect("a register").is_some());
    });
    assert_at_rest(&sim);
    let passed = sim.with(|machine| machine.links_mut()[0].take_record());
    let tlps = passed.iter().filter(|passed| passed.from == Side::Downstream).filter_map(|passed| {
        let Packet::Tlp(tlp) = passed.packet else { return None };
        (tlp.kind != Kind::MemoryRead).then_some((tlp.kind, passed.at.0 / 1000))
    });
    tlps.collect()
}

/// Table of ordering rules: a posted request may pass a completion, and a completion without relaxed ordering no posted
/// request. So a register that is slow to read does not hold up what the device writes meanwhile, and what it wanted to write
/// before it answered goes first however long that takes.
#[test]
fn writes_of_the_device_pass_answers_and_answers_no_writes() {
    let kinds = |sent: &[(Kind, u64)]| sent.iter().map(|(kind, _)| *kind).collect::<Vec<_>>();
    let expected = [Kind::MemoryWrite, Kind::CompletionWithData];
    // Wanted while the register is being read.
    let sent = sent_beside_a_load(50_000, 35, true);
    assert_eq!(kinds(&sent), expected);
    assert!(sent[0].1 < 2_000 && sent[1].1 > 50_000, "{sent:?}");
    // Wanted before the load came.
    let sent = sent_beside_a_load(55, 50_000, false);
    assert_eq!(kinds(&sent), expected);
    assert!(sent[1].1 > 50_000, "{sent:?}");
}
