//! A process whose files may not be as large as it likes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use beeline_fabric_process::{FabricMember, OpenError};
use support::Fabric;

#[test]
fn role() {
    support::play();
}

#[test]
fn segments_of_a_process_with_a_limit_lie_within_it_and_too_small_a_limit_is_named() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.limited_member(4, 16 << 20), fabric.member(8));
    owner.expect("create s 7 15000000", "ok 7");
    owner.expect("create t 8 3000000", "Nospc");
    owner.expect("create u 9 1000000", "ok 9");
    for line in ["prepare u", "available u"] {
        owner.expect(line, "ok");
    }
    user.expect("connect u 4 9 0", "ok 1000000");
    user.expect("map-remote u 999000 1000", "ok 1000");
    user.expect("store u 990 at-the-end", "ok");
    owner.expect("map-local u 0 1000000", "ok 1000000");
    owner.expect("load u 999989 11", ".at-the-end");

    // Only now: this process is limited, too.
    support::limit_files(1 << 20);
    let error = FabricMember::open(fabric.config(4)).unwrap_err();
    assert!(matches!(error, OpenError::Words(_)), "{error:?}");
    assert!(error.to_string().contains("`ulimit -f`"), "{error}");
}
