//! Message queues between processes, and what is left of one when the other end is killed.
//!
//! Run over each kind of member (`host/fabric/process/tests/queues.rs`, `host/fabric/bar/tests/queues.rs`), whose `support` says what members are.

use super::support::random::Random;
use super::support::{Fabric, Process};

/// Two members with a queue `q` between them, open at both ends.
pub fn open_queue(fabric: &Fabric, messages: u32, bytes: u32) -> (Process, Process) {
    let (mut one, mut other) = (fabric.member(4), fabric.member(8));
    one.expect(&format!("queue q 8 1 2 {messages} {bytes}"), "ok");
    other.expect(&format!("queue q 4 2 1 {messages} {bytes}"), "ok");
    one.begin("queue-open q 30000000");
    other.expect("queue-open q 30000000", "ok");
    assert_eq!(one.hear(), "ok");
    (one, other)
}

#[test]
fn bytes_come_in_order_either_way_whatever_the_messages_were() {
    let fabric = Fabric::new();
    let (mut one, mut other) = open_queue(&fabric, 8, 100);
    one.expect("queue-receive q 1", "TooFew");
    other.expect("queue-send q hello", "Sent");
    one.expect("queue-receive q 5", "hello");
    for text in ["abc", "d", "efgh"] {
        one.expect(&format!("queue-send q {text}"), "Sent");
    }
    other.expect("queue-receive q 9", "TooFew");
    other.expect("queue-receive q 2", "ab");
    other.expect("queue-kept q", "6");
    other.expect("queue-receive q 4", "cdef");
    other.expect("queue-receive q 3", "TooFew");
    one.expect("queue-send-checked q ij", "Sent");
    other.expect("queue-receive q 4", "ghij");
    other.expect("queue-receive q 0", "");
}

#[test]
fn full_queue_takes_no_more_and_the_longest_message_is_what_both_ends_say() {
    let fabric = Fabric::new();
    let (mut one, mut other) = open_queue(&fabric, 4, 100);
    one.expect("queue-send-bytes q 101", "IllegalParameter");
    for _ in 0..4 {
        one.expect("queue-send-bytes q 100", "Sent");
    }
    let mut sent = 4;
    while one.call("queue-send-bytes q 100") == "Sent" {
        sent += 1;
        assert!(sent < 9, "a queue without an end");
    }
    other.expect("queue-receive q 513", "IllegalParameter");
    let all = String::from_utf8(vec![7; 100]).unwrap();
    for _ in 0..sent {
        other.expect("queue-receive q 100", &all);
    }
    other.expect("queue-receive q 1", "TooFew");
    one.until("queue-send-bytes q 100", "Sent");

    let (mut small, mut large) = (fabric.member(4), fabric.member(8));
    small.expect("queue r 8 11 12 4 10", "ok");
    large.expect("queue r 4 12 11 4 20", "ok");
    large.begin("queue-open r 30000000");
    small.expect("queue-open r 30000000", "ok");
    assert_eq!(large.hear(), "ok");
    large.expect("queue-send-bytes r 11", "IllegalParameter");
    small.expect("queue-send-bytes r 11", "IllegalParameter");
    large.expect("queue-send-bytes r 10", "Sent");
}

#[test]
fn opening_waits_for_the_other_end_and_goes_on_where_it_was() {
    let fabric = Fabric::new();
    let (mut one, mut other) = (fabric.member(4), fabric.member(8));
    one.expect("queue q 8 1 2 8 100", "ok");
    one.expect("queue-send q early", "NotConnected");
    one.expect("queue-receive q 1", "NotConnected");
    assert!(["Timeout", "NoSuchSegment"].contains(&&*one.call("queue-open q 0")));
    one.expect("queue-open q 3000", "Timeout");
    other.expect("queue q 4 2 1 8 100", "ok");
    // Its segment is there, and waits.
    other.expect("queue-open q 3000", "Timeout");
    other.begin("queue-open q forever");
    one.expect("queue-open q 30000000", "ok");
    assert_eq!(other.hear(), "ok");
    one.expect("queue-open q 0", "ok");
    one.expect("create s 1 64", "SegmentidUsed");
    one.expect("queue w 252 1 2 8 100", "NoSuchNodeid");
    for wrong in ["queue w 8 1 2 0 100", "queue w 8 1 2 8 0"] {
        one.expect(wrong, "IllegalParameter");
    }
    one.expect("queue w 8 1 2 4294967295 4294967295", "Nospc");
    one.expect("queue w 8 1 3 8 100", "ok");
    one.expect("queue-open w 0", "SegmentidUsed");
}

#[test]
fn end_whose_peer_dies_before_it_has_looked_takes_another_one() {
    let fabric = Fabric::new();
    let (mut one, mut other) = (fabric.member(4), fabric.member(8));
    one.expect("queue q 8 1 2 8 100", "ok");
    other.expect("queue q 4 2 1 8 100", "ok");
    // Its segment is there then, and it has no peer.
    assert!(other.call("queue-open q 0") != "ok");
    // Long enough to connect, and to take that one for the peer.
    one.expect("queue-open q 300000", "Timeout");
    other.kill();
    let mut next = fabric.member(8);
    next.expect("queue q 4 2 1 8 100", "ok");
    next.begin("queue-open q 20000000");
    one.expect("queue-open q 20000000", "ok");
    assert_eq!(next.hear(), "ok");
}

#[test]
fn segment_that_is_no_queue_is_refused() {
    let fabric = Fabric::new();
    let (mut one, mut other) = (fabric.member(4), fabric.member(8));
    other.expect("create s 2 4096", "ok 2");
    other.expect("prepare s", "ok");
    other.expect("available s", "ok");
    one.expect("queue q 8 1 2 8 100", "ok");
    one.until("queue-open q 3000", "ConnectionRefused");
    other.expect("remove s", "ok");
}

#[test]
fn third_end_is_refused_until_the_peer_of_the_second_has_gone() {
    let fabric = Fabric::new();
    let (mut one, mut other) = open_queue(&fabric, 8, 100);
    let mut third = fabric.member(12);
    third.expect("queue q 4 3 1 8 100", "ok");
    third.until("queue-open q 3000", "ConnectionRefused");
    one.expect("queue-send q still", "Sent");
    other.expect("queue-receive q 5", "still");
    one.expect("queue-remove q", "ok");
    other.until("queue-send q gone", "NotConnected");
    one.expect("queue q 12 1 3 8 100", "ok");
    one.begin("queue-open q 30000000");
    third.expect("queue-open q 30000000", "ok");
    assert_eq!(one.hear(), "ok");
    one.expect("queue-send q new", "Sent");
    third.expect("queue-receive q 3", "new");
}

#[test]
fn what_was_sent_before_a_death_is_received_and_then_the_end_is_gone() {
    let fabric = Fabric::new();
    let (mut one, mut other) = open_queue(&fabric, 8, 100);
    one.expect("queue-send q last", "Sent");
    one.expect("queue-send q words", "Sent");
    one.kill();
    other.until("queue-send q more", "NotConnected");
    other.expect("queue-receive q 5", "lastw");
    other.expect("queue-receive q 5", "NotConnected");
    other.expect("queue-receive q 4", "ords");
    other.expect("queue-receive q 1", "NotConnected");
    // A new one at the other side waits until this end is made anew.
    let mut next = fabric.member(4);
    next.expect("queue q 8 1 2 8 100", "ok");
    next.until("queue-open q 3000", "ConnectionRefused");
    other.expect("queue-remove q", "ok");
    other.expect("queue q 4 2 1 8 100", "ok");
    next.begin("queue-open q 30000000");
    other.expect("queue-open q 30000000", "ok");
    assert_eq!(next.hear(), "ok");
    next.expect("queue-send q hello", "Sent");
    other.expect("queue-receive q 5", "hello");
}

#[test]
fn link_that_is_down_lets_nothing_through_and_loses_nothing() {
    let fabric = Fabric::new();
    let (mut one, mut other) = open_queue(&fabric, 8, 100);
    one.expect("queue-send q one", "Sent");
    other.expect("link down", "ok");
    one.until("queue-send q no", "Full");
    one.expect("queue-send-checked q no", "Full");
    other.expect("link up", "ok");
    one.until("queue-send q two", "Sent");
    other.expect("queue-receive q 6", "onetwo");
    other.expect("queue-receive q 1", "TooFew");
}

#[test]
fn streams_both_ways_are_exact_while_ends_are_killed_and_come_again() {
    let fabric = Fabric::new();
    let mut random = Random::new();
    let (mut one, mut other) = open_queue(&fabric, 16, 300);
    for round in 0..6 {
        let line = |seed| format!("queue-stream q {seed} 200000");
        one.begin(&line(random.below(1 << 32)));
        other.begin(&line(random.below(1 << 32)));
        if round % 2 == 0 {
            assert_eq!([one.hear(), other.hear()], ["all", "all"]);
            continue;
        }
        std::thread::sleep(std::time::Duration::from_micros(random.below(3000)));
        one.kill();
        // It may have had all before.
        assert!(["all", "NotConnected"].contains(&&*other.hear()));
        other.expect("queue-remove q", "ok");
        one = fabric.member(4);
        one.expect("queue q 8 1 2 16 300", "ok");
        other.expect("queue q 4 2 1 16 300", "ok");
        one.begin("queue-open q 30000000");
        other.expect("queue-open q 30000000", "ok");
        assert_eq!(one.hear(), "ok");
    }
}
