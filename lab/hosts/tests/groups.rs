//! Groups of members on hosts at a central switch: what one stores comes to each who holds the group, and to nobody else.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use beeline_fabric::{Call, LocalEvent, NodeId, Refusal, RemoteSegment, SegmentId, SequenceStatus, Value};
use beeline_hosts::*;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::{HostId, Hosts, HostsSettings, Place, Region};
use beeline_platforms::Platform;
use support::*;

const GROUP: SegmentId = SegmentId(1);
const BYTES: u64 = 4096;

/// Hosts at a switch with two groups; of the second the first hosts are chosen.
fn switched(count: u16, chosen: u16) -> HostsSettings {
    let groups = vec![(0..count).collect(), (0..chosen).collect()];
    hosts(
        &Platform::named("vpx3-1259-gen2x4-linux").unwrap(),
        &Shape::Switch { hosts: count, devices: 0, groups },
    )
    .unwrap()
}

fn hold(member: &mut HostMember, bytes: u64) -> (HeldGroup, Region) {
    let held = member.join_group(GROUP, bytes).unwrap();
    member.call(Call::Prepare(held.local, adapter())).unwrap();
    member.call(Call::SetAvailable(held.local, adapter())).unwrap();
    let (region, at) = member.map_local(held.local, part(0, bytes)).unwrap();
    assert_eq!(at, 0);
    (held, region)
}

fn connected(member: &mut HostMember) -> RemoteSegment {
    support::connected(member, NodeId::GROUPS, GROUP.0)
}

fn copy_of(core: &Core, region: Region) -> Vec<u8> {
    let mut bytes = vec![0; BYTES as usize];
    core.copy_out(region, 0, &mut bytes);
    bytes
}

#[test]
fn store_comes_to_each_holder_and_to_no_other_host() {
    let (held, met, is_done) = (AtomicU32::new(0), AtomicU32::new(0), AtomicBool::new(false));
    let holder = |core: Core, wiring: Wiring| {
        let mut member = among(&core, &wiring, 6);
        let (group, region) = hold(&mut member, BYTES);
        held.fetch_add(1, Relaxed);
        meet(&mut member, &met, 6);
        until(&mut member, |_| is_done.load(Relaxed));
        assert_eq!(member.call(remove(group.local, false)), Err(Refusal::Busy), "it is connected to");
        copy_of(&core, region)
    };
    let writer = |core: Core, wiring: Wiring| {
        let mut member = among(&core, &wiring, 6);
        meet(&mut member, &met, 6);
        let remote = connected(&mut member);
        // A group is no one host's memory; what was refused is not mapped.
        assert_eq!(member.map(remote, part(0, BYTES)).err(), Some(Refusal::IllegalOperation));
        assert_eq!(member.call(Call::Disconnect(remote)), Ok(Value::Nothing));
        let remote = connected(&mut member);
        let map = member.map_group(remote, GROUP, part(0, BYTES)).unwrap();
        let start = map.start().1.unwrap();
        map.copy_in(0, &pattern(BYTES as usize, 3));
        assert_eq!((map.check(&start), map.holders()), (SequenceStatus::Ok, 2));
        is_done.store(true, Relaxed);
        rest(&mut member, 100_000);
        pattern(BYTES as usize, 3)
    };
    // Chosen and refused, chosen and not asking, and not chosen.
    let bystander = |core: Core, wiring: Wiring| {
        let mut member = among(&core, &wiring, 6);
        until(&mut member, |_| held.load(Relaxed) == 2);
        let refused = match core.host() {
            HostId(3) => Some(Refusal::SegmentidUsed),
            HostId(5) => Some(Refusal::IllegalOperation),
            _ => None,
        };
        if let Some(refused) = refused {
            assert_eq!(member.join_group(GROUP, BYTES / 2), Err(refused));
        }
        assert_eq!(member.join_group(SegmentId(2), BYTES), Err(Refusal::NoSuchSegment));
        assert_eq!(member.join_group(SegmentId(0), 2 << 20), Err(Refusal::Nospc));
        meet(&mut member, &met, 6);
        until(&mut member, |_| is_done.load(Relaxed));
        Vec::new()
    };
    let programs: Vec<HostProgram<'_, Vec<u8>>> = vec![
        Box::new(holder),
        Box::new(writer),
        Box::new(holder),
        Box::new(bystander),
        Box::new(bystander),
        Box::new(bystander),
    ];
    let (copies, mut hosts) = each(switched(6, 5), |_| {}, programs);
    assert_eq!((&copies[0], &copies[2]), (&copies[1], &copies[1]));
    assert_eq!((0..6).map(|host| hosts.faults(HostId(host))).sum::<u64>(), 0);
    assert!(hosts.is_at_rest());
    for host in [1, 3, 4, 5].map(HostId) {
        let region = hosts.group_memory(host, 1).unwrap();
        assert_eq!(hosts.load(Place { host, core: 0 }, region, 0), 0, "host {} holds no copy", host.0);
    }
}

/// What a holder's link has lost is found, also if it is up again and all words of members have been pushed anew.
#[test]
fn sequence_finds_what_the_link_of_one_holder_has_lost() {
    let met = AtomicU32::new(0);
    let us = |at: u64| Picoseconds::from_ns(at * 1_000);
    let happens = |hosts: &mut Hosts| {
        hosts.link_will_change(HostId(2), us(8_000), false);
        hosts.link_will_change(HostId(2), us(8_100), true);
    };
    let holder = |core: Core, wiring: Wiring| {
        let mut member = among(&core, &wiring, 3);
        let (_, region) = hold(&mut member, BYTES);
        meet(&mut member, &met, 3);
        member.serve(us(10_000), |_| false);
        assert_eq!(core.load(region, 0) == 7, core.host() != HostId(2), "its link was down");
        SequenceStatus::Ok
    };
    let writer = |core: Core, wiring: Wiring| {
        let mut member = among(&core, &wiring, 3);
        meet(&mut member, &met, 3);
        let remote = connected(&mut member);
        // What the last holder has published may still be on its way: meeting takes no time.
        until(&mut member, |member| member.holders_of(remote) == 2);
        let map = member.map_group(remote, GROUP, part(0, BYTES)).unwrap();
        let start = map.start().1.unwrap();
        member.serve(us(8_050), |_| false);
        map.store_word(0, 7);
        map.flush();
        member.serve(us(9_000), |_| false);
        assert!(map.start().1.is_some(), "copies are whole again");
        map.check(&start)
    };
    let programs: Vec<HostProgram<'_, SequenceStatus>> =
        vec![Box::new(writer), Box::new(holder), Box::new(holder)];
    let (results, _) = each(switched(3, 3), happens, programs);
    assert_eq!(results[0], SequenceStatus::Retriable);
}

/// A holder whose program does nothing while its link goes down and comes up says nothing of it, and its copy misses the store.
#[test]
fn sequence_finds_what_the_link_of_a_holder_has_lost_that_has_not_looked_since() {
    let met = AtomicU32::new(0);
    let us = |at: u64| Picoseconds::from_ns(at * 1_000);
    let happens = |hosts: &mut Hosts| {
        hosts.link_will_change(HostId(1), us(8_000), false);
        hosts.link_will_change(HostId(1), us(8_010), true);
    };
    let holder = |core: Core, wiring: Wiring| {
        let mut member = among(&core, &wiring, 2);
        let (_, region) = hold(&mut member, BYTES);
        meet(&mut member, &met, 2);
        member.serve(us(7_990), |_| false);
        core.sleep_until(us(8_100));
        assert_eq!(core.load(region, 0), 0, "its link was down");
        rest(&mut member, 100_000);
        SequenceStatus::Ok
    };
    let writer = |core: Core, wiring: Wiring| {
        let mut member = among(&core, &wiring, 2);
        meet(&mut member, &met, 2);
        let remote = connected(&mut member);
        let map = member.map_group(remote, GROUP, part(0, BYTES)).unwrap();
        member.serve(us(7_995), |_| false);
        let start = map.start().1.unwrap();
        core.sleep_until(us(8_005));
        assert_eq!(map.start().0, SequenceStatus::Pending);
        map.store_word(0, 7);
        map.flush();
        core.sleep_until(us(8_050));
        map.check(&start)
    };
    let programs: Vec<HostProgram<'_, SequenceStatus>> = vec![Box::new(writer), Box::new(holder)];
    let (results, _) = each(switched(2, 2), happens, programs);
    assert_eq!(results[0], SequenceStatus::Retriable);
}

/// Blocks are stored to a group in sequences while links of holders and of the writer go down, and stores leave in any order.
#[test]
fn copies_of_holders_are_exact_although_links_go_down() {
    const BLOCK: usize = 256;
    const BLOCKS: usize = BYTES as usize / BLOCK;
    let (met, is_done) = (AtomicU32::new(0), AtomicBool::new(false));
    let happens = |hosts: &mut Hosts| {
        for flap in 0..60 {
            let at = 6_000_000 + u64::from(flap) * 31_007;
            let host = HostId(flap % 3);
            hosts.link_will_change(host, Picoseconds::from_ns(at), false);
            hosts.link_will_change(host, Picoseconds::from_ns(at + 1_000 + u64::from(flap) * 300), true);
        }
    };
    let holder = |core: Core, wiring: Wiring| {
        let mut member = among(&core, &wiring, 3);
        let (_, region) = hold(&mut member, BYTES);
        meet(&mut member, &met, 3);
        until(&mut member, |_| is_done.load(Relaxed));
        for block in 0..BLOCKS {
            let found = &copy_of(&core, region)[block * BLOCK..][..BLOCK];
            assert!(found == pattern(BLOCK, block as u64), "block {block} on host {}", core.host().0);
        }
        0
    };
    let writer = |core: Core, wiring: Wiring| {
        let mut member = among(&core, &wiring, 3);
        meet(&mut member, &met, 3);
        let remote = connected(&mut member);
        let map = member.map_group(remote, GROUP, part(0, BYTES)).unwrap();
        assert_eq!(map.holders(), 2);
        until(&mut member, |member| member.now() > Picoseconds::from_ns(5_990_000));
        let mut again = 0;
        for block in 0..BLOCKS {
            again += store_block(&mut member, &map, block * BLOCK, &pattern(BLOCK, block as u64), 40_000);
        }
        is_done.store(true, Relaxed);
        rest(&mut member, 200_000);
        again
    };
    let mut settings = switched(3, 3);
    let disordered = disordered();
    (settings.core, settings.root) = (disordered.core, disordered.root);
    let programs: Vec<HostProgram<'_, u32>> = vec![Box::new(writer), Box::new(holder), Box::new(holder)];
    let (results, _) = each(settings, happens, programs);
    assert!(results[0] > 0, "no sequence found that a link had been down");
}

/// A holder that comes later is told so, has what is stored from then on, and hears when the writer knows of it.
#[test]
fn late_holder_is_told_and_has_what_comes_after_it() {
    let (met, is_stored, has_joined) = (AtomicU32::new(0), AtomicBool::new(false), AtomicBool::new(false));
    let first = |core: Core, wiring: Wiring| {
        let mut member = among(&core, &wiring, 3);
        let (held, region) = hold(&mut member, BYTES);
        assert!(held.is_first);
        meet(&mut member, &met, 2);
        until(&mut member, |_| met.load(Relaxed) == 4);
        (core.load(region, 0), core.load(region, 64))
    };
    let late = |core: Core, wiring: Wiring| {
        let mut member = among(&core, &wiring, 3);
        until(&mut member, |_| is_stored.load(Relaxed));
        let refused = member.join_group(GROUP, BYTES / 2);
        assert_eq!(refused, Err(Refusal::SegmentidUsed), "others hold it in another size");
        let (held, region) = hold(&mut member, BYTES);
        assert!(!held.is_first);
        assert_eq!(member.join_group(GROUP, BYTES), Err(Refusal::SegmentidUsed), "it holds it");
        has_joined.store(true, Relaxed);
        let waited = Call::WaitLocal { local: held.local, timeout_nanos: None };
        assert_eq!(member.call(waited), Ok(Value::LocalEvent(LocalEvent::Connect(NodeId(8)))));
        meet(&mut member, &met, 4);
        (core.load(region, 0), core.load(region, 64))
    };
    let writer = |core: Core, wiring: Wiring| {
        let mut member = among(&core, &wiring, 3);
        meet(&mut member, &met, 2);
        let remote = connected(&mut member);
        let map = member.map_group(remote, GROUP, part(0, BYTES)).unwrap();
        let start = map.start().1.unwrap();
        map.store_word(0, 7);
        assert_eq!((map.check(&start), map.holders()), (SequenceStatus::Ok, 1));
        is_stored.store(true, Relaxed);
        until(&mut member, |_| has_joined.load(Relaxed));
        // It comes to whoever holds the group, whether this member knows or not.
        map.store_word(64, 8);
        map.flush();
        until(&mut member, |member| member.holders_of(remote) == 2);
        let map = member.map_group(remote, GROUP, part(0, BYTES)).unwrap();
        assert_eq!(map.holders(), 2);
        meet(&mut member, &met, 4);
        (7, 8)
    };
    let programs: Vec<HostProgram<'_, (u64, u64)>> = vec![Box::new(first), Box::new(writer), Box::new(late)];
    let (results, _) = each(switched(3, 3), |_| {}, programs);
    assert_eq!(results, [(7, 8), (7, 8), (0, 8)]);
}

/// Who leaves a group receives nothing more of it, and the others go on.
#[test]
fn holder_that_has_left_receives_nothing_and_others_do() {
    let (met, has_left) = (AtomicU32::new(0), AtomicBool::new(false));
    let holder = |core: Core, wiring: Wiring| {
        let mut member = among(&core, &wiring, 3);
        let (held, region) = hold(&mut member, BYTES);
        meet(&mut member, &met, 3);
        let leaves = core.host() == HostId(2);
        if leaves {
            until(&mut member, |_| core.load(region, 0) == 7);
            assert_eq!(member.call(unmap_local(held.local)), Ok(Value::Nothing));
            assert_eq!(member.call(remove(held.local, false)), Err(Refusal::Busy), "it is connected to");
            assert_eq!(member.call(remove(held.local, true)), Ok(Value::Nothing));
            has_left.store(true, Relaxed);
        }
        meet(&mut member, &met, 6);
        (core.load(region, 0), core.load(region, 64))
    };
    let writer = |core: Core, wiring: Wiring| {
        let mut member = among(&core, &wiring, 3);
        meet(&mut member, &met, 3);
        let remote = connected(&mut member);
        until(&mut member, |member| member.holders_of(remote) == 2);
        let map = member.map_group(remote, GROUP, part(0, BYTES)).unwrap();
        map.store_word(0, 7);
        map.flush();
        until(&mut member, |_| has_left.load(Relaxed));
        until(&mut member, |_| map.holders() == 1);
        let start = map.start().1.unwrap();
        map.store_word(64, 8);
        assert_eq!(map.check(&start), SequenceStatus::Ok, "one holder is there");
        meet(&mut member, &met, 6);
        (7, 8)
    };
    let programs: Vec<HostProgram<'_, (u64, u64)>> =
        vec![Box::new(holder), Box::new(writer), Box::new(holder)];
    let (results, _) = each(switched(3, 3), |_| {}, programs);
    assert_eq!(results, [(7, 8), (7, 8), (7, 0)]);
}

/// Of two that join at the same time in different sizes at least one is refused, and can join in the size of the other.
#[test]
fn hosts_that_join_in_different_sizes_never_hold_a_group_together() {
    for apart_ns in [0, 400, 1_000, 1_500, 2_500, 5_000] {
        let (met, held) = (AtomicU32::new(0), AtomicU32::new(0));
        let sizes = [BYTES, BYTES / 2];
        let joiner = |core: Core, wiring: Wiring| {
            let mut member = among(&core, &wiring, 2);
            let own = usize::from(core.host().0);
            let at = Picoseconds::from_ns(6_000_000 + apart_ns * own as u64);
            member.serve(at, |_| false);
            core.sleep_until(at);
            let joined = member.join_group(GROUP, sizes[own]);
            held.fetch_add(joined.is_ok().into(), Relaxed);
            meet(&mut member, &met, 2);
            rest(&mut member, 100_000);
            if joined.is_err() {
                assert_eq!(joined, Err(Refusal::SegmentidUsed));
            }
            if joined.is_err() && held.load(Relaxed) == 1 {
                assert!(member.join_group(GROUP, sizes[1 - own]).is_ok(), "{apart_ns} ns apart");
            }
            rest(&mut member, 100_000);
            joined.is_ok()
        };
        let programs: Vec<HostProgram<'_, bool>> = vec![Box::new(joiner), Box::new(joiner)];
        let (results, _) = each(switched(2, 2), |_| {}, programs);
        assert_ne!(results, [true, true], "{apart_ns} ns apart");
    }
}
