//! Segments between processes that have the path of a file in common.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use rustix::process::Signal;
use support::{Memory, Process};

#[test]
fn role() {
    support::play();
}

/// A process of node 4 with an available segment `s` of number 7.
fn provider(memory: &Memory) -> Process {
    let mut provider = memory.member(4);
    provider.expect("create s 7 100000", "ok 7");
    provider.expect("prepare s", "ok");
    provider.expect("available s", "ok");
    provider
}

/// A process of a node that is connected to it.
fn consumer(memory: &Memory, node: u16) -> Process {
    let mut consumer = memory.member(node);
    consumer.expect("connect s 4 7 forever", "ok 100000");
    consumer
}

#[test]
fn what_one_process_stores_into_a_segment_the_other_one_loads() {
    let memory = Memory::new();
    let (mut owner, mut user) = (provider(&memory), consumer(&memory, 8));
    owner.expect("map-local s 0 100000", "ok 100000");
    user.expect("map-remote s 70000 30000", "ok 30000");
    user.expect("start s", "Ok");
    user.expect("store s 29995 hello", "ok");
    user.expect("check s", "Ok");
    owner.expect("load s 99994 6", ".hello");
    owner.expect("store s 70000 there", "ok");
    user.expect("load s 0 6", "there.");
    user.expect("map-remote s 70000 30001", "OutOfRange");
    user.expect("store s 29996 hello", "Outside { bytes: 5, offset_bytes: 29996, whole: 30000 }");

    owner.expect("remove s", "Busy");
    user.expect("disconnect s", "Busy");
    user.expect("unmap s", "ok");
    user.expect("disconnect s", "ok");
    owner.expect("remove s", "Busy");
    owner.expect("unmap s", "ok");
    owner.expect("remove s", "ok");
    user.expect("connect s 4 7 0", "NoSuchSegment");
    // Memory of the next segment of the number is that of the first, and zero.
    owner.expect("create s 7 100000", "ok 7");
    owner.expect("map-local s 0 100000", "ok 100000");
    owner.expect("load s 99994 6", "......");
    user.expect("connect s 4 7 0", "ConnectionRefused");
    owner.finish();
    user.finish();
}

#[test]
fn name_of_who_has_just_come_is_not_given_to_who_was_there_first() {
    let memory = Memory::new();
    let mut first = memory.member(4);
    for _ in 0..10 {
        let mut newcomer = memory.member(4);
        newcomer.expect("create s 7 4096", "ok 7");
        first.expect("create s 7 4096", "SegmentidUsed");
        newcomer.expect("remove s", "ok");
        newcomer.finish();
    }
    first.finish();
}

#[test]
fn three_members_use_each_others_segments() {
    let memory = Memory::new();
    let nodes = [4, 8, 12];
    let mut members = nodes.map(|node| memory.member(node));
    for (member, node) in members.iter_mut().zip(nodes) {
        member.expect(&format!("create s {node} 1000"), &format!("ok {node}"));
        member.expect("prepare s", "ok");
        member.expect("available s", "ok");
        member.expect("map-local s 0 1000", "ok 1000");
    }
    for (at, member) in members.iter_mut().enumerate() {
        for of in (0..3).filter(|of| *of != at) {
            let node = nodes[of];
            member.expect(&format!("connect to{node} {node} {node} forever"), "ok 1000");
            member.expect(&format!("map-remote to{node} 0 1000"), "ok 1000");
            member.expect(&format!("store to{node} {} {at}", at * 8), "ok");
        }
    }
    for (at, member) in members.iter_mut().enumerate() {
        let stored: String =
            (0..3).map(|by| if by == at { ".".to_owned() } else { by.to_string() }).collect();
        let loaded: String = (0..3).map(|by| member.call(&format!("load s {} 1", by * 8))).collect();
        assert_eq!(loaded, stored);
    }
    let [first, second, third] = members;
    [first, second, third].into_iter().for_each(Process::finish);
}

#[test]
fn number_is_one_members_of_a_node_and_free_when_it_is_removed() {
    let memory = Memory::new();
    let (mut owner, mut other) = (provider(&memory), memory.member(4));
    other.expect("create t 7 100", "SegmentidUsed");
    other.expect("create-auto t 7 100", "ok 8");
    owner.expect("remove s", "ok");
    other.expect("create u 7 100", "ok 7");
    // A member connects to one of its own node, and to itself.
    other.expect("prepare u", "ok");
    other.expect("available u", "ok");
    owner.expect("connect u 4 7 forever", "ok 100");
    other.expect("connect v 4 7 0", "ok 100");
    owner.finish();
    other.finish();
}

#[test]
fn private_segment_is_of_its_process_alone() {
    let memory = Memory::new();
    let (mut owner, mut user) = (memory.member(4), memory.member(8));
    owner.expect("create-private s 7 100000", "ok 7");
    owner.expect("map-local s 0 100000", "ok 100000");
    owner.expect("store s 99995 hello", "ok");
    owner.expect("unmap s", "ok");
    // Not where a page begins.
    owner.expect("map-local s 70001 29999", "ok 29999");
    owner.expect("load s 29993 6", ".hello");
    owner.expect("load s 29995 5", "Outside { bytes: 5, offset_bytes: 29995, whole: 29999 }");
    owner.expect("prepare s", "ok");
    owner.expect("available s", "IllegalOperation");
    user.expect("connect r 4 7 0", "NoSuchSegment");
    owner.expect("remove s", "Busy");
    owner.expect("unmap s", "ok");
    owner.expect("remove s", "ok");
    owner.expect("create-private s 7 0", "SizeAlignment");
    owner.finish();
    user.finish();
}

#[test]
fn events_are_told_to_who_waits() {
    let memory = Memory::new();
    let mut owner = provider(&memory);
    owner.begin("wait-local s forever");
    let mut user = consumer(&memory, 8);
    assert_eq!(owner.hear(), "Connect(NodeId(8))");
    user.begin("wait-remote s forever");
    owner.expect("link down", "ok");
    assert_eq!(user.hear(), "NotOperational");
    owner.expect("link up", "ok");
    user.expect("wait-remote s forever", "Operational");
    user.expect("start s", "Ok");
    owner.expect("remove-force s", "ok");
    user.expect("check s", "NotRetriable");
    user.expect("wait-remote s forever", "Lost");
    user.expect("wait-remote s 1", "Timeout");
    owner.finish();
    user.finish();
}

#[test]
fn connecting_waits_until_the_time_is_over() {
    let memory = Memory::new();
    let (mut owner, mut user) = (memory.member(4), memory.member(8));
    user.expect("connect s 4 7 20", "TimeoutNoSegment");
    user.expect("connect s 12 7 0", "NodeNotResponding");
    user.expect("connect s 99 7 0", "NoSuchNodeid");
    user.expect("probe 4", "ok");
    user.expect("probe 12", "NodeNotResponding");
    user.begin("connect s 4 7 forever");
    owner.expect("create s 7 64", "ok 7");
    owner.expect("prepare s", "ok");
    owner.expect("available s", "ok");
    assert_eq!(user.hear(), "ok 64");
    owner.finish();
    user.finish();
}

#[test]
fn number_that_somebody_took_while_this_member_stood_still_is_not_taken_again() {
    let memory = Memory::new();
    let mut stopped = memory.member(4);
    stopped.signal(Signal::STOP);
    let mut newcomer = memory.member(4);
    newcomer.expect("create s 7 64", "ok 7");
    stopped.signal(Signal::CONT);
    // Each has to hear of the other still.
    stopped.expect("create s 7 64", "SegmentidUsed");
    newcomer.expect("remove s", "ok");
    stopped.expect("create s 7 64", "ok 7");
    [stopped, newcomer].into_iter().for_each(Process::finish);
}
