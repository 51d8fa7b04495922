//! Queues of DMA in each state, and each call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(unsafe_code, reason = "calls functions of C")]

mod support;

use support::{Fabric, Program};

#[test]
fn role() {
    support::play();
}

/// A segment `s` of the user, and a connection `r` to one of the owner; both are mapped as `m`.
fn connected(owner: &mut Program, user: &mut Program) {
    owner.run(&["create sd s 7 65536", "prepare s 0", "available s 0", "map s m 0 65536"]);
    user.run(&["create sd s 8 65536", "prepare s 0", "map s m 0 65536", "connect sd r 4 7 0 0"]);
}

/// Calls on a queue that is idle, and on one whose last transfer is done.
const CALLS: &[(&str, [&str; 2])] = &[
    ("state q", ["IDLE", "DONE"]),
    ("transfer q s r 0 100 0 DMA_WAIT", ["OK"; 2]),
    ("transfer q s r 0 100 0 DMA_WAIT|DMA_READ|DMA_GLOBAL|DMA_SYSDMA|DMA_ADAPTER", ["OK"; 2]),
    ("transfer q s r 0 65536 0 DMA_WAIT", ["OK"; 2]),
    ("transfer q s r 0 65537 0 DMA_WAIT", ["OUT_OF_RANGE"; 2]),
    ("transfer q s r 1 65536 0 0", ["OUT_OF_RANGE"; 2]),
    ("transfer q s r 0 65536 1 0", ["OUT_OF_RANGE"; 2]),
    ("transfer q s r 0 100 0 USE_CALLBACK", ["ILLEGAL_PARAMETER"; 2]),
    ("transfer q s r 0 100 0 USE_CALLBACK|DMA_WAIT go_on", ["ILLEGAL_FLAG"; 2]),
    ("transfer q s r 0 100 0 0x8000", ["ILLEGAL_FLAG"; 2]),
    ("transfer q s r 0 100 0 DMA_USER_MEM", ["FLAG_NOT_IMPLEMENTED"; 2]),
    ("transfer q none r 0 100 0 0", ["ILLEGAL_PARAMETER"; 2]),
    ("transfer q s none 0 100 0 0", ["ILLEGAL_PARAMETER"; 2]),
    ("transfer none s r 0 100 0 0", ["ILLEGAL_PARAMETER"; 2]),
    ("vector q s r DMA_WAIT 1:2:3:0 4:5:6:0", ["OK"; 2]),
    ("vector q s r DMA_WAIT", ["ILLEGAL_PARAMETER"; 2]),
    ("vector q s r DMA_WAIT 1:2:3:0 4:5:65533:0", ["OUT_OF_RANGE"; 2]),
    ("vector q s r DMA_WAIT 1:2:3:1", ["ILLEGAL_FLAG"; 2]),
    ("vector q s r 0x8000 1:2:3:0", ["ILLEGAL_FLAG"; 2]),
    ("wait_dma q 0", ["IDLE ILLEGAL_OPERATION", "DONE OK"]),
    ("wait_dma q 0 0x1", ["IDLE ILLEGAL_FLAG", "DONE ILLEGAL_FLAG"]),
    ("abort q", ["ILLEGAL_OPERATION", "OK"]),
    ("abort q 0x1", ["ILLEGAL_FLAG"; 2]),
    ("undma q 0x1", ["ILLEGAL_FLAG"; 2]),
    ("undma q", ["OK"; 2]),
    ("dma sd p 0 0", ["ILLEGAL_PARAMETER"; 2]),
    ("dma sd p 1 1", ["NO_SUCH_ADAPTERNO"; 2]),
    ("dma sd p 16 1", ["ILLEGAL_ADAPTERNO"; 2]),
    ("dma sd p 0 1 DMA_PHDMA", ["FLAG_NOT_IMPLEMENTED"; 2]),
    ("dma sd p 0 1 0x1", ["ILLEGAL_FLAG"; 2]),
    ("dma sd - 0 1", ["ILLEGAL_PARAMETER"; 2]),
    ("close sd", ["BUSY"; 2]),
];

#[test]
fn queue_in_each_state_answers_each_call_with_its_code() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    connected(&mut owner, &mut user);
    for (call, [idle, done]) in CALLS {
        user.run(&["dma sd q 0 4"]);
        user.expect(call, idle);
        user.call("undma q");
        user.run(&["dma sd q 0 4", "transfer q s r 0 10 0 DMA_WAIT"]);
        assert_eq!(user.call(call), *done, "`{call}` when it is done");
        user.call("undma q");
    }
    user.expect("undma q", "ILLEGAL_PARAMETER");
    user.run(&["unmap m", "remove s", "disconnect r", "close sd"]);
}

#[test]
fn bytes_go_both_ways() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    connected(&mut owner, &mut user);
    user.run(&["dma sd q 0 4", "store m 10 hello", "transfer q s r 10 5 20 DMA_WAIT"]);
    owner.expect("load m 20 5", "hello");
    owner.run(&["store m 30 there"]);
    user.run(&["transfer q s r 40 5 30 DMA_READ"]);
    user.expect("wait_dma q 20000", "DONE OK");
    user.expect("load m 40 5", "there");
    user.run(&["vector q s r DMA_WAIT 3:10:100:0 2:13:200:0"]);
    assert_eq!(["load m 100 3", "load m 200 2"].map(|load| owner.call(load)), ["hel", "lo"]);
}

#[test]
fn end_of_a_transfer_is_told_by_its_callback() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    connected(&mut owner, &mut user);
    user.run(&["dma sd q 0 4"]);
    for _ in 0..3 {
        user.run(&["transfer q s r 0 65536 0 USE_CALLBACK go_on"]);
        user.expect("told 20000", "OK 3");
    }
    user.expect("wait_dma q 0", "DONE ILLEGAL_OPERATION");
    // The next one has none.
    user.run(&["transfer q s r 0 65536 0 0"]);
    user.expect("wait_dma q 20000", "DONE OK");
    user.expect("told 20", "nothing");
    // A queue is removed in its own callback.
    user.run(&["transfer q s r 0 65536 0 USE_CALLBACK remove"]);
    user.expect("told 20000", "OK 3 OK");
    user.expect("undma q", "ILLEGAL_PARAMETER");
    user.run(&["unmap m", "remove s"]);
}

#[test]
fn transfer_to_what_is_lost_fails() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    connected(&mut owner, &mut user);
    user.run(&["dma sd q 0 4"]);
    owner.run(&["unmap m", "remove s FORCE_REMOVE"]);
    user.expect("transfer q s r 0 10 0 DMA_WAIT", "NOT_CONNECTED");
    user.expect("state q", "IDLE");
}
