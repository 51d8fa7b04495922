//! Members that are killed at any moment of a join, to a node, a group, a shared segment, one of several interrupts or a message queue, leave
//! nothing. That they hinder nobody who joins with them is in `killed.rs`: this counts what its process holds.
//!
//! `BEELINE_KILLS` asks for another number of kills.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline_fabric::{Call, NodeId, Part, Value};
use beeline_fabric_process::FabricMember;
use support::Fabric;
use support::held::{files, held, held_at_rest};
use support::joining::{ENDS, GROUP, GROUP_BYTES, SHARED, kill_in_a_join, queue, shared_interrupt};
use support::random::number;
use support::segments::{available, connect, remove};

#[test]
fn role() {
    support::play();
}

/// Joins the group, which nobody may hold, and lets go of it.
fn find_group_free(heir: &FabricMember) {
    let held = heir.join_group(GROUP, GROUP_BYTES).unwrap();
    assert!(held.is_first, "somebody who is dead holds the group");
    let map = heir.map_local(held.local, Part { offset: 0, bytes: 8 }).unwrap();
    let mut bytes = [0; 8];
    map.copy_out(0, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 8]);
    map.copy_in(0, b"somebody").unwrap();
    drop(map);
    remove(heir, held.local);
}

#[test]
fn what_is_joined_is_free_when_who_joined_was_killed_in_whatever_part_of_it() {
    let kills = number("BEELINE_KILLS").unwrap_or(120) as u32;
    let fabric = Fabric::lasting(Duration::from_secs(120) + Duration::from_millis(200) * kills);
    let [owner, heir] = [4, 8].map(|node| FabricMember::open(fabric.config(node)).unwrap());
    let shared = available(&owner, SHARED.0, 4096);
    owner.share(shared).unwrap();
    let interrupt = owner.create_interrupt(shared_interrupt()).unwrap();
    find_group_free(&heir);
    // What both have of each other, which they keep.
    for (member, other) in [(&owner, &heir), (&heir, &owner)] {
        let local = available(member, 1, 64);
        let remote = connect(other, member.node().0, 1).unwrap();
        other.call(Call::Disconnect(remote)).unwrap();
        remove(member, local);
    }
    let before = (held_at_rest(), files(&fabric));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other_end = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _whose = owner.message_queue(queue(NodeId(4))).unwrap().open(Duration::from_millis(3));
            }
        });
        for kill in 0..kills {
            let node = if kill.is_multiple_of(2) { 8 } else { 4 };
            kill_in_a_join(&fabric, node, kill, kills);
            find_group_free(&heir);
            // The number of the queue's end, which a member of its node had.
            let end = available(&heir, ENDS[1].0, 64);
            heir.call(Call::RemoveSegment { local: end, is_forced: true }).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        other_end.join().unwrap();
    });
    let end = available(&owner, ENDS[0].0, 64);
    remove(&owner, end);
    support::wait_until(|| {
        let _looks = (connect(&owner, 8, 1), connect(&heir, 4, 1));
        held() == before.0
    });
    assert_eq!(files(&fabric), before.1);
    drop(interrupt);
    // Nobody else holds it.
    assert_eq!(owner.call(Call::RemoveSegment { local: shared, is_forced: false }), Ok(Value::Nothing));
    for node in [4, 8, 252] {
        let registry = fabric.domain().registry(&format!("fabric.{node}")).unwrap();
        let entries = registry.entries().unwrap();
        assert_eq!(entries, [], "names of node {node}");
    }
}
