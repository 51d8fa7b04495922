//! `max_memory_bytes` is memory: what the process has does not grow past it, whatever is stored and deleted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use beeline_kv::{Key, KvError, KvOptions};
use support::*;

/// Besides the store: the windows of a client, what it keeps, and what comes with threads.
const BESIDES_BYTES: u64 = 4 << 20;

/// Values of one length fill the store, most of them are deleted, and longer ones come, which fit in no gap that is left.
#[test]
fn values_that_grow_longer_take_no_more_memory_than_the_store_was_given() {
    const MAX_BYTES: u64 = 16 << 20;
    let before = resident_bytes();
    let store = Store::serve(1, KvOptions { max_memory_bytes: MAX_BYTES, ..KvOptions::default() });
    let mut client = store.client();
    let mut next = 0u64;
    for bytes in [300, 420, 600, 840, 1200, 1700, 2400] {
        let from = next;
        loop {
            match client.set(Key::from_words([next, 1]), &vec![next as u8; bytes], watchdog()) {
                Ok(()) => next += 1,
                Err(KvError::Full { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        let taken = (next - from) * bytes as u64;
        // A tenth of each round before is there too.
        assert!(taken > MAX_BYTES / 4, "{taken} bytes in values of {bytes}");
        let resident = resident_bytes().saturating_sub(before);
        assert!(resident <= MAX_BYTES + BESIDES_BYTES, "{resident} bytes with values of {bytes}");
        for number in (from..next).filter(|number| number % 10 != 0) {
            assert!(client.delete(Key::from_words([number, 1]), watchdog()).unwrap());
        }
    }
}
