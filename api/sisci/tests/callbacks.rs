//! Callbacks of segments and connections.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(unsafe_code, reason = "calls functions of C")]

mod support;

use support::Fabric;

/// Milliseconds that are more than anything here takes.
const LONG: &str = "told 20000";

#[test]
fn role() {
    support::play();
}

#[test]
fn owner_and_user_are_told_by_callbacks_in_their_order() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.run(&["create_told sd s 7 4096 USE_CALLBACK go_on", "prepare s 0", "available s 0"]);
    owner.expect("wait s 0", "ILLEGAL_OPERATION");
    user.run(&["connect_told sd r 4 7 USE_CALLBACK go_on"]);
    user.expect("wait_remote r 0", "ILLEGAL_OPERATION");
    owner.expect(LONG, "CONNECT 8 0");
    user.run(&["disconnect r"]);
    owner.expect(LONG, "DISCONNECT 8 0");
    user.run(&["connect_told sd r 4 7 USE_CALLBACK go_on"]);
    owner.expect(LONG, "CONNECT 8 0");
    owner.run(&["remove s FORCE_REMOVE"]);
    user.expect(LONG, "LOST OK");
    user.run(&["disconnect r", "close sd"]);
    owner.run(&["close sd"]);
}

#[test]
fn asynchronous_connection_is_told_when_it_is_made() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.run(&["create sd s 7 4096", "prepare s 0", "available s 0"]);
    user.run(&["connect_told sd r 4 7 USE_CALLBACK|ASYNCHRONOUS_CONNECT go_on"]);
    user.expect(LONG, "CONNECT OK");
    user.expect("remote_size r", "4096");
    user.run(&["map_remote r m 0 4096"]);
    // And one that is not: it is tried once.
    user.run(&["connect_told sd none 4 8 USE_CALLBACK|ASYNCHRONOUS_CONNECT go_on"]);
    user.expect(LONG, "LOST NO_SUCH_SEGMENT");
    user.expect("map_remote none n 0 1", "SEGMENT_NOT_CONNECTED");
    user.run(&["disconnect none"]);
    owner.kill();
    user.expect(LONG, "LOST OK");
}

#[test]
fn callback_that_cancels_is_called_no_more() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.run(&["create_told sd s 7 4096 USE_CALLBACK cancel", "prepare s 0", "available s 0"]);
    user.run(&["connect sd r 4 7 0 0"]);
    owner.expect(LONG, "CONNECT 8 0");
    user.run(&["disconnect r"]);
    owner.expect("told 50", "nothing");
    // The handle is as it was.
    owner.expect("wait s 0", "ILLEGAL_OPERATION");
    owner.run(&["remove s", "close sd"]);
}

#[test]
fn callback_removes_its_own_segment() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.run(&["create_told sd s 7 4096 USE_CALLBACK remove", "prepare s 0", "available s 0"]);
    user.run(&["connect_told sd r 4 7 USE_CALLBACK remove"]);
    owner.expect(LONG, "CONNECT 8 0 OK");
    user.expect(LONG, "LOST OK OK");
    owner.expect("remove s", "ILLEGAL_PARAMETER");
    owner.until("close sd", "OK");
    user.until("close sd", "OK");
}

#[test]
fn callback_may_wait_for_what_another_one_does() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.run(&["create_told sd s 7 4096 USE_CALLBACK wait_for_another", "prepare s 0", "available s 0"]);
    owner.run(&["create_told sd t 8 4096 USE_CALLBACK go_on", "prepare t 0", "available t 0"]);
    user.run(&["connect sd r 4 7 0 0", "connect sd q 4 8 0 0"]);
    owner.expect(LONG, "CONNECT 8 0");
    owner.expect(LONG, "CONNECT 8 0");
}

#[test]
fn termination_ends_callbacks() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.run(&["create_told sd s 7 4096 USE_CALLBACK go_on", "prepare s 0", "available s 0"]);
    user.run(&["connect_told sd r 4 7 USE_CALLBACK go_on"]);
    owner.expect(LONG, "CONNECT 8 0");
    owner.run(&["terminate"]);
    user.expect(LONG, "LOST OK");
    user.run(&["terminate"]);
    user.expect("told 20", "nothing");
}

#[test]
fn thousands_of_segments_with_callbacks_take_few_threads() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.run(&["create_told sd s 7 4096 USE_CALLBACK go_on", "prepare s 0", "available s 0"]);
    let threads = |owner: &mut support::Program| owner.call("threads").parse::<u32>().unwrap();
    let before = threads(&mut owner);
    owner.run(&["many_told sd 1000 2000 go_on"]);
    user.run(&["many_connected sd 4 1000 2000"]);
    for _ in 0..2000 {
        owner.expect(LONG, "CONNECT 8 0");
    }
    assert!(threads(&mut owner) < before + 50);
    owner.run(&["terminate"]);
    owner.expect("told 20", "nothing");
}

#[test]
fn member_that_polls_is_told_by_callbacks_too() {
    let fabric = Fabric::new();
    fabric.configure("polls = true\n");
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.expect("int sd i 5 FIXED_INTNO|USE_CALLBACK go_on", "OK 5");
    owner.expect("int sd k 6 FIXED_INTNO", "OK 6");
    user.run(&["connect_int sd j 4 0 5 1000", "connect_int sd l 4 0 6 1000", "trigger j"]);
    owner.expect(LONG, "TRIGGERED OK");
    owner.run(&["thread t wait_int k 0xffffffff"]);
    user.run(&["trigger l"]);
    owner.expect("join t", "OK");
    owner.run(&["terminate"]);
    user.run(&["terminate"]);
}
