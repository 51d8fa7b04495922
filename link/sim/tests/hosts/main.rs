//! Several hosts that store into each other's memory: times by hand, order, copies, links that are down.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod engines;
mod ntb;

use beeline_link_sim::cpu::{CoreSettings, FenceAck, Release};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::device::Rate;
use beeline_link_sim::machine::hosts::{HostId, Hosts, HostsError, HostsSettings, Joined, LOST, Place, Row};
use beeline_link_sim::machine::{Further, Next};
use beeline_link_sim::pcie::{Answers, Generation, Header, Lanes, LinkSettings};
use beeline_link_sim::root::RootSettings;
use proptest::prelude::*;

const NEVER: Picoseconds = Picoseconds::NEVER;
const fn ns(ns: u64) -> Picoseconds {
    Picoseconds::from_ns(ns)
}

fn core() -> CoreSettings {
    CoreSettings {
        store_bytes: 16,
        store: ns(1),
        buffers: 10,
        release: Release::Fifo,
        drain_interval: Picoseconds::ZERO,
        busy: ns(50),
        timeout: Picoseconds::ZERO,
        split_per_mille: 0,
        uncached_store: ns(50),
        uncached_load_bytes: 8,
        uncached_load: ns(60),
        cached_line: ns(2),
        poll: ns(2),
        line_wake: ns(130),
        fence: ns(30),
        fence_ack: FenceAck::Uncore,
        interrupt_interval: Picoseconds::ZERO,
        interrupt: Picoseconds::ZERO,
    }
}

fn root() -> RootSettings {
    RootSettings {
        write_latency: ns(60),
        write_jitter: Picoseconds::ZERO,
        write_interval: ns(2),
        write_places: 32,
        merges: false,
        read_latency: ns(200),
        read_interval: ns(2),
        answers: Answers::EachBoundary,
        write_visible: ns(100),
        write_ingest: ns(2),
        memory_rate: Rate::UNLIMITED,
    }
}

/// Generation 2, four lanes: half a nanosecond a byte.
fn link() -> LinkSettings {
    let settings = LinkSettings::new(Generation::Gen2, Lanes::new(4).unwrap());
    LinkSettings { flight: ns(90), ordered_sets: false, ..settings }
}

fn row(hops: usize) -> Row {
    Row { first: link(), further: vec![Further { latency: ns(50), link: link() }; hops] }
}

fn settings(joined: Joined) -> HostsSettings {
    let (header, completion_timeout) = (Header::FourDw, ns(50_000));
    HostsSettings { core: core(), cores: 1, root: root(), joined, header, completion_timeout, engine: None }
}

fn two(hops: usize) -> Hosts {
    Hosts::new(settings(Joined::Row(row(hops))), 1).unwrap()
}

fn switched(hosts: u16, groups: Vec<Vec<u16>>) -> HostsSettings {
    settings(Joined::Switch { latency: ns(50), rows: vec![row(1); hosts.into()], groups })
}

fn place(host: u16) -> Place {
    Place { host: HostId(host), core: 0 }
}

/// Gives a host one turn, in which it does something, and lets everything happen.
fn turn<T>(hosts: &mut Hosts, host: u16, f: impl FnOnce(&mut Hosts, Place) -> T) -> T {
    let place = place(host);
    hosts.end_turn(place, Next::Again, NEVER);
    assert_eq!(hosts.advance(NEVER), Some(place));
    let found = f(hosts, place);
    hosts.end_turn(place, Next::Never, NEVER);
    assert_eq!(hosts.advance(NEVER), None);
    found
}

fn load(hosts: &mut Hosts, host: u16, region: beeline_link_sim::machine::hosts::Region, at: usize) -> u64 {
    turn(hosts, host, |hosts, place| hosts.load(place, region, at))
}

#[test]
fn word_is_found_by_a_poll_at_the_sum_of_what_is_in_its_way() {
    for hops in 0..3 {
        let mut hosts = two(hops);
        let region = hosts.add_memory(HostId(1), 4096);
        hosts.end_turn(place(0), Next::At(ns(1000)), NEVER);
        hosts.end_turn(place(1), Next::Poll, NEVER);
        assert_eq!(hosts.advance(NEVER), Some(place(0)));
        hosts.store_in_order(place(0), region.address, 7);
        hosts.end_turn(place(0), Next::Never, NEVER);
        assert_eq!(hosts.advance(NEVER), Some(place(1)));
        // 8 B with a header of 16 and 8 of framing at half a nanosecond a byte, a link more than there are hops.
        let links = hops as u64 + 1;
        let sum = 60 + links * (16 + 90) + hops as u64 * 50 + 100;
        // The next poll of one that polls each 2 ns.
        let found = 1000 + (sum + 2).next_multiple_of(2);
        let now = hosts.now().as_ns();
        assert!((found - 2..=found).contains(&now), "{now}, {found} with {hops} hops");
        assert_eq!(hosts.load(place(1), region, 0), 7);
        assert_eq!(hosts.clock(place(1)), hosts.now() + ns(130), "the line was another host's");
    }
}

#[test]
fn load_across_comes_behind_the_stores_before_it() {
    let mut hosts = two(1);
    let region = hosts.add_memory(HostId(1), 4096);
    turn(&mut hosts, 0, |hosts, place| {
        hosts.store_word(place, region.address + 8, 7);
        hosts.load_across(place, region.address + 8);
    });
    assert_eq!(hosts.loaded(place(0)), 7);
    assert!(hosts.is_at_rest());
}

#[test]
fn group_is_copied_to_its_hosts_but_the_one_that_stores() {
    let mut hosts = Hosts::new(switched(5, vec![vec![0, 1, 3], vec![1, 2, 4]]), 1).unwrap();
    for (group, sender) in [(0, 0), (1, 2), (1, 0)] {
        let window = hosts.group_address(group).unwrap();
        let at = 64 * (usize::from(sender) + 1);
        turn(&mut hosts, sender, |hosts, place| hosts.store_in_order(place, window + at as u64, 9));
        let members: &[u16] = if group == 0 { &[0, 1, 3] } else { &[1, 2, 4] };
        for host in 0..5 {
            let region = hosts.group_memory(HostId(host), group).unwrap();
            let is_copied = members.contains(&host) && host != sender;
            assert_eq!(load(&mut hosts, host, region, at) == 9, is_copied, "host {host} of group {group}");
        }
    }
    assert!(hosts.is_at_rest());
}

/// A host that begins or ceases to receive while a packet is in the switch gets it as it was when the packet came.
#[test]
fn group_is_copied_to_whom_receives_when_a_packet_enters_the_switch() {
    for begins in [false, true] {
        let mut hosts = Hosts::new(switched(3, vec![vec![0, 1, 2]]), 1).unwrap();
        assert!(!hosts.set_receives(HostId(3), 0, true) && !hosts.set_receives(HostId(1), 1, true));
        assert!(hosts.set_receives(HostId(2), 0, !begins));
        let window = hosts.group_address(0).unwrap();
        hosts.end_turn(place(0), Next::Again, NEVER);
        assert_eq!(hosts.advance(NEVER), Some(place(0)));
        hosts.store_in_order(place(0), window, 9);
        hosts.end_turn(place(0), Next::Never, NEVER);
        // Two links and a hop lead to the switch, which takes 50 ns.
        let enters = 60 + 2 * (16 + 90) + 50;
        assert_eq!(hosts.advance(ns(enters + 25)), None);
        assert!(hosts.set_receives(HostId(2), 0, begins));
        assert_eq!(hosts.advance(NEVER), None);
        assert!(hosts.is_at_rest());
        turn(&mut hosts, 0, |hosts, place| hosts.store_in_order(place, window + 64, 9));
        for (host, first, second) in [(1, true, true), (2, !begins, begins)] {
            let region = hosts.group_memory(HostId(host), 0).unwrap();
            let found = [0, 64].map(|at| load(&mut hosts, host, region, at) == 9);
            assert_eq!(found, [first, second], "host {host}, begins: {begins}");
        }
    }
}

#[test]
fn link_that_is_down_loses_stores_and_answers_loads_with_ones() {
    for down in [0, 1] {
        let mut hosts = two(1);
        let region = hosts.add_memory(HostId(1), 4096);
        hosts.set_link(HostId(down), false);
        let begun = hosts.now();
        turn(&mut hosts, 0, |hosts, place| {
            hosts.store_in_order(place, region.address, 7);
            hosts.load_across(place, region.address);
        });
        assert_eq!(hosts.loaded(place(0)), LOST);
        assert!(hosts.clock(place(0)).since(begun) >= ns(50_000), "after the time-out");
        hosts.set_link(HostId(down), true);
        turn(&mut hosts, 0, |hosts, place| hosts.load_across(place, region.address));
        assert_eq!((hosts.loaded(place(0)), hosts.downs(HostId(down))), (0, 1));
        assert!(hosts.is_at_rest());
    }
}

/// Packets that wait in the root complex are lost when the link goes down, and the core that waits for their places has its turn.
#[test]
fn core_goes_on_when_its_root_complex_is_full_and_the_link_goes_down() {
    const LINES: u64 = 200;
    for down_at in [0, 500, 2_000].map(ns) {
        let mut hosts = two(0);
        let region = hosts.add_memory(HostId(1), 1 << 16);
        hosts.link_will_change(HostId(0), down_at, false);
        hosts.end_turn(place(0), Next::At(ns(10)), NEVER);
        assert_eq!(hosts.advance(NEVER), Some(place(0)));
        for line in 0..LINES {
            hosts.store_line(place(0), region.address + line * 64, &[line + 1; 8]);
        }
        hosts.end_turn(place(0), Next::Again, NEVER);
        assert_eq!(hosts.advance(NEVER), Some(place(0)), "the link goes down at {down_at}");
        hosts.end_turn(place(0), Next::Never, NEVER);
        assert_eq!(hosts.advance(NEVER), None);
        assert!(hosts.is_at_rest());
        let last = load(&mut hosts, 1, region, (LINES as usize - 1) * 64);
        assert_eq!(last, 0, "the link was down before the last line left");
    }
}

#[test]
fn access_of_what_is_no_memory_is_counted_where_it_comes() {
    let mut hosts = two(0);
    let region = hosts.add_memory(HostId(1), 64);
    turn(&mut hosts, 0, |hosts, place| {
        hosts.store_in_order(place, region.address + 64, 7);
        hosts.load_across(place, region.address + 128);
    });
    assert_eq!((hosts.loaded(place(0)), hosts.faults(HostId(1)), hosts.faults(HostId(0))), (LOST, 2, 0));
}

#[test]
fn requester_that_is_not_taken_writes_and_reads_nothing() {
    let mut hosts = Hosts::new(switched(3, vec![vec![0, 1, 2]]), 1).unwrap();
    let region = hosts.add_memory(HostId(1), 64);
    hosts.set_requester(HostId(1), HostId(0), false);
    let window = hosts.group_address(0).unwrap();
    for (sender, taken) in [(0, false), (2, true), (0, true)] {
        if sender == 0 && taken {
            hosts.set_requester(HostId(1), HostId(0), true);
        }
        let faults = hosts.faults(HostId(1));
        turn(&mut hosts, sender, |hosts, place| {
            hosts.store_in_order(place, region.address, 7 + u64::from(sender));
            hosts.store_in_order(place, window, 7 + u64::from(sender));
            hosts.load_across(place, region.address);
        });
        let copied = hosts.group_memory(HostId(1), 0).unwrap();
        let found = [region, copied].map(|region| load(&mut hosts, 1, region, 0) == 7 + u64::from(sender));
        assert_eq!((found, hosts.loaded(place(sender)) != LOST), ([taken; 2], taken), "of host {sender}");
        assert_eq!(hosts.faults(HostId(1)) - faults, if taken { 0 } else { 3 });
    }
    assert!(hosts.is_at_rest());
}

#[test]
fn hosts_that_cannot_be_are_refused() {
    let refused = |settings: HostsSettings| Hosts::new(settings, 1).err().unwrap();
    assert!(matches!(refused(switched(65, vec![])), HostsError::Count { what: "hosts", .. }));
    let mut long = settings(Joined::Row(row(0)));
    long.core.fence_ack = FenceAck::Device;
    assert_eq!(refused(long), HostsError::Fence);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever order stores leave in: each comes once, and what is stored in order comes behind what was stored before.
    #[test]
    fn every_store_of_every_host_comes_once(
        seed: u64, hosts_of in 2..6u16, jitter in 0..400u64, splits in 0..1000u32, release in 0..3usize, lines in 1..40u64,
    ) {
        let mut settings = switched(hosts_of, vec![]);
        settings.root.write_jitter = ns(jitter);
        settings.core.split_per_mille = splits;
        settings.core.release = [Release::Fifo, Release::OldestRandom, Release::Random][release];
        let mut hosts = Hosts::new(settings, seed).unwrap();
        let regions: Vec<_> =
            (0..hosts_of).map(|host| hosts.add_memory(HostId(host), 1 << 16)).collect();
        let slot = |from: u16| usize::from(from) * 4096;
        for from in 0..hosts_of {
            hosts.end_turn(place(from), Next::Again, NEVER);
        }
        let mut left = hosts_of;
        while let Some(place) = hosts.advance(NEVER) {
            let from = place.host.0;
            for to in (0..hosts_of).filter(|to| *to != from) {
                let begin = regions[usize::from(to)].address + slot(from) as u64;
                for line in 0..lines {
                    hosts.store_line(place, begin + line * 64, &[line << 8 | u64::from(from + 1); 8]);
                }
                hosts.store_in_order(place, begin + 4088, 1);
            }
            hosts.end_turn(place, Next::Never, NEVER);
            left -= 1;
            // Whoever sees the last word sees all lines.
            if left == 0 {
                break;
            }
        }
        let mut found = 0;
        for host in 0..hosts_of {
            hosts.end_turn(place(host), Next::Poll, NEVER);
        }
        while let Some(it) = hosts.advance(NEVER) {
            let to = it.host.0;
            for from in (0..hosts_of).filter(|from| *from != to) {
                let region = regions[usize::from(to)];
                if hosts.load(it, region, slot(from) + 4088) == 1 {
                    found += 1;
                    for word in 0..lines as usize * 8 {
                        let line = word as u64 / 8;
                        prop_assert_eq!(hosts.load(it, region, slot(from) + word * 8), line << 8 | u64::from(from + 1));
                    }
                }
            }
            hosts.end_turn(it, Next::Poll, NEVER);
        }
        prop_assert!(found >= hosts_of * (hosts_of - 1));
        prop_assert!(hosts.is_at_rest());
        prop_assert_eq!((0..hosts_of).map(|host| hosts.faults(HostId(host))).sum::<u64>(), 0);
    }
}
