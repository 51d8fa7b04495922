//! Two members of one fabric, of which one is another program: `cargo xtask big-endian` builds this very program for a CPU with the other
//! byte order, and names it in `BEELINE_TEST_PEER` with what runs it. Elsewhere both are this one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use support::{Fabric, Process};

#[test]
fn role() {
    support::play();
}

/// The member of node 4 and that of node 8, first of this program and the peer, then the other way round.
fn both_ways(meet: fn(&mut Process, &mut Process)) {
    for is_owner_here in [true, false] {
        let fabric = Fabric::new();
        let (mut owner, mut user) = match is_owner_here {
            true => (fabric.member(4), fabric.peer(8)),
            false => (fabric.peer(4), fabric.member(8)),
        };
        meet(&mut owner, &mut user);
        user.finish();
        owner.finish();
    }
}

#[test]
fn segments_and_sequences_are_the_same_in_both_byte_orders() {
    both_ways(|owner, user| {
        for (line, outcome) in [("create s 7 100000", "ok 7"), ("prepare s", "ok"), ("available s", "ok")] {
            owner.expect(line, outcome);
        }
        owner.expect("map-local s 0 100000", "ok 100000");
        user.expect("connect s 4 7 forever", "ok 100000");
        user.expect("map-remote s 70000 30000", "ok 30000");
        user.expect("start s", "Ok");
        user.expect("store s 29995 hello", "ok");
        user.expect("check s", "Ok");
        owner.expect("load s 99994 6", ".hello");
        owner.expect("store s 70000 there", "ok");
        user.expect("load s 0 6", "there.");
        owner.expect("wait-local s forever", "Connect(NodeId(8))");
        owner.expect("link down", "ok");
        user.expect("check s", "Pending");
        owner.expect("link up", "ok");
        user.expect("check s", "Retriable");
        owner.expect("unmap s", "ok");
        owner.expect("remove s", "Busy");
        user.expect("unmap s", "ok");
        user.expect("disconnect s", "ok");
        owner.expect("remove s", "ok");
        user.expect("connect s 4 7 0", "NoSuchSegment");
    });
}

#[test]
fn segment_is_taken_by_force_and_waits_end_in_both_byte_orders() {
    both_ways(|owner, user| {
        owner.expect("create s 7 64", "ok 7");
        owner.expect("prepare s", "ok");
        user.begin("connect s 4 7 forever");
        owner.expect("available s", "ok");
        assert_eq!(user.hear(), "ok 64");
        user.begin("wait-remote s forever");
        owner.expect("remove-force s", "ok");
        assert_eq!(user.hear(), "Lost");
        user.expect("disconnect s", "ok");
    });
}

#[test]
fn interrupts_are_counted_and_wake_sleepers_in_both_byte_orders() {
    both_ways(|owner, user| {
        owner.expect("interrupt plain 5", "ok 5");
        owner.expect("interrupt counting 6 counting", "ok 6");
        user.expect("trigger-of plain 4 5 forever", "ok");
        user.expect("trigger-of counting 4 6 forever", "ok");
        user.expect("trigger counting 300", "ok");
        owner.expect("wait-all counting", "300");
        owner.begin("wait plain forever");
        user.expect("trigger plain", "ok");
        assert_eq!(owner.hear(), "ok");
        user.expect("interrupt own 9", "ok 9");
        owner.expect("trigger-of back 8 9 forever", "ok");
        owner.begin("pong back plain 50");
        user.expect("ping plain own 50", "ok");
        assert_eq!(owner.hear(), "ok");
    });
}

#[test]
fn messages_of_data_interrupts_arrive_in_both_byte_orders() {
    both_ways(|owner, user| {
        owner.expect("data-interrupt d 5", "ok 5");
        user.expect("data-trigger-of d 4 5 forever", "ok");
        // The process says how many bytes came, and the first eight.
        for (text, bytes, said) in [("a", 1, "1 a"), ("hello", 5, "5 hello"), ("four", 301, "301 fourfour")] {
            user.expect(&format!("trigger-data d {text} {bytes}"), "ok");
            owner.expect("wait-data d 8192 forever", said);
        }
        user.expect("data-interrupt own 9", "ok 9");
        owner.expect("data-trigger-of back 8 9 forever", "ok");
        owner.begin("pong-data back d 50");
        user.expect("ping-data d own 50", "ok");
        assert_eq!(owner.hear(), "ok");
    });
}
