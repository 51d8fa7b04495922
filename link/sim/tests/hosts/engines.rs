//! DMA engines of ports: times by hand, bytes, order, what is lost, and what is aborted.

use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::device::Rate;
use beeline_link_sim::machine::Next;
use beeline_link_sim::machine::hosts::{
    EngineSettings, HostId, Hosts, HostsSettings, Joined, Outcome, Place, Region, Transfer, Way,
};
use proptest::prelude::*;

use super::{NEVER, load, ns, place, row, settings, turn};

const BYTES: usize = 1 << 16;

fn engine() -> EngineSettings {
    EngineSettings {
        start: ns(500),
        interval: Picoseconds::ZERO,
        rate: Rate::UNLIMITED,
        buffers: 16,
        tags: 8,
    }
}

fn with(engine: EngineSettings, joined: Joined) -> HostsSettings {
    HostsSettings { engine: Some(engine), ..settings(joined) }
}

/// Two hosts, memory of each, and memory for status words.
fn two_with(engine: EngineSettings) -> (Hosts, [Region; 3]) {
    let mut hosts = Hosts::new(with(engine, Joined::Row(row(0))), 1).unwrap();
    let memory = [0, 1, 0].map(|host| hosts.add_memory(HostId(host), BYTES));
    (hosts, memory)
}

fn transfer([here, there, status]: [Region; 3], way: Way, bytes: u64) -> Transfer {
    let (local, status) = ((here, 0), (status, 0));
    Transfer { number: 7, way, local, remote: there.address, bytes, answer: None, status }
}

/// Bytes of which no two words are alike.
fn fill(hosts: &mut Hosts, host: u16, region: Region, bytes: usize) -> Vec<u8> {
    let words = (0..bytes as u64 / 8).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let bytes = words.clone().flat_map(u64::to_le_bytes).collect();
    turn(hosts, host, |hosts, place| {
        words.zip((0..).step_by(8)).for_each(|(word, at)| hosts.store(place, region, at, word));
    });
    bytes
}

fn copied(hosts: &mut Hosts, host: u16, region: Region, bytes: usize) -> Vec<u8> {
    let mut found = vec![0; bytes];
    turn(hosts, host, |hosts, place| hosts.copy_out(place, region, 0, &mut found));
    found
}

/// Starts a transfer, and lets a host poll until it finds a word that is not zero; returns the time from the one to the other.
fn polled(
    hosts: &mut Hosts,
    transfer: Transfer,
    poller: Place,
    (region, at): (Region, usize),
) -> Picoseconds {
    let (mut began, mut begins) = (hosts.now() + ns(1000), true);
    hosts.end_turn(place(0), Next::At(began), NEVER);
    if poller != place(0) {
        hosts.end_turn(poller, Next::Poll, NEVER);
    }
    while let Some(due) = hosts.advance(NEVER) {
        if due == place(0) && begins {
            began = hosts.clock(due);
            assert!(hosts.start_transfer(due, transfer));
            begins = false;
            let next = if poller == due { Next::Poll } else { Next::Never };
            hosts.end_turn(due, next, NEVER);
        } else if hosts.load(due, region, at) != 0 {
            let found = hosts.now().since(began);
            hosts.end_turn(due, Next::Never, NEVER);
            assert_eq!(hosts.advance(NEVER), None);
            return found;
        } else {
            hosts.end_turn(due, Next::Poll, NEVER);
        }
    }
    panic!("nobody finds anything")
}

fn near(found: Picoseconds, ns: u64) {
    assert!((ns..=ns + 4).contains(&found.as_ns()), "{found:?} in place of {ns} ns");
}

#[test]
fn two_packets_arrive_at_the_sum_of_what_is_in_their_way() {
    let (mut hosts, memory) = two_with(engine());
    fill(&mut hosts, 0, memory[0], 512);
    let last = (memory[1], 504);
    let found = polled(&mut hosts, transfer(memory, Way::Out, 512), place(1), last);
    // The store to its register, its start, memory of four lines; two packets of 256 B with 24 of header and framing at half a nanosecond a
    // byte, of which the first leaves when its data are there, and then the second without a pause.
    near(found, 50 + 500 + 206 + 2 * 140 + 90 + 100);
}

#[test]
fn requests_wait_for_a_tag_and_then_take_as_long_as_the_first() {
    let wire = |bytes: u64| bytes / 2;
    // A request of 16 + 8, memory, an acknowledgement of 8, eight answers of a line with 12 + 8.
    let one = wire(24) + 90 + 200 + wire(8) + wire(84) * 8 + 90;
    let [one_tag, four_tags] = [1, 4].map(|tags| {
        let (mut hosts, memory) = two_with(EngineSettings { tags, ..engine() });
        let there = HostId(1);
        fill(&mut hosts, there.0, memory[1], 2048);
        let status = (memory[2], 0);
        polled(&mut hosts, transfer(memory, Way::In, 2048), place(0), status)
    });
    near(one_tag, 50 + 500 + 4 * one + 100);
    // The answers of all four follow each other.
    near(four_tags, 50 + 500 + wire(24) + 90 + 200 + 4 * 8 * wire(84) + 90 + 100);
}

#[test]
fn long_transfer_fills_the_link_with_packets_of_the_longest_payload() {
    let (mut hosts, memory) = two_with(engine());
    fill(&mut hosts, 0, memory[0], BYTES);
    let found =
        polled(&mut hosts, transfer(memory, Way::Out, BYTES as u64), place(1), (memory[1], BYTES - 8));
    // Acknowledgements and credits of the other way take nothing of this one.
    near(found, 50 + 500 + 206 + BYTES as u64 / 256 * 140 + 90 + 100);
    assert_eq!(copied(&mut hosts, 1, memory[1], BYTES), copied(&mut hosts, 0, memory[0], BYTES));
    assert!(hosts.is_at_rest());
}

#[test]
fn word_across_is_read_behind_what_was_written() {
    let (mut hosts, memory) = two_with(engine());
    fill(&mut hosts, 0, memory[0], 4096);
    let last = load(&mut hosts, 0, memory[0], 4088);
    let answer = Some(memory[1].address + 4088);
    let transfer = Transfer { answer, ..transfer(memory, Way::Out, 4096) };
    polled(&mut hosts, transfer, place(0), (memory[2], 0));
    assert_eq!(Outcome::of(load(&mut hosts, 0, memory[2], 0), 7), Some(Outcome::Done));
    assert_eq!(Outcome::of(load(&mut hosts, 0, memory[2], 0), 8), None);
    assert_eq!(load(&mut hosts, 0, memory[2], 8), last, "the word as it was behind the transfer");
}

#[test]
fn what_is_no_memory_fails_and_nothing_is_left_under_way() {
    for way in [Way::Out, Way::In] {
        let (mut hosts, memory) = two_with(engine());
        let beyond = memory[1].address + BYTES as u64 + 4096;
        let transfer = Transfer { remote: beyond, answer: Some(beyond), ..transfer(memory, way, 1024) };
        polled(&mut hosts, transfer, place(0), (memory[2], 0));
        assert_eq!(load(&mut hosts, 0, memory[2], 0), Outcome::Failed.word(7));
        assert!(hosts.faults(HostId(1)) > 0 && hosts.is_at_rest());
    }
}

#[test]
fn lost_answers_fail_a_transfer_after_the_time_out() {
    for (way, down) in [(Way::Out, 0), (Way::Out, 1), (Way::In, 0), (Way::In, 1)] {
        let (mut hosts, memory) = two_with(engine());
        fill(&mut hosts, u16::from(way == Way::In), memory[usize::from(way == Way::In)], BYTES);
        hosts.link_will_change(HostId(down), hosts.now() + ns(10_000), false);
        let answer = Some(memory[1].address);
        let transfer = Transfer { answer, ..transfer(memory, way, BYTES as u64) };
        let found = polled(&mut hosts, transfer, place(0), (memory[2], 0));
        assert!(found > ns(50_000), "{found:?}");
        assert_eq!(load(&mut hosts, 0, memory[2], 0), Outcome::Failed.word(7));
        assert!(hosts.is_at_rest());
    }
}

#[test]
fn packet_that_leaves_while_the_link_is_down_is_lost_although_it_is_up_when_it_would_come() {
    let (mut hosts, memory) = two_with(engine());
    fill(&mut hosts, 0, memory[0], 8);
    let begins = hosts.now() + ns(1000);
    // The store to its register, its start and memory take 750 ns, the link 106.
    hosts.link_will_change(HostId(0), begins + ns(740), false);
    hosts.link_will_change(HostId(0), begins + ns(770), true);
    polled(&mut hosts, transfer(memory, Way::Out, 8), place(0), (memory[2], 0));
    assert_eq!(load(&mut hosts, 1, memory[1], 0), 0);
    assert!(hosts.is_at_rest());
}

#[test]
fn aborted_transfer_ends_with_what_was_under_way() {
    for way in [Way::Out, Way::In] {
        let (mut hosts, memory) = two_with(engine());
        let (from, into) = if way == Way::Out { (0, 1) } else { (1, 0) };
        let sent = fill(&mut hosts, from, memory[usize::from(from)], BYTES);
        turn(&mut hosts, 0, |hosts, place| {
            assert!(hosts.start_transfer(place, transfer(memory, way, BYTES as u64)));
            hosts.work(place, ns(10_000));
            hosts.abort_transfer(place, 7);
        });
        assert_eq!(load(&mut hosts, 0, memory[2], 0), Outcome::Aborted.word(7));
        let found = copied(&mut hosts, into, memory[usize::from(into)], BYTES);
        let bytes = found.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        // 9 us of the link, and less than what tags and buffers hold.
        assert!((8_000..24_000).contains(&bytes), "{bytes}");
        assert_eq!(found[..bytes], sent[..bytes]);
        assert!(hosts.is_at_rest());
    }
}

#[test]
fn cores_and_engine_have_the_link_in_turn() {
    let (mut hosts, memory) = two_with(engine());
    fill(&mut hosts, 0, memory[0], BYTES);
    let other = hosts.add_memory(HostId(1), BYTES);
    hosts.end_turn(place(0), Next::Again, NEVER);
    hosts.end_turn(place(1), Next::Poll, NEVER);
    let (mut stores, mut found) = (0, None);
    while let Some(due) = hosts.advance(NEVER) {
        if due == place(1) {
            if found.is_none() && hosts.load(due, memory[1], BYTES - 8) != 0 {
                found = Some(stores);
            }
            hosts.end_turn(due, Next::Poll, NEVER);
        } else if stores == 0 {
            assert!(hosts.start_transfer(due, transfer(memory, Way::Out, BYTES as u64)));
            stores = 1;
            hosts.end_turn(due, Next::Again, NEVER);
        } else if found.is_none() {
            hosts.store_line(due, other.address + stores % 1024 * 64, &[stores; 8]);
            stores += 1;
            hosts.end_turn(due, Next::Again, NEVER);
        } else {
            hosts.end_turn(due, Next::Never, NEVER);
        }
    }
    // 256 packets of the engine, and about as many of the core, beside those before its first and in the root complex.
    let lines = found.unwrap();
    assert!((256..340).contains(&lines), "{lines}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Transfers of any place and size, both ways at once, beside a core whose stores overtake each other: each brings its bytes, and nothing
    /// beside them.
    #[test]
    fn transfers_bring_their_bytes_and_nothing_else(
        jobs in prop::collection::vec((any::<bool>(), 0usize..3000, 0usize..3000, 0u64..1000), 1..6),
        tags in 1u16..6,
        buffers in 1usize..6,
        seed: u64,
    ) {
        let mut all = with(EngineSettings { tags, buffers, ..engine() }, Joined::Row(row(1)));
        all.root.write_jitter = ns(400);
        all.core.split_per_mille = 300;
        let mut hosts = Hosts::new(all, seed).unwrap();
        let [here, there, status] = [0, 1, 0].map(|host| hosts.add_memory(HostId(host), BYTES));
        let beside = hosts.add_memory(HostId(1), BYTES);
        let (mine, theirs) = (fill(&mut hosts, 0, here, 8192), fill(&mut hosts, 1, there, 8192));
        let (mut mine, mut theirs) = (mine, theirs);
        turn(&mut hosts, 0, |hosts, place| {
            for (nth, (is_out, local, remote, bytes)) in jobs.iter().enumerate() {
                let way = if *is_out { Way::Out } else { Way::In };
                // No place of one is a place of another.
                let (local, remote, bytes) = (local / 6 + nth * 1500, remote / 6 + nth * 1500, *bytes);
                let answer = Some(there.address);
                let status = (status, nth * 64);
                let remote_address = there.address + remote as u64;
                let number = nth as u32 + 1;
                let transfer = Transfer {
                    number, way, local: (here, local), remote: remote_address, bytes, answer, status,
                };
                assert!(hosts.start_transfer(place, transfer));
                let bytes = bytes as usize;
                if *is_out {
                    theirs[remote..remote + bytes].copy_from_slice(&mine[local..local + bytes]);
                } else {
                    mine[local..local + bytes].copy_from_slice(&theirs[remote..remote + bytes]);
                }
                for line in 0..16 {
                    let at = (nth as u64 * 16 + line) * 64;
                    hosts.store_line(place, beside.address + at, &[at + 1; 8]);
                }
            }
        });
        for nth in 0..jobs.len() {
            let word = load(&mut hosts, 0, status, nth * 64);
            prop_assert_eq!(Outcome::of(word, nth as u32 + 1), Some(Outcome::Done));
        }
        prop_assert!(copied(&mut hosts, 0, here, 8192) == mine, "memory here");
        prop_assert!(copied(&mut hosts, 1, there, 8192) == theirs, "memory there");
        for line in 0..jobs.len() * 16 {
            prop_assert_eq!(load(&mut hosts, 1, beside, line * 64 + 56), line as u64 * 64 + 1);
        }
        prop_assert!(hosts.is_at_rest());
    }
}
