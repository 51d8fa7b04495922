//! Groups of data interrupts between processes that have the path of a file in common.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

#[path = "../../transfer/tests/cases/group_interrupts.rs"]
mod cases;
mod support;

use rustix::process::Signal;
use support::Memory;

#[test]
fn role() {
    support::play();
}

#[test]
fn interrupt_without_messages_is_none_of_a_group() {
    let memory = Memory::new();
    let (mut owner, mut user) = (memory.member(4), memory.member(8));
    owner.expect("data-interrupt d 5 group", "ok 5");
    user.expect("hook t plain 252 5 0", "NoSuchNodeid");
}

/// A pair has four windows in a memory of this size.
#[test]
fn message_goes_to_nobody_of_a_group_where_no_window_is_left_for_one() {
    let memory = Memory::new();
    let (mut one, mut other, mut user) = (memory.member(4), memory.member(12), memory.member(8));
    for id in 6..10 {
        one.expect(&format!("data-interrupt i{id} {id}"), &format!("ok {id}"));
        user.expect(&format!("data-trigger-of t{id} 4 {id} forever"), "ok");
    }
    other.expect("data-interrupt d 5 group", "ok 5");
    user.expect("data-trigger-of d 252 5 forever", "ok");
    user.expect("trigger-data d first 5", "ok");
    one.expect("data-interrupt d 5 group", "ok 5");
    user.expect("trigger-data d second 6", "Nospc");
    user.expect("data-trigger-of e 252 5 0", "Nospc");
    other.expect("wait-data d 8 0", "5 first");
    other.expect("wait-data d 8 0", "Timeout");
    user.expect("untrigger t7", "ok");
    user.expect("trigger-data d third 5", "ok");
    for process in [&mut one, &mut other] {
        process.expect("wait-data d 8 forever", "5 third");
    }
    // The window is the group's as long as it is connected to.
    user.expect("data-trigger-of t7 4 7 0", "Nospc");
    user.expect("untrigger d", "ok");
    user.expect("data-trigger-of t7 4 7 0", "ok");
    [one, other, user].into_iter().for_each(support::Process::finish);
}

#[test]
fn member_of_a_group_that_is_stopped_with_a_full_queue_holds_up_nobody_and_has_messages_again() {
    let memory = Memory::new();
    let (mut stopped, mut other, mut user) = (memory.member(4), memory.member(12), memory.member(8));
    for process in [&mut stopped, &mut other] {
        process.expect("data-interrupt d 5 group", "ok 5");
    }
    user.expect("data-trigger-of d 252 5 forever", "ok");
    user.expect("trigger-data d first 2048", "ok");
    other.expect("wait-data d 2048 forever", "2048 firstfir");
    stopped.signal(Signal::STOP);
    user.expect("trigger-data d second 2048", "Nospc");
    user.until("trigger-data d second 2048", "ok");
    other.expect("wait-data d 2048 0", "2048 secondse");
    stopped.signal(Signal::CONT);
    stopped.until("probe 8", "ok");
    user.until("probe 4", "ok");
    user.expect("trigger-data d third 5", "ok");
    stopped.expect("wait-data d 2048 forever", "5 third");
    other.expect("wait-data d 2048 0", "5 third");
    [stopped, other, user].into_iter().for_each(support::Process::finish);
}
