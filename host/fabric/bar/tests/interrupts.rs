//! Interrupts between processes that have the path of a file in common.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use beeline_fabric::InterruptNumber;
use beeline_fabric_bar::BarInterruptOptions;
use rustix::process::Signal;
use support::{Memory, Process};

#[test]
fn role() {
    support::play();
}

/// A process of node 4 with an interrupt `i` of number 7, and one of node 8 that triggers it by `t`.
fn hooked(memory: &Memory, kind: &str) -> (Process, Process) {
    let (mut owner, mut user) = (memory.member(4), memory.member(8));
    owner.expect(&format!("interrupt i {kind} 7"), "ok");
    user.expect(&format!("hook t {kind} 4 7 forever"), "ok");
    (owner, user)
}

#[test]
fn triggers_end_waits_and_are_one_unless_they_are_counted() {
    for (kind, second) in [("plain", "Timeout"), ("counting", "ok")] {
        let memory = Memory::new();
        let (mut owner, mut user) = hooked(&memory, kind);
        owner.expect("take i 0", "Timeout");
        owner.begin("take i forever");
        user.expect("trigger t", "ok");
        assert_eq!(owner.hear(), "ok");
        user.expect("trigger t", "ok");
        user.expect("trigger t", "ok");
        owner.expect("take i 0", "ok");
        owner.expect("take i 0", second);
        owner.expect("take i 0", "Timeout");
        owner.expect("end i", "ok");
        user.expect("trigger t", "NotConnected");
        owner.finish();
        user.finish();
    }
}

#[test]
fn number_of_an_interrupt_is_one_members_of_a_node() {
    let memory = Memory::new();
    let (mut owner, user) = hooked(&memory, "plain");
    let mut other = memory.member(4);
    other.expect("interrupt j plain 7", "IntnoUsed");
    other.expect("interrupt j data 7", "ok");
    owner.expect("hook own data 4 7 forever", "ok");
    owner.expect("send own message", "ok");
    other.expect("receive j 100 forever", "message");
    owner.finish();
    other.finish();
    user.finish();
}

#[test]
fn trigger_of_a_shared_number_reaches_each_interrupt_of_it_also_later_ones() {
    let memory = Memory::new();
    let (mut one, mut other, mut user) = (memory.member(4), memory.member(4), memory.member(8));
    one.expect("interrupt i shared 7", "ok");
    user.expect("hook t shared 4 7 forever", "ok");
    user.expect("trigger t", "ok");
    one.expect("take i forever", "ok");
    other.expect("interrupt i shared-counting 7", "ok");
    one.expect("interrupt j shared-counting 7", "ok");
    // Of another node.
    user.expect("interrupt i shared 7", "ok");
    user.expect("trigger t", "ok");
    user.expect("trigger t", "ok");
    for (name, second) in [("i", "Timeout"), ("j", "ok")] {
        one.expect(&format!("take {name} 0"), "ok");
        one.expect(&format!("take {name} 0"), second);
        one.expect(&format!("take {name} 0"), "Timeout");
    }
    for answer in ["ok", "ok", "Timeout"] {
        other.expect("take i 0", answer);
    }
    user.expect("take i 0", "Timeout");
    // One that ends, and one that is made after that.
    one.expect("end i", "ok");
    one.expect("interrupt i shared 7", "ok");
    user.expect("trigger t", "ok");
    one.expect("take i 0", "ok");
    one.kill();
    user.expect("trigger t", "ok");
    other.expect("take i 0", "ok");
    other.expect("end i", "ok");
    // Once its death is known.
    user.until("trigger t", "NotConnected");
    other.finish();
    user.finish();
}

#[test]
fn number_is_of_one_interrupt_alone_or_of_several_that_share_it() {
    let memory = Memory::new();
    let (mut one, mut other) = (memory.member(4), memory.member(4));
    one.expect("interrupt i plain 7", "ok");
    for process in [&mut one, &mut other] {
        process.expect("interrupt j shared 7", "IntnoUsed");
    }
    one.expect("end i", "ok");
    for process in [&mut one, &mut other] {
        process.expect("interrupt j shared 7", "ok");
        process.expect("interrupt k plain 7", "IntnoUsed");
    }
    other.expect("interrupt d data 7", "ok");
    one.finish();
    other.expect("interrupt k plain 7", "IntnoUsed");
    other.expect("end j", "ok");
    other.expect("interrupt k plain 7", "ok");
    other.finish();
}

#[test]
fn number_that_is_found_for_a_shared_interrupt_is_nobody_elses() {
    let memory = Memory::new();
    let (one, other) = (memory.member_here(4), memory.member_here(4));
    let shared = |number| BarInterruptOptions { number, is_shared: true, ..Default::default() };
    let first = one.create_interrupt(shared(None)).unwrap().number().0;
    let [second, third] = [1, 2].map(|above| InterruptNumber(first + above));
    let _shared = other.create_interrupt(shared(Some(second))).unwrap();
    let alone = BarInterruptOptions { number: Some(third), ..Default::default() };
    let _alone = other.create_interrupt(alone).unwrap();
    assert_eq!(one.create_interrupt(shared(None)).unwrap().number().0, first + 3);
}

#[test]
fn member_that_comes_later_triggers_what_is_there() {
    let memory = Memory::new();
    let mut owner = memory.member(4);
    owner.expect("interrupt i counting 7", "ok");
    owner.expect("interrupt d data 7", "ok");
    let mut user = memory.member(8);
    user.expect("hook t counting 4 7 forever", "ok");
    user.expect("hook t data 4 7 forever", "ok");
    user.expect("trigger t", "ok");
    user.expect("send t message", "ok");
    owner.expect("take i 5000", "ok");
    owner.expect("receive d 100 5000", "message");
    owner.finish();
    user.finish();
}

#[test]
fn messages_come_in_order_and_a_full_window_takes_no_more() {
    let memory = Memory::new();
    let (mut owner, mut user) = hooked(&memory, "data");
    owner.expect("receive i 100 0", "Timeout");
    owner.begin("receive i 100 forever");
    user.expect("send t first", "ok");
    assert_eq!(owner.hear(), "first");
    user.expect("send t second", "ok");
    user.expect("send-long t 2048", "ok");
    owner.expect("receive i 5 0", "Overflow { bytes: 6 }");
    owner.expect("receive i 100 0", "second");
    owner.expect("receive i 2048 0", "2048 bytes");
    for _ in 0..9 {
        user.expect("send-long t 2048", "ok");
        user.expect("send-long t 2048", "Nospc");
        owner.expect("receive i 2048 forever", "2048 bytes");
    }
    user.expect("send-long t 2049", "IllegalParameter");
    owner.finish();
    user.finish();
}

/// A pair has four windows in a memory of this size.
#[test]
fn window_is_another_interrupts_when_nobody_uses_it_and_all_was_taken() {
    let memory = Memory::new();
    let (mut owner, mut user) = hooked(&memory, "data");
    for id in 8..12 {
        owner.expect(&format!("interrupt i{id} data {id}"), "ok");
    }
    for id in 8..11 {
        user.expect(&format!("hook t{id} data 4 {id} forever"), "ok");
    }
    user.expect("hook t11 data 4 11 0", "Nospc");
    user.expect("send t late", "ok");
    user.expect("unhook t", "ok");
    user.expect("hook t11 data 4 11 0", "Nospc");
    owner.expect("receive i 100 forever", "late");
    user.expect("hook t11 data 4 11 0", "ok");
    user.expect("send t11 next", "ok");
    owner.expect("receive i11 100 forever", "next");
    // And back again.
    user.expect("unhook t11", "ok");
    user.expect("hook t data 4 7 0", "ok");
    user.expect("send t again", "ok");
    owner.expect("receive i 100 forever", "again");
    owner.finish();
    user.finish();
}

#[test]
fn window_is_free_when_its_interrupt_is_removed_with_messages_that_nobody_took() {
    let memory = Memory::new();
    let (mut owner, mut user) = (memory.member(4), memory.member(8));
    // More often than a pair has windows.
    for id in 10..16 {
        owner.expect(&format!("interrupt i data {id}"), "ok");
        user.expect(&format!("hook t data 4 {id} forever"), "ok");
        user.expect("send t lost", "ok");
        user.expect("unhook t", "ok");
        owner.expect("end i", "ok");
    }
    owner.expect("interrupt i data 7", "ok");
    user.expect("hook t data 4 7 forever", "ok");
    user.expect("send t message", "ok");
    owner.expect("receive i 100 forever", "message");
    owner.finish();
    user.finish();
}

#[test]
fn what_a_killed_member_has_triggered_is_taken() {
    let memory = Memory::new();
    let (mut owner, mut user) = hooked(&memory, "counting");
    owner.expect("interrupt d data 7", "ok");
    user.expect("hook d data 4 7 forever", "ok");
    user.expect("trigger t", "ok");
    user.expect("trigger t", "ok");
    user.expect("send d last", "ok");
    user.kill();
    owner.until("probe 8", "NodeNotResponding");
    owner.expect("take i 0", "ok");
    owner.expect("take i 0", "ok");
    owner.expect("take i 0", "Timeout");
    owner.expect("receive d 100 0", "last");
    owner.expect("receive d 100 0", "Timeout");
    owner.finish();
}

#[test]
fn trigger_of_a_killed_member_is_refused_within_the_bound() {
    let memory = Memory::new();
    let (owner, mut user) = hooked(&memory, "data");
    owner.kill();
    user.until("send t message", "NotConnected");
    user.expect("hook t data 4 7 0", "NodeNotResponding");
    user.finish();
}

#[test]
fn member_that_was_stopped_hooks_anew_and_its_messages_come() {
    let memory = Memory::new();
    let (mut owner, mut user) = hooked(&memory, "data");
    user.expect("send t first", "ok");
    owner.expect("receive i 100 forever", "first");
    user.signal(Signal::STOP);
    owner.until("probe 8", "NodeNotResponding");
    user.signal(Signal::CONT);
    user.until("send t second", "NotConnected");
    owner.until("probe 8", "ok");
    user.expect("unhook t", "ok");
    user.expect("hook t data 4 7 forever", "ok");
    user.expect("send t third", "ok");
    owner.expect("receive i 100 forever", "third");
    owner.finish();
    user.finish();
}
