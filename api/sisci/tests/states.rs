//! Each state and each call: what comes of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(unsafe_code, reason = "calls functions of C")]

mod support;

use support::Fabric;

#[test]
fn role() {
    support::play();
}

#[test]
fn segment_that_one_program_makes_another_stores_into() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.opened("4"), fabric.opened("8"));
    owner.run(&["create sd s 7 4096", "prepare s 0", "available s 0", "map s m 0 4096"]);
    user.run(&["connect sd r 4 7 0 0", "map_remote r m 0 4096", "store m 100 hello"]);
    assert_eq!(user.call("remote_size r"), "4096");
    assert_eq!(owner.call("load m 100 5"), "hello");
    owner.expect("wait s 1000", "OK CONNECT 8 0");
    owner.expect("remove s", "BUSY");
    owner.run(&["unmap m"]);
    owner.expect("remove s", "BUSY");
    user.expect("disconnect r", "BUSY");
    user.run(&["unmap m", "disconnect r"]);
    owner.run(&["remove s", "close sd", "terminate"]);
    user.run(&["close sd", "terminate"]);
}
