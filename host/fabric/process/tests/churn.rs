//! Many segments, many members, and calls that are made over and over while others do the opposite.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use beeline_fabric::{Call, LocalEvent, LocalSegment, NodeId, Part, Refusal, SequenceStatus, Told, Value};
use beeline_fabric_process::FabricMember;
use support::Fabric;
use support::segments::{available, available_telling, connect, remove};

/// Lets the others run for another time in each round: removals meet every step of who connects.
fn linger(round: u32) {
    let (started, micros) = (Instant::now(), round * 37 % 400);
    while started.elapsed() < Duration::from_micros(u64::from(micros)) {
        std::hint::spin_loop();
    }
}

/// Whether it was connected to a segment: then nobody takes the segment away before it disconnects.
fn use_once(member: &FabricMember, id: u32) -> bool {
    let remote = match connect(member, 4, id) {
        Ok(remote) => remote,
        Err(Refusal::NoSuchSegment | Refusal::ConnectionRefused) => return false,
        Err(other) => panic!("{other}"),
    };
    let sequence = member.sequence(remote).unwrap();
    let (status, start) = sequence.start();
    assert_eq!(status, SequenceStatus::Ok, "it was taken away at once");
    let map = member.map_remote(remote, Part { offset: 0, bytes: 8 }).unwrap();
    map.copy_in(0, b"12345678").unwrap();
    std::thread::yield_now();
    let mut bytes = [0; 8];
    map.copy_out(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"12345678");
    assert_eq!(sequence.check(start.unwrap()), SequenceStatus::Ok, "it was taken away");
    drop(map);
    member.call(Call::Disconnect(remote)).unwrap();
    true
}

/// The next event of a segment, for which its program waits.
fn event(owner: &FabricMember, local: LocalSegment) -> Option<LocalEvent> {
    let waited = owner.call(Call::WaitLocal { local, timeout_nanos: Some(0) });
    match waited {
        Ok(Value::LocalEvent(event)) => Some(event),
        Err(Refusal::Timeout) => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn members_that_come_and_go_between_two_looks_are_each_told_of_and_none_as_lost() {
    const CONNECTIONS: usize = 200;
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let local = available(&owner, 7, 64);
    let stays = FabricMember::open(fabric.config(8)).unwrap();
    for _ in 0..CONNECTIONS {
        let remote = connect(&stays, 4, 7).unwrap();
        stays.call(Call::Disconnect(remote)).unwrap();
    }
    let goes = FabricMember::open(fabric.config(12)).unwrap();
    let remote = connect(&goes, 4, 7).unwrap();
    assert_eq!(event(&owner, local), Some(LocalEvent::Connect(NodeId(8))));
    goes.call(Call::Disconnect(remote)).unwrap();
    drop(goes);
    let end = Instant::now() + Duration::from_secs(10);
    let mut told = vec![LocalEvent::Connect(NodeId(8))];
    while told.len() < 2 * CONNECTIONS + 2 && Instant::now() < end {
        told.extend(event(&owner, local));
    }
    let pair = |node| [LocalEvent::Connect(NodeId(node)), LocalEvent::Disconnect(NodeId(node))];
    let (of_goes, of_stays): (Vec<_>, Vec<_>) = told.into_iter().partition(|event| pair(12).contains(event));
    assert_eq!((of_stays, of_goes), (pair(8).repeat(CONNECTIONS), pair(12).to_vec()));
    assert_eq!(event(&owner, local), None);
}

#[test]
fn segment_is_never_taken_from_who_has_connected_however_often_it_is_made_and_removed() {
    const ROUNDS: u32 = 300;
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let (is_over, uses) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for node in [8, 8, 12] {
            let member = FabricMember::open(fabric.config(node)).unwrap();
            scope.spawn({
                let (is_over, uses) = (&is_over, &uses);
                move || {
                    while !is_over.load(Ordering::Relaxed) {
                        uses.fetch_add(u32::from(use_once(&member, 7)), Ordering::Relaxed);
                    }
                }
            });
        }
        let mut round = 0;
        while round < ROUNDS || uses.load(Ordering::Relaxed) < ROUNDS {
            let local = available(&owner, 7, 4096);
            linger(round);
            remove(&owner, local);
            round += 1;
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn removal_sees_the_connection_of_a_member_that_has_just_come() {
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let local = available(&owner, 7, 4096);
    for _ in 0..50 {
        let newcomer = FabricMember::open(fabric.config(8)).unwrap();
        let remote = connect(&newcomer, 4, 7).unwrap();
        let remove = || owner.call(Call::RemoveSegment { local, is_forced: false });
        assert_eq!(remove(), Err(Refusal::Busy));
        newcomer.call(Call::Disconnect(remote)).unwrap();
    }
    assert_eq!(owner.call(Call::RemoveSegment { local, is_forced: false }), Ok(Value::Nothing));
}

#[test]
fn thousand_segments_are_used_and_removed() {
    const SEGMENTS: u32 = 1000;
    let fabric = Fabric::new();
    let [owner, user] = [4, 8].map(|node| FabricMember::open(fabric.config(node)).unwrap());
    let bytes = |id: u32| u64::from(id) * 100 + 8;
    let locals: Vec<_> = (0..SEGMENTS).map(|id| available(&owner, id, bytes(id))).collect();
    let remotes: Vec<_> = (0..SEGMENTS).map(|id| connect(&user, 4, id).unwrap()).collect();
    let last = |id| Part { offset: bytes(id) - 8, bytes: 8 };
    for (id, remote) in (0..).zip(&remotes) {
        let map = user.map_remote(*remote, last(id)).unwrap();
        map.copy_in(0, &u64::from(id).to_le_bytes()).unwrap();
    }
    for (id, local) in (0..).zip(&locals) {
        let map = owner.map_local(*local, Part { offset: 0, bytes: bytes(id) }).unwrap();
        let mut value = [0; 8];
        map.copy_out(map.bytes() - 8, &mut value).unwrap();
        assert_eq!(u64::from_le_bytes(value), u64::from(id));
    }
    for (id, (local, remote)) in (0u32..).zip(locals.into_iter().zip(remotes)) {
        let removed = owner.call(Call::RemoveSegment { local, is_forced: id % 2 == 0 });
        if id % 2 == 0 {
            assert_eq!(removed, Ok(Value::Nothing));
            user.call(Call::Disconnect(remote)).unwrap();
        } else {
            assert_eq!(removed, Err(Refusal::Busy));
            user.call(Call::Disconnect(remote)).unwrap();
            assert_eq!(owner.call(Call::RemoveSegment { local, is_forced: false }), Ok(Value::Nothing));
        }
        assert_eq!(connect(&user, 4, id), Err(Refusal::NoSuchSegment));
    }
}

#[test]
fn events_that_nobody_asks_for_do_not_pile_up() {
    let fabric = Fabric::new();
    let [owner, user] = [4, 8].map(|node| FabricMember::open(fabric.config(node)).unwrap());
    available_telling(&owner, 7, 64, true);
    let waited_for = available(&owner, 8, 64);
    let events = || std::iter::from_fn(|| owner.next_event()).count();
    for connections in [20, 1500] {
        for number in 0..connections {
            let remote = connect(&user, 4, 7).unwrap();
            // It looks, and is asked for no event of the other segment.
            let wait = Call::WaitLocal { local: waited_for, timeout_nanos: Some(number % 20 * 10_000) };
            assert_eq!(owner.call(wait), Err(Refusal::Timeout));
            user.call(Call::Disconnect(remote)).unwrap();
        }
        // Each comes and goes; the last 1,024 of one member are kept.
        assert_eq!(events() as u64, 2 * connections.min(1024));
    }
    let _remote = connect(&user, 4, 7).unwrap();
    assert!(matches!(owner.next_event(), Some(Told::OfLocal(_, LocalEvent::Connect(NodeId(8))))));
    assert_eq!(owner.next_event(), None);
}

#[test]
fn members_connect_to_each_other_at_the_same_moment() {
    let nodes = [4, 8, 12];
    for _ in 0..10 {
        let fabric = Fabric::new();
        let all_have_segments = Barrier::new(nodes.len());
        std::thread::scope(|scope| {
            for node in nodes {
                let (fabric, all_have_segments) = (&fabric, &all_have_segments);
                scope.spawn(move || {
                    let member = FabricMember::open(fabric.config(node)).unwrap();
                    let local = available(&member, 7, 64);
                    all_have_segments.wait();
                    let remotes = nodes.map(|other| connect(&member, other, 7).unwrap());
                    all_have_segments.wait();
                    let removal = Call::RemoveSegment { local, is_forced: false };
                    assert_eq!(member.call(removal), Err(Refusal::Busy));
                    all_have_segments.wait();
                    for remote in remotes {
                        member.call(Call::Disconnect(remote)).unwrap();
                    }
                    all_have_segments.wait();
                    assert_eq!(member.call(removal), Ok(Value::Nothing));
                });
            }
        });
    }
}

#[test]
fn threads_of_one_member_wait_for_different_things() {
    const THREADS: u32 = 8;
    let fabric = Fabric::new();
    let [owner, user] = [4, 8].map(|node| FabricMember::open(fabric.config(node)).unwrap());
    let wait = &|local| owner.call(Call::WaitLocal { local, timeout_nanos: None });
    let connected = Ok(Value::LocalEvent(LocalEvent::Connect(NodeId(8))));
    std::thread::scope(|scope| {
        for id in 0..THREADS {
            let local = available(&owner, id, 64);
            scope.spawn(move || assert_eq!(wait(local), connected, "{id}"));
        }
        // One of another member, which is woken by none of these.
        let waiting = scope.spawn(|| {
            let remote = connect(&user, 4, 0).unwrap();
            user.call(Call::WaitRemote { remote, timeout_nanos: Some(20_000_000) })
        });
        for id in 1..THREADS {
            connect(&user, 4, id).unwrap();
        }
        assert_eq!(waiting.join().unwrap(), Err(Refusal::Timeout));
    });
}
