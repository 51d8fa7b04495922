//! Message queues between processes that share a kernel.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

#[path = "../../transfer/tests/cases/queues.rs"]
mod cases;
mod support;

#[test]
fn role() {
    support::play();
}
