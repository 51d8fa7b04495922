//! Groups of data interrupts between processes over the kernel.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

#[path = "../../transfer/tests/cases/group_interrupts.rs"]
mod cases;
mod support;

use support::Fabric;

#[test]
fn role() {
    support::play();
}

#[test]
fn interrupt_without_messages_is_none_of_a_group() {
    let fabric = Fabric::new();
    let (mut owner, mut user) = (fabric.member(4), fabric.member(8));
    owner.expect("data-interrupt d 5 group", "ok 5");
    user.expect("trigger-of t 252 5 0", "NoSuchNodeid");
}
