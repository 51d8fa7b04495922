//! Handles of nothing, of another kind, of before: the code that says so, and nothing else.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(unsafe_code, reason = "calls functions of C")]

mod support;

use support::{Fabric, Program};

#[test]
fn role() {
    support::play();
}

/// Calls on a handle `h`, by what it should be of.
const CALLS: &[(&str, &[&str])] = &[
    ("sd", &["close h", "create h x 9 64", "connect h x 4 7 0 0", "probe h 0 4"]),
    (
        "s",
        &[
            "prepare h 0",
            "available h 0",
            "unavailable h 0",
            "map h x 0 64",
            "wait h 0",
            "query 8 h 0x301",
            "remove h",
        ],
    ),
    ("r", &["map_remote h x 0 64", "wait_remote h 0", "query 9 h 0x401", "disconnect h"]),
    (
        "m",
        &[
            "sequence h x",
            "copy none h 0 x",
            "copy_1 h 0 x",
            "block h 0 m 0 1",
            "block m 0 h 0 1",
            "query 10 h 0x501",
            "unmap h",
        ],
    ),
    ("q", &["start h", "check h", "copy h m 0 x", "copy_dual q m 0 h m 0 x", "unsequence h"]),
];

/// Getters give nothing.
const GETTERS: &[&str] = &["id h", "size h", "remote_id h", "remote_node h", "remote_size h", "pointer h"];

fn everything(program: &mut Program) {
    program.run(&["create sd s 7 4096", "prepare s 0", "available s 0", "connect sd r 4 7 0 0"]);
    program.run(&["map_remote r m 0 4096", "sequence m q"]);
}

fn expect_all(program: &mut Program, calls: &[&str], code: &str, what: &str) {
    for call in calls {
        let said = program.call(call);
        let said = said.strip_prefix("0 ").unwrap_or(&said);
        assert_eq!(said, code, "`{call}` with {what}");
    }
}

#[test]
fn handle_of_nothing_or_of_another_kind_is_refused() {
    let fabric = Fabric::new();
    let mut program = fabric.opened("4");
    everything(&mut program);
    for (kind, calls) in CALLS {
        for bits in ["0", "1", "0x53", "0x7fffffff", "0xfffffff8"] {
            program.run(&[&format!("wild h {bits}")]);
            // NULL is no sequence to a copy, which wants none.
            let calls: Vec<_> = calls
                .iter()
                .copied()
                .filter(|call| bits != "0" || !call.starts_with("copy h") && !call.contains("h m 0 x"))
                .collect();
            expect_all(&mut program, &calls, "ILLEGAL_PARAMETER", bits);
        }
        for other in CALLS.iter().map(|(other, _)| other).filter(|other| *other != kind) {
            program.run(&[&format!("copy_handle {other} h")]);
            expect_all(&mut program, calls, "ILLEGAL_PARAMETER", other);
        }
    }
    program.run(&["wild h 0x123451"]);
    for getter in GETTERS {
        assert_eq!(program.call(getter), "0", "{getter}");
    }
    // All is still there.
    program.run(&["unsequence q", "unmap m", "disconnect r", "remove s", "close sd"]);
}

#[test]
fn removed_handle_is_refused_also_when_its_slot_is_used_again() {
    let fabric = Fabric::new();
    let mut program = fabric.opened("4");
    everything(&mut program);
    for (name, _) in CALLS {
        program.run(&[&format!("copy_handle {name} {name}.old")]);
    }
    program.run(&["unsequence q", "unmap m", "disconnect r", "remove s", "close sd", "open sd"]);
    everything(&mut program);
    for (name, calls) in CALLS {
        program.run(&[&format!("copy_handle {name}.old h")]);
        expect_all(&mut program, calls, "ILLEGAL_PARAMETER", "a handle that was removed");
    }
}

#[test]
fn nothing_is_done_before_the_library_is_initialized_and_after_it_is_terminated() {
    let fabric = Fabric::new();
    let mut program = fabric.program("4");
    program.expect("open sd", "NOT_INITIALIZED");
    program.expect("node 0", "NOT_INITIALIZED");
    program.expect("query_adapter 0 0x101", "NOT_INITIALIZED");
    program.expect("named alpha", "NOT_INITIALIZED");
    program.expect("absent 0", "NOT_INITIALIZED");
    for (_, calls) in CALLS {
        program.run(&["wild h 0x51"]);
        expect_all(&mut program, calls, "NOT_INITIALIZED", "nothing");
    }
    program.run(&["initialize", "initialize", "open sd"]);
    everything(&mut program);
    program.run(&["terminate"]);
    program.expect("check q", "ILLEGAL_OPERATION");
    program.run(&["terminate"]);
    for (name, calls) in CALLS {
        program.run(&[&format!("copy_handle {name} h")]);
        expect_all(&mut program, calls, "NOT_INITIALIZED", "what there was");
    }
    program.run(&["terminate"]);
    program.expect("open sd", "NOT_INITIALIZED");
    // Again, with nothing of before.
    program.run(&["initialize"]);
    for (name, calls) in CALLS {
        program.run(&[&format!("copy_handle {name} h")]);
        expect_all(&mut program, calls, "ILLEGAL_PARAMETER", "what there was");
    }
    program.run(&["open sd"]);
    everything(&mut program);
}

#[test]
fn terminating_removes_what_the_program_has_left() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.run(&["create sd s 7 4096", "prepare s 0", "available s 0", "map s m 0 4096", "sequence m q"]);
    user.run(&["connect sd r 4 7 0 0", "map_remote r m 0 4096"]);
    owner.run(&["terminate"]);
    user.expect("wait_remote r 10000", "OK LOST OK");
    user.expect("connect sd t 4 7 0 0", "NODE_NOT_RESPONDING");
    user.expect("probe sd 0 4", "0 NODE_NOT_RESPONDING");
    owner.run(&["initialize", "open sd", "create sd s 7 64"]);
}

#[test]
fn terminating_ends_the_connecting_of_another_thread() {
    let fabric = Fabric::new();
    let mut program = fabric.opened("4");
    for connect in [
        "connect sd r 4 7 0 0xffffffff",
        "connect_int sd r 4 0 7 0xffffffff",
        "connect_data sd r 4 0 7 0xffffffff",
    ] {
        // A thread that comes too late finds the library terminated: it is done again until one was in time.
        loop {
            program.run(&["copy_handle sd old", &format!("thread t {connect}"), "terminate"]);
            program.expect("close old", "NOT_INITIALIZED");
            let said = program.call("join t");
            program.run(&["initialize"]);
            program.expect("close old", "ILLEGAL_PARAMETER");
            program.run(&["open sd"]);
            match said.as_str() {
                "CANCELLED" => break,
                late => assert_eq!(late, "NOT_INITIALIZED"),
            }
        }
        program.run(&["copy_handle sd old", &format!("thread t insist {connect}"), "terminate"]);
        program.expect("join t", "NOT_INITIALIZED");
        program.run(&["initialize"]);
        program.expect("close old", "ILLEGAL_PARAMETER");
        program.run(&["open sd"]);
    }
}

#[test]
fn child_of_fork_has_nothing_of_its_parents_and_can_begin_anew() {
    let fabric = Fabric::new();
    let mut program = fabric.opened("4");
    everything(&mut program);
    for (name, calls) in CALLS {
        program.run(&[&format!("copy_handle {name} h")]);
        for call in *calls {
            let said = program.call(&format!("child {call}"));
            assert_eq!(said.strip_prefix("0 ").unwrap_or(&said), "NOT_INITIALIZED", "`{call}` in a child");
        }
    }
    program.expect("child terminate then open sd", "NOT_INITIALIZED");
    program.expect("child initialize then remove s", "NOT_INITIALIZED");
    program.expect("child initialize then open sd then create sd t 7 64", "SEGMENTID_USED");
    program.expect("child initialize then open sd then connect sd t 4 7 0 0 then map_remote t n 0 4096 then store n 9 hello", "OK");
    program.expect("load m 9 5", "hello");
    // A mapped segment is the child's, too.
    program.run(&["address m at"]);
    program.expect("child store_at at 20 child", "OK");
    program.expect("load m 20 5", "child");
    // The parent is as it was. The child that had connected is known to be gone a little later.
    program.run(&["unsequence q", "unmap m", "disconnect r"]);
    program.until("remove s", "OK");
    program.run(&["close sd"]);
}

#[test]
fn threads_that_remove_one_handle_at_once_agree_on_who_did() {
    let fabric = Fabric::new();
    let mut program = fabric.opened("4");
    let removals = [
        (&["create sd s 7 4096"][..], "remove s"),
        (&["create sd s 7 4096", "map s m 0 4096"], "unmap m"),
        (&["create sd s 7 4096", "map s m 0 4096", "sequence m q"], "unsequence q"),
    ];
    for (before, removal) in removals.iter().cycle().take(150) {
        program.run(before);
        for thread in ["one", "two", "three"] {
            program.run(&[&format!("thread {thread} {removal}")]);
        }
        let mut said = ["one", "two", "three"].map(|thread| program.call(&format!("join {thread}")));
        said.sort();
        assert_eq!(said, ["ILLEGAL_PARAMETER", "ILLEGAL_PARAMETER", "OK"], "{removal}");
        for rest in ["unmap m", "remove s"] {
            program.call(rest);
        }
    }
}
