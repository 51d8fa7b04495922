//! A store that takes its memory when it is opened. Alone in its process, whose memory is counted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use beeline_kv::{KvOptions, KvService};
use support::resident_bytes;

#[test]
fn memory_that_is_preallocated_is_there_before_the_first_request() {
    const MAX_BYTES: u64 = 32 << 20;
    let before = resident_bytes();
    let options = KvOptions { max_memory_bytes: MAX_BYTES, is_preallocated: true, ..KvOptions::default() };
    let store = KvService::open(1, options).unwrap();
    let taken = resident_bytes() - before;
    // The kernel counts some pages late.
    assert!(taken > MAX_BYTES / 8 * 7, "{taken} bytes");
    drop(store);
    assert!(resident_bytes() - before < MAX_BYTES / 8, "{} bytes are kept", resident_bytes() - before);
}
