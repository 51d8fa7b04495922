//! DMA queues between hosts: bytes, what is lost, aborts, and what a program may ask.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use beeline_fabric::{
    Call, DmaDirection, DmaEntry, DmaSides, DmaState, LocalSegment, Refusal, RemoteSegment,
};
use beeline_hosts::*;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::device::Rate;
use beeline_link_sim::machine::hosts::{EngineSettings, HostId, Hosts, HostsSettings, Region};
use beeline_platforms::Platform;
use support::*;

const NEVER: Picoseconds = Picoseconds::NEVER;
/// When both members have joined and segments are connected.
const START: Picoseconds = us(10_000);
/// Until a link that was down is in use again, and what it lost has been pushed anew.
const REST_NS: u64 = 200_000;
const BYTES: usize = 200_000;

const fn us(at: u64) -> Picoseconds {
    Picoseconds::from_ns(at * 1_000)
}

fn with_engines(settings: HostsSettings) -> HostsSettings {
    let engine = EngineSettings {
        start: Picoseconds::from_ns(500),
        interval: Picoseconds::ZERO,
        rate: Rate::UNLIMITED,
        buffers: 16,
        tags: 8,
    };
    HostsSettings { engine: Some(engine), ..settings }
}

fn entry(local_offset: u64, remote_offset: u64, bytes: u64) -> DmaEntry {
    DmaEntry { local_offset, remote_offset, bytes }
}

fn fill(core: &Core, (region, at): (Region, usize), bytes: &[u8]) {
    for (word, offset) in bytes.as_chunks::<8>().0.iter().zip((at..).step_by(8)) {
        core.store(region, offset, u64::from_le_bytes(*word));
    }
}

fn bytes_of(core: &Core, (region, at): (Region, usize), bytes: usize) -> Vec<u8> {
    let mut found = vec![0; bytes];
    core.copy_out(region, at, &mut found);
    found
}

/// A member with a segment that it has connected to.
struct Side {
    core: Core,
    member: HostMember,
    local: LocalSegment,
    remote: RemoteSegment,
    memory: (Region, usize),
}

impl Side {
    fn sides(&self, direction: DmaDirection) -> DmaSides {
        DmaSides { local: self.local, remote: self.remote, direction }
    }

    fn bytes(&self) -> Vec<u8> {
        bytes_of(&self.core, self.memory, BYTES)
    }
}

/// Runs a program that has a segment on each of two hosts, until it is over. The other host's segment holds a pattern, and is checked at the end.
fn beside<T: Send>(
    settings: HostsSettings,
    happens: impl FnOnce(&mut Hosts),
    program: impl FnOnce(&mut Side) -> T + Send,
    at_end: impl FnOnce(Vec<u8>) + Send,
) -> T {
    let is_over = AtomicBool::new(false);
    let (results, hosts) = two_of(
        settings,
        happens,
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let local =
                available_by(beeline_fabric::AdapterNumber::ANY, &mut member, create(7, BYTES as u64));
            let memory = member.map_local(local, part(0, BYTES as u64)).unwrap();
            fill(&core, memory, &pattern(BYTES, 9));
            until(&mut member, |_| is_over.load(Relaxed));
            at_end(bytes_of(&core, memory, BYTES));
            None
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let remote = connected_by(beeline_fabric::AdapterNumber::ANY, &mut member, NODE_0, 7);
            let local = available(&mut member, 8, BYTES as u64);
            let memory = member.map_local(local, part(0, BYTES as u64)).unwrap();
            fill(&core, memory, &pattern(BYTES, 1));
            member.serve(START, |_| false);
            let mut side = Side { core, member, local, remote, memory };
            let result = program(&mut side);
            is_over.store(true, Relaxed);
            rest(&mut side.member, 100_000);
            Some(result)
        },
    );
    assert!(hosts.is_at_rest());
    results.into_iter().flatten().next().unwrap()
}

/// Entries of any place and size in either direction, beside stores of the same core that overtake each other.
#[test]
fn job_copies_its_entries_and_nothing_else_in_either_direction() {
    let entries = [entry(1, 3, 131), entry(4_093, 8_190, 70_001), entry(100_000, 90_112, 99_999)];
    let mine = pattern(BYTES, 1);
    let mut theirs = pattern(BYTES, 9);
    let mut read = mine.clone();
    for DmaEntry { local_offset, remote_offset, bytes } in entries {
        let (local, remote) = (local_offset as usize, remote_offset as usize);
        read[local..][..bytes as usize].copy_from_slice(&theirs[remote..][..bytes as usize]);
    }
    for DmaEntry { local_offset, remote_offset, bytes } in entries {
        let (local, remote) = (local_offset as usize, remote_offset as usize);
        theirs[remote..][..bytes as usize].copy_from_slice(&read[local..][..bytes as usize]);
    }
    let stored = pattern(1024, 5);
    theirs[199_000 - 184..][..1024].copy_from_slice(&stored);
    let entries = &entries;
    beside(
        with_engines(disordered()),
        |_| {},
        |side| {
            let queue = side.member.create_dma_queue(0, 8).unwrap();
            for direction in [DmaDirection::Read, DmaDirection::Write] {
                side.member.start_dma(queue, side.sides(direction), entries).unwrap();
                assert_eq!(side.member.dma_state(queue), Ok(DmaState::Posted));
                let map = side.member.map(side.remote, part(199_000 - 184, 1024)).unwrap();
                if direction == DmaDirection::Write {
                    map.copy_in(0, &stored);
                }
                assert_eq!(side.member.wait_for_dma(queue, NEVER), Ok(DmaState::Done));
                map.flush();
                assert!(side.bytes() == read, "{direction:?}");
            }
        },
        |found| assert!(found == theirs),
    );
}

/// Whoever finds a job done finds all of its bytes, however a link went down and came up meanwhile, at either end, and however shortly.
#[test]
fn job_that_a_link_interrupts_fails_and_is_never_done_wrongly() {
    let failed = AtomicU32::new(0);
    for (way, port, down_us) in [
        (DmaDirection::Write, 0, 1),
        (DmaDirection::Write, 1, 1),
        (DmaDirection::Write, 0, 90),
        (DmaDirection::Read, 0, 1),
        (DmaDirection::Read, 1, 1),
        (DmaDirection::Read, 1, 90),
    ] {
        for nth in 0..8 {
            // From before the first byte to behind the last.
            let down = START + Picoseconds::from_ns(50_000 + nth * 16_500);
            beside(
                with_engines(settings()),
                |hosts| {
                    hosts.link_will_change(HostId(port), down, false);
                    hosts.link_will_change(HostId(port), down + us(down_us), true);
                },
                |side| {
                    let queue = side.member.create_dma_queue(0, 8).unwrap();
                    side.member.serve(START + us(60), |_| false);
                    let all = [entry(0, 0, BYTES as u64)];
                    let mut state =
                        side.member.start_dma(queue, side.sides(way), &all).map(|()| DmaState::Posted);
                    if state.is_ok() {
                        state = side.member.wait_for_dma(queue, NEVER);
                    }
                    if state != Ok(DmaState::Done) {
                        failed.fetch_add(1, Relaxed);
                        let why = state.err().or_else(|| side.member.dma_failure(queue));
                        assert_eq!(why, Some(Refusal::TransferFailed));
                        rest(&mut side.member, REST_NS);
                        side.member.start_dma(queue, side.sides(way), &all).unwrap();
                        assert_eq!(side.member.wait_for_dma(queue, NEVER), Ok(DmaState::Done));
                    }
                    if way == DmaDirection::Read {
                        assert!(
                            side.bytes() == pattern(BYTES, 9),
                            "port {port}, down {nth} for {down_us} us"
                        );
                    }
                },
                |found| {
                    let sent = if way == DmaDirection::Write { 1 } else { 9 };
                    assert!(found == pattern(BYTES, sent), "port {port}, down {nth} for {down_us} us");
                },
            );
        }
    }
    assert!(failed.load(Relaxed) >= 30, "{failed:?} of 48");
}

#[test]
fn aborted_job_copies_nothing_after_the_abort() {
    for way in [DmaDirection::Write, DmaDirection::Read] {
        for after_ns in [0, 700, 20_000, 60_000] {
            beside(
                with_engines(settings()),
                |_| {},
                |side| {
                    let queue = side.member.create_dma_queue(0, 8).unwrap();
                    assert_eq!(side.member.abort_dma(queue), Err(Refusal::IllegalOperation));
                    let all = [entry(0, 0, BYTES as u64)];
                    side.member.start_dma(queue, side.sides(way), &all).unwrap();
                    rest(&mut side.member, after_ns);
                    assert_eq!(side.member.abort_dma(queue), Ok(DmaState::Aborted));
                    // Nobody overwrites what is stored from here on, at either side.
                    let mine = pattern(BYTES, 2);
                    fill(&side.core, side.memory, &mine);
                    let map = side.member.map(side.remote, part(0, BYTES as u64)).unwrap();
                    map.copy_in(0, &pattern(BYTES, 3));
                    map.flush();
                    rest(&mut side.member, 500_000);
                    assert!(side.bytes() == mine, "{way:?} after {after_ns} ns");
                },
                |found| assert!(found == pattern(BYTES, 3), "{way:?} after {after_ns} ns"),
            );
        }
    }
}

#[test]
fn segments_are_in_use_as_long_as_a_job_is_under_way_and_no_longer() {
    beside(
        with_engines(settings()),
        |_| {},
        |side| {
            let queue = side.member.create_dma_queue(0, 8).unwrap();
            side.member.call(unmap_local(side.local)).unwrap();
            let sides = side.sides(DmaDirection::Write);
            side.member.start_dma(queue, sides, &[entry(0, 0, 64)]).unwrap();
            assert_eq!(side.member.call(disconnect(side.remote)), Err(Refusal::Busy));
            assert_eq!(side.member.call(remove(side.local, false)), Err(Refusal::Busy));
            assert_eq!(side.member.start_dma(queue, sides, &[entry(0, 0, 64)]), Err(Refusal::Busy));
            let now = side.member.now();
            assert_eq!(side.member.wait_for_dma(queue, now), Ok(DmaState::Posted), "the time is over first");
            assert_eq!(side.member.wait_for_dma(queue, NEVER), Ok(DmaState::Done));
            assert_eq!(side.member.next_dma_end(), None);
            side.member.tell_dma_ends(queue, true).unwrap();
            // Of no bytes, too, and by whoever removes the queue.
            side.member.start_dma(queue, sides, &[entry(7, 9, 0)]).unwrap();
            assert_eq!(side.member.next_dma_end(), Some((queue, DmaState::Done)));
            side.member.start_dma(queue, sides, &[entry(0, 0, BYTES as u64)]).unwrap();
            side.member.remove_dma_queue(queue).unwrap();
            assert_eq!(side.member.next_dma_end(), Some((queue, DmaState::Aborted)));
            assert_eq!(side.member.dma_state(queue), Err(Refusal::IllegalParameter));
            side.member.call(disconnect(side.remote)).unwrap();
            side.member.call(remove(side.local, false)).unwrap();
        },
        |_| {},
    );
}

#[test]
fn entries_are_gathered_for_one_job_between_the_same_segments() {
    beside(
        with_engines(settings()),
        |_| {},
        |side| {
            let queue = side.member.create_dma_queue(0, 2).unwrap();
            let (write, read) = (side.sides(DmaDirection::Write), side.sides(DmaDirection::Read));
            assert_eq!(side.member.post_dma(queue), Err(Refusal::IllegalOperation));
            side.member.gather_dma(queue, write, entry(0, 64, 64)).unwrap();
            assert_eq!(side.member.gather_dma(queue, read, entry(0, 0, 64)), Err(Refusal::IllegalOperation));
            let beyond = entry(0, BYTES as u64 - 8, 64);
            assert_eq!(side.member.gather_dma(queue, write, beyond), Err(Refusal::OutOfRange));
            side.member.gather_dma(queue, write, entry(64, 0, 64)).unwrap();
            assert_eq!(side.member.gather_dma(queue, write, entry(0, 0, 1)), Err(Refusal::MaxEntries));
            let start = side.member.start_dma(queue, write, &[entry(0, 0, 1)]);
            assert_eq!(start, Err(Refusal::IllegalOperation));
            assert_eq!(side.member.wait_for_dma(queue, NEVER), Err(Refusal::IllegalOperation));
            side.member.post_dma(queue).unwrap();
            assert_eq!(side.member.wait_for_dma(queue, NEVER), Ok(DmaState::Done));
            assert_eq!(side.member.gather_dma(queue, write, entry(0, 0, 1)), Err(Refusal::IllegalOperation));
            side.member.reset_dma(queue).unwrap();
            assert_eq!(side.member.dma_state(queue), Ok(DmaState::Idle));
            let (none, many) = (side.member.create_dma_queue(0, 0), side.member.create_dma_queue(1, 1));
            assert_eq!((none, many), (Err(Refusal::IllegalParameter), Err(Refusal::NoSuchAdapterno)));
        },
        |found| {
            let (mine, mut theirs) = (pattern(BYTES, 1), pattern(BYTES, 9));
            theirs[64..128].copy_from_slice(&mine[..64]);
            theirs[..64].copy_from_slice(&mine[64..128]);
            assert!(found == theirs);
        },
    );
    beside(
        settings(),
        |_| {},
        |side| assert_eq!(side.member.create_dma_queue(0, 1), Err(Refusal::NotSupported)),
        |_| {},
    );
}

/// Blocks go by the engines of two adapters at once, while the links of both go down and come up at either end.
#[test]
fn engines_of_two_adapters_copy_at_once_and_one_goes_on_without_the_other() {
    const BLOCKS: usize = 20;
    const BLOCK: usize = BYTES / BLOCKS;
    let settings = hosts(&Platform::named("vpx3-1259-gen2x4-linux").unwrap(), &Shape::Adapters(2)).unwrap();
    let failures = beside(
        with_engines(settings),
        |hosts| {
            for flap in 0..12 {
                let port = HostId([0, 2, 1, 3][flap % 4]);
                let at = START + Picoseconds::from_ns(flap as u64 * 81_003);
                hosts.link_will_change(port, at, false);
                hosts.link_will_change(port, at + us(10), true);
            }
            // The first adapter stays down.
            hosts.link_will_change(HostId(1), START + us(2_000), false);
        },
        |side| {
            let queues = [0, 1].map(|adapter| side.member.create_dma_queue(adapter, 1).unwrap());
            let sides = side.sides(DmaDirection::Write);
            let block = |nth: usize| entry((nth * BLOCK) as u64, (nth * BLOCK) as u64, BLOCK as u64);
            let (mut left, mut failures): (Vec<usize>, u32) = ((0..BLOCKS).collect(), 0);
            while left.len() > 4 {
                let two: Vec<_> = left.drain(..2).collect();
                for (queue, nth) in queues.iter().zip(&two) {
                    let _ = side.member.start_dma(*queue, sides, &[block(*nth)]);
                }
                for (queue, nth) in queues.iter().zip(&two) {
                    let end = side.member.wait_for_dma(*queue, NEVER);
                    if end != Ok(DmaState::Done) {
                        failures += 1;
                        left.push(*nth);
                        rest(&mut side.member, 30_000);
                    }
                    let _ = side.member.reset_dma(*queue);
                }
            }
            side.member.serve(START + us(9_000), |_| false);
            assert_eq!(side.member.start_dma(queues[0], sides, &[block(0)]), Err(Refusal::TransferFailed));
            for nth in left {
                side.member.start_dma(queues[1], sides, &[block(nth)]).unwrap();
                assert_eq!(side.member.wait_for_dma(queues[1], NEVER), Ok(DmaState::Done));
            }
            failures
        },
        |found| {
            let wrong: Vec<_> = (0..BLOCKS)
                .filter(|nth| found[nth * BLOCK..][..BLOCK] != pattern(BYTES, 1)[nth * BLOCK..][..BLOCK])
                .collect();
            assert!(wrong.is_empty(), "{wrong:?}");
        },
    );
    assert!(failures > 0, "no job found that a link had been down");
}

/// Two queues of one engine, of which the second has a short job: it does not wait for all of the first.
#[test]
fn queues_take_turns() {
    beside(
        with_engines(settings()),
        |_| {},
        |side| {
            let [long, short] = [0, 0].map(|adapter| side.member.create_dma_queue(adapter, 1).unwrap());
            let sides = side.sides(DmaDirection::Write);
            let many: Vec<_> = (0..40).map(|_| entry(0, 0, 20_000)).collect();
            side.member.start_dma(long, sides, &many).unwrap();
            side.member.start_dma(short, sides, &[entry(0, 0, 8)]).unwrap();
            assert_eq!(side.member.wait_for_dma(short, NEVER), Ok(DmaState::Done));
            assert_eq!(side.member.dma_state(long), Ok(DmaState::Posted));
            assert_eq!(side.member.wait_for_dma(long, NEVER), Ok(DmaState::Done));
        },
        |_| {},
    );
}

/// A provider that takes its segment away by force ends the job with an error.
#[test]
fn job_fails_when_the_segment_is_taken_away() {
    let is_taken = AtomicBool::new(false);
    let begun = AtomicBool::new(false);
    two_of(
        with_engines(settings()),
        |_| {},
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let local = available(&mut member, 7, BYTES as u64);
            until(&mut member, |_| begun.load(Relaxed));
            let _ = member.call(remove(local, true));
            is_taken.store(true, Relaxed);
            rest(&mut member, 2_000_000);
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let remote = connected(&mut member, NODE_0, 7);
            let local = available(&mut member, 8, BYTES as u64);
            let queue = member.create_dma_queue(0, 1).unwrap();
            let sides = DmaSides { local, remote, direction: DmaDirection::Write };
            let all: Vec<_> = (0..40).map(|_| entry(0, 0, BYTES as u64)).collect();
            member.start_dma(queue, sides, &all).unwrap();
            begun.store(true, Relaxed);
            assert_eq!(member.wait_for_dma(queue, NEVER), Ok(DmaState::Error));
            assert!(is_taken.load(Relaxed));
            assert_eq!(member.dma_failure(queue), Some(Refusal::TransferFailed));
            let again = member.start_dma(queue, sides, &all);
            assert!(again.is_err(), "{again:?}");
            member.call(Call::Disconnect(remote)).unwrap();
        },
    );
}
