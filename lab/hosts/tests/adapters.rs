//! Two adapters between two hosts: what both carry, and what goes on when one is down.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use beeline_fabric::{AdapterNumber, InterruptNumber, LocalSegment, SequenceStatus};
use beeline_hosts::*;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::{HostId, Hosts, HostsSettings, Region};
use beeline_platforms::Platform;
use support::*;

const PLATFORM: &str = "vpx3-1259-gen2x4-linux";

fn us(at: u64) -> Picoseconds {
    Picoseconds::from_ns(at * 1_000)
}

fn two_adapters() -> HostsSettings {
    hosts(&Platform::named(PLATFORM).unwrap(), &Shape::Adapters(2)).unwrap()
}

/// Cores and root complexes that let stores leave in any order.
fn disordered_adapters() -> HostsSettings {
    let disordered = disordered();
    HostsSettings { core: disordered.core, root: disordered.root, ..two_adapters() }
}

/// A segment that others connect to by each adapter.
fn available_by_all(member: &mut HostMember, bytes: u64) -> LocalSegment {
    available_by(AdapterNumber::ANY, member, create(7, bytes))
}

/// Blocks are stored by whichever adapter is up while the links of both go down and come up at either end, and at last one stays down.
#[test]
fn transfer_by_any_adapter_is_exact_and_goes_on_when_one_stays_down() {
    const BLOCKS: usize = 64;
    const BLOCK: usize = 1024;
    let is_done = AtomicBool::new(false);
    let happens = |hosts: &mut Hosts| {
        for flap in 0..24 {
            // Adapters in turn, at either end: ports 0 and 1 are of the first, 2 and 3 of the second.
            let port = HostId([0, 2, 1, 3][flap % 4]);
            let at = 6_000_000 + flap as u64 * 91_003;
            hosts.link_will_change(port, Picoseconds::from_ns(at), false);
            hosts.link_will_change(port, Picoseconds::from_ns(at + 40_000), true);
        }
        hosts.link_will_change(HostId(0), us(8_300), false);
    };
    let (results, hosts) = two_of(
        disordered_adapters(),
        happens,
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let local = available_by_all(&mut member, (BLOCKS * BLOCK) as u64);
            let (region, at) = member.map_local(local, part(0, (BLOCKS * BLOCK) as u64)).unwrap();
            until(&mut member, |_| is_done.load(Relaxed));
            let mut bytes = vec![0; BLOCKS * BLOCK];
            core.copy_out(region, at, &mut bytes);
            for block in 0..BLOCKS {
                let found = &bytes[block * BLOCK..][..BLOCK];
                assert!(found == pattern(BLOCK, block as u64), "block {block} is not what was stored");
            }
            assert!(member.is_joined(NODE_1), "one adapter is enough");
            0
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let remote = connected_by(AdapterNumber::ANY, &mut member, NODE_0, 7);
            let map = member.map(remote, part(0, (BLOCKS * BLOCK) as u64)).unwrap();
            member.serve(us(5_990), |_| false);
            let mut again = 0;
            for block in 0..BLOCKS {
                let bytes = pattern(BLOCK, block as u64);
                again += store_block(&mut member, &map, block * BLOCK, &bytes, 20_000);
                // The last blocks go by the second adapter alone.
                if block == BLOCKS - 8 {
                    member.serve(us(16_000), |_| false);
                }
            }
            is_done.store(true, Relaxed);
            rest(&mut member, 200_000);
            again
        },
    );
    assert!(results[1] > 0, "no sequence found that a link had been down");
    assert!(!hosts.is_up(HostId(0)) && hosts.is_up(HostId(2)));
}

/// Whoever names an adapter gets that one, whatever the other does.
#[test]
fn connection_by_one_adapter_waits_for_that_one() {
    two_of(
        two_adapters(),
        |hosts| {
            hosts.link_will_change(HostId(0), us(6_000), false);
            hosts.link_will_change(HostId(1), us(6_000), false);
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            available_by_all(&mut member, 4096);
            member.serve(us(9_000), |_| false);
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let number = |adapter| AdapterNumber::new(adapter).unwrap();
            let [first, second, any] = [number(0), number(1), AdapterNumber::ANY]
                .map(|adapter| connected_by(adapter, &mut member, NODE_0, 7));
            member.serve(us(7_000), |_| false);
            let maps = [first, second, any].map(|remote| member.map(remote, part(0, 64)).unwrap());
            let found = maps.map(|map| map.start().0);
            use SequenceStatus::{Ok, Pending};
            assert_eq!(found, [Pending, Ok, Ok]);
            rest(&mut member, 100_000);
        },
    );
}

/// Most of it is still on its way when the call that stores it returns.
const ON_ITS_WAY: usize = 16 << 10;

fn is_all_there(core: &Core, (region, at): (Region, usize)) -> bool {
    let mut bytes = vec![0; ON_ITS_WAY];
    core.copy_out(region, at, &mut bytes);
    bytes == pattern(ON_ITS_WAY, 3)
}

/// The trigger is a word that goes by the first adapter.
#[test]
fn trigger_comes_behind_stores_by_the_other_adapter() {
    const NUMBER: InterruptNumber = InterruptNumber(9);
    let whole = part(0, ON_ITS_WAY as u64);
    two_of(
        disordered_adapters(),
        |_| {},
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let local = available_by_all(&mut member, whole.bytes);
            let memory = member.map_local(local, whole).unwrap();
            let options = InterruptOptions { number: Some(NUMBER), ..InterruptOptions::default() };
            let mut interrupt = member.create_interrupt(options).unwrap();
            member.wait_for_interrupt(&mut interrupt, us(100_000)).unwrap();
            assert!(is_all_there(&core, memory));
            rest(&mut member, 100_000);
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let remote = connected_by(AdapterNumber::ANY, &mut member, NODE_0, 7);
            let map = member.map(remote, whole).unwrap().by(1);
            let mut interrupt = member.connect_interrupt(NODE_0, NUMBER, None).unwrap();
            map.copy_in(0, &pattern(ON_ITS_WAY, 3));
            member.trigger(&mut interrupt).unwrap();
            rest(&mut member, 100_000);
        },
    );
}

/// The check of a sequence loads across by the first adapter.
#[test]
fn sequence_ends_behind_stores_by_the_other_adapter() {
    let is_checked = AtomicBool::new(false);
    let whole = part(0, ON_ITS_WAY as u64);
    two_of(
        disordered_adapters(),
        |_| {},
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let local = available_by_all(&mut member, whole.bytes);
            let memory = member.map_local(local, whole).unwrap();
            until(&mut member, |_| is_checked.load(Relaxed));
            assert!(is_all_there(&core, memory));
            rest(&mut member, 100_000);
        },
        |core, wiring| {
            let mut member = joined(&core, &wiring);
            let remote = connected_by(AdapterNumber::ANY, &mut member, NODE_0, 7);
            let [by_any, second] = [(); 2].map(|()| member.map(remote, whole).unwrap());
            let second = second.by(1);
            let start = by_any.start().1.unwrap();
            second.copy_in(0, &pattern(ON_ITS_WAY, 3));
            assert_eq!(by_any.check(&start), SequenceStatus::Ok);
            is_checked.store(true, Relaxed);
            rest(&mut member, 100_000);
        },
    );
}

/// The caller stores stripes through the map of each adapter in turn.
#[test]
fn two_adapters_carry_more_than_one() {
    let platform = Platform::named(PLATFORM).unwrap();
    let rate = |adapters, stripe| striped_rate_gbps(&platform, adapters, stripe, 1).unwrap();
    let one = rate(1, 256);
    let two = [64, 256, 1024, 4096].map(|stripe| rate(2, stripe));
    println!("one adapter {one} Gbit/s, two {two:?}");
    assert!(two[0] > 1.5 * one && two[0] < 2.05 * one, "{one}, {two:?}");
}
