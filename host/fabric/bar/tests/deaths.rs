//! Members that are killed, stopped or leave, whom no kernel shows to the others.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use rustix::process::Signal;
use support::{MEMBERS, Memory, Process};

#[test]
fn role() {
    support::play();
}

fn make(owner: &mut Process) {
    owner.expect("create s 7 1000", "ok 7");
    owner.expect("prepare s", "ok");
    owner.expect("available s", "ok");
}

/// A provider of node 4 and a consumer of node 8 that has its segment mapped.
fn joined(memory: &Memory) -> (Process, Process) {
    let (mut owner, mut user) = (memory.member(4), memory.member(8));
    make(&mut owner);
    user.expect("connect s 4 7 forever", "ok 1000");
    user.expect("map-remote s 0 1000", "ok 1000");
    (owner, user)
}

#[test]
fn killed_member_loses_its_segments_and_comes_again_in_another_slot() {
    let memory = Memory::new();
    let (owner, mut user) = joined(&memory);
    user.expect("start s", "Ok");
    user.begin("wait-remote s forever");
    owner.kill();
    assert_eq!(user.hear(), "Lost");
    user.expect("check s", "NotRetriable");
    user.expect("connect t 4 7 0", "NodeNotResponding");
    // What was mapped is nobody's memory: its slot is not taken while it is mapped.
    let (mut next, said) = memory.start(4, "");
    assert_eq!(said, "joined 2");
    make(&mut next);
    user.expect("connect t 4 7 forever", "ok 1000");
    user.expect("map-remote t 0 1000", "ok 1000");
    next.expect("map-local s 0 1000", "ok 1000");
    user.expect("store s 0 late", "ok");
    user.expect("store t 4 new", "ok");
    next.expect("load s 0 8", "....new.");
    next.finish();
    user.finish();
}

#[test]
fn slot_of_a_killed_member_is_taken_once_nobody_has_its_memory_mapped() {
    let memory = Memory::new();
    let (owner, mut user) = joined(&memory);
    user.begin("wait-remote s forever");
    owner.kill();
    assert_eq!(user.hear(), "Lost");
    let (refused, said) = memory.start(4, "0");
    assert_eq!(
        said,
        "not joined: slot 0 of the memory is another member's, or the memory has none of that number"
    );
    refused.finish();
    user.expect("unmap s", "ok");
    user.expect("disconnect s", "ok");
    let mut next = memory.member_in(4, 0);
    make(&mut next);
    user.expect("connect s 4 7 forever", "ok 1000");
    user.expect("map-remote s 0 1000", "ok 1000");
    user.expect("load s 0 4", "....");
    next.finish();
    user.finish();
}

#[test]
fn segment_in_the_slot_of_a_killed_member_shows_nothing_that_was_stored_there() {
    let memory = Memory::new();
    let mut owner = memory.member_in(4, 0);
    make(&mut owner);
    owner.expect("map-local s 0 1000", "ok 1000");
    owner.expect("store s 990 secret", "ok");
    owner.kill();
    let mut next = memory.member_in(8, 0);
    make(&mut next);
    next.expect("map-local s 0 1000", "ok 1000");
    next.expect("load s 990 6", "......");
    next.finish();
}

/// Its area has room for one segment of this size.
#[test]
fn memory_that_a_killed_user_had_connected_to_is_nobody_elses() {
    let memory = Memory::new();
    let (mut owner, mut user) = (memory.member(4), memory.member(8));
    for round in 0..2 {
        owner.expect("create s 7 1200000", "ok 7");
        owner.expect("prepare s", "ok");
        owner.expect("available s", "ok");
        user.expect("connect s 4 7 forever", "ok 1200000");
        owner.expect("create t 8 1200000", "Nospc");
        if round == 0 {
            user.expect("disconnect s", "ok");
            owner.expect("remove s", "ok");
        }
    }
    owner.expect("wait-local s forever", "Connect(NodeId(8))");
    user.kill();
    owner.expect("wait-local s forever", "Lost(NodeId(8))");
    owner.expect("remove s", "ok");
    owner.expect("create t 8 1200000", "Nospc");
    owner.finish();
}

/// A program whose segments stand late stores loses none of its memory, however often others are missed; what was stored late is not in the next
/// segment.
#[test]
fn memory_that_a_stopped_user_had_connected_to_is_used_again_and_zero_where_the_program_says_so() {
    let memory = Memory::new();
    let (mut owner, mut user) = (memory.member(4), memory.member(8));
    owner.expect("reuse-of-silent", "ok");
    for _ in 0..3 {
        owner.expect("create s 7 1200000", "ok 7");
        owner.expect("prepare s", "ok");
        owner.expect("available s", "ok");
        owner.expect("map-local s 0 1000", "ok 1000");
        owner.expect("load s 0 4", "....");
        owner.expect("unmap s", "ok");
        user.expect("connect s 4 7 forever", "ok 1200000");
        user.expect("map-remote s 0 1000", "ok 1000");
        owner.expect("wait-local s forever", "Connect(NodeId(8))");
        owner.expect("create t 8 1200000", "Nospc");
        user.signal(Signal::STOP);
        owner.expect("wait-local s forever", "Lost(NodeId(8))");
        owner.expect("remove s", "ok");
        user.signal(Signal::CONT);
        user.expect("store s 0 late", "ok");
        user.until("probe 4", "ok");
        user.expect("unmap s", "ok");
        user.expect("disconnect s", "ok");
    }
    owner.finish();
    user.finish();
}

/// All slots are those of members that were killed and had connected to each other.
fn full_of_dead() -> Memory {
    let memory = Memory::new();
    let mut members: Vec<_> = (0..MEMBERS).map(|_| memory.member(4)).collect();
    make(&mut members[0]);
    for user in &mut members[1..] {
        user.expect("connect s 4 7 forever", "ok 1000");
    }
    members.into_iter().for_each(Process::kill);
    memory
}

#[test]
fn as_many_as_there_are_slots_come_at_once_after_all_were_killed_and_each_has_one() {
    let memory = full_of_dead();
    let mut joined = memory.start_together(MEMBERS, 8);
    joined.sort_by(|one, other| one.1.cmp(&other.1));
    let said: Vec<_> = joined.iter().map(|(_, said)| said.as_str()).collect();
    assert_eq!(said, ["joined 0", "joined 1", "joined 2", "joined 3"]);
    joined.into_iter().for_each(|(process, _)| process.finish());
}

#[test]
fn of_one_more_than_there_are_slots_one_is_refused() {
    let memory = full_of_dead();
    let mut joined = memory.start_together(MEMBERS + 1, 8);
    joined.sort_by(|one, other| one.1.cmp(&other.1));
    let said: Vec<_> = joined.iter().map(|(_, said)| said.as_str()).collect();
    let full = "not joined: all 4 slots of the memory are taken";
    assert_eq!(said, ["joined 0", "joined 1", "joined 2", "joined 3", full]);
    joined.into_iter().for_each(|(process, _)| process.finish());
}

#[test]
fn member_that_leaves_is_gone_at_once_and_its_slot_is_free() {
    let memory = Memory::new();
    let (owner, mut user) = joined(&memory);
    user.begin("wait-remote s forever");
    owner.finish();
    assert_eq!(user.hear(), "Lost");
    user.expect("unmap s", "ok");
    user.expect("disconnect s", "ok");
    user.until("connect s 4 7 0", "NodeNotResponding");
    let (next, said) = memory.start(4, "");
    assert_eq!(said, "joined 0");
    next.finish();
    user.finish();
}

/// Whoever leaves with something mapped beats on, so that nobody gets the slot whose maps it is still to use.
#[test]
fn slot_of_who_leaves_is_free_when_its_last_map_is_gone() {
    let memory = Memory::new();
    let mut owner = memory.member(4);
    make(&mut owner);
    owner.expect("map-local s 0 1000", "ok 1000");
    owner.expect("leave", "ok");
    let (refused, said) = memory.start(4, "0");
    assert!(said.starts_with("not joined: slot 0"), "{said}");
    refused.finish();
    owner.expect("unmap s", "ok");
    memory.member_in(4, 0).finish();
    owner.finish();
}

#[test]
fn stopped_member_is_lost_and_when_it_goes_on_it_learns_of_that() {
    let memory = Memory::new();
    let (mut owner, mut user) = joined(&memory);
    owner.signal(Signal::STOP);
    user.expect("wait-remote s forever", "Lost");
    owner.signal(Signal::CONT);
    owner.until("probe 8", "ok");
    user.until("probe 4", "ok");
    // Another session: the segment is there, and the old connection is not.
    user.expect("unmap s", "ok");
    user.expect("disconnect s", "ok");
    user.expect("connect s 4 7 forever", "ok 1000");
    user.expect("map-remote s 0 1000", "ok 1000");
    owner.expect("map-local s 0 1000", "ok 1000");
    user.expect("store s 0 again", "ok");
    owner.expect("load s 0 5", "again");
    owner.finish();
    user.finish();
}

#[test]
fn claims_of_a_session_that_is_over_hold_no_segment() {
    let memory = Memory::new();
    let (mut owner, mut user) = joined(&memory);
    owner.expect("remove s", "Busy");
    user.signal(Signal::STOP);
    owner.until("probe 8", "NodeNotResponding");
    user.signal(Signal::CONT);
    user.expect("wait-remote s forever", "Lost");
    owner.until("probe 8", "ok");
    owner.expect("remove s", "ok");
    owner.finish();
    user.finish();
}

#[test]
fn stopped_member_whose_slot_was_taken_is_none_any_more_and_stores_nothing() {
    let memory = Memory::new();
    let mut stopped = memory.member_in(4, 0);
    make(&mut stopped);
    stopped.signal(Signal::STOP);
    let mut next = memory.member_in(8, 0);
    next.expect("create s 9 1000", "ok 9");
    next.expect("prepare s", "ok");
    next.expect("available s", "ok");
    stopped.signal(Signal::CONT);
    stopped.until("probe 8", "System");
    stopped.expect("create t 10 64", "System");
    stopped.finish();
    let mut user = memory.member(12);
    user.expect("connect s 8 9 forever", "ok 1000");
    next.finish();
    user.finish();
}

#[test]
fn file_that_is_cut_takes_the_link_down_and_no_process() {
    let memory = Memory::new();
    let (mut owner, mut user) = joined(&memory);
    user.expect("start s", "Ok");
    std::fs::File::options().write(true).open(memory.path()).unwrap().set_len(4096).unwrap();
    user.until("check s", "NotRetriable");
    user.until("connect t 4 7 0", "NoLinkAccess");
    owner.until("create t 8 64", "NoLinkAccess");
    user.expect("store s 0 lost", "Lost");
    owner.finish();
    user.finish();
}

#[test]
fn file_that_is_deleted_or_replaced_takes_the_link_down_and_who_joins_again_meets_the_others() {
    for is_replaced in [false, true] {
        let memory = Memory::new();
        let (mut owner, mut user) = joined(&memory);
        owner.expect("map-local s 0 1000", "ok 1000");
        owner.expect("wait-local s forever", "Connect(NodeId(8))");
        user.expect("start s", "Ok");
        user.begin("wait-remote s forever");
        memory.replace_file(is_replaced);
        assert_eq!(user.hear(), "Lost");
        user.until("connect t 4 7 0", "NoLinkAccess");
        owner.until("create t 8 64", "NoLinkAccess");
        user.expect("check s", "NotRetriable");
        // What both have mapped is the memory that it was.
        user.expect("store s 0 kept", "ok");
        owner.expect("load s 0 4", "kept");
        if is_replaced {
            let mut next = memory.member_in(4, 0);
            make(&mut next);
            let mut again = memory.member_in(8, 1);
            again.expect("connect s 4 7 forever", "ok 1000");
            [next, again].into_iter().for_each(Process::finish);
        }
        [owner, user].into_iter().for_each(Process::finish);
    }
}

/// What is left of the file: all of slots 0 to 2, and of slot 3 its own line, its names and the header of its board, and not what it stores
/// for others. Slots are 110 pages each.
const LEFT: u64 = (2 + 3 * 110 + 1 + 4 + 1) * 4096;

#[test]
fn trigger_that_meets_a_file_that_was_cut_says_so() {
    for kind in ["plain", "data"] {
        let memory = Memory::new();
        let (mut owner, mut user) = (memory.member_in(4, 0), memory.member_in(8, 3));
        owner.expect(&format!("interrupt i {kind} 7"), "ok");
        user.expect(&format!("hook t {kind} 4 7 forever"), "ok");
        std::fs::File::options().write(true).open(memory.path()).unwrap().set_len(LEFT).unwrap();
        user.expect(if kind == "data" { "send t message" } else { "trigger t" }, "NoLinkAccess");
        owner.finish();
        user.finish();
    }
}
