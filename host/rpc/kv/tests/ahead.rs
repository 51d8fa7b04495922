//! A store whose memory is brought in ahead of its use. Alone in its process, whose memory is counted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::time::{Duration, Instant};

use beeline_kv::{Key, KvOptions};
use support::*;

const MIB: u64 = 1 << 20;
/// What is there beyond what is used, and what comes with threads and windows.
const AHEAD_BYTES: u64 = 18 * MIB;
const BESIDES_BYTES: u64 = 8 * MIB;

/// Until the thread that brings memory in, which takes no core from others, has done so.
fn await_resident(bytes: u64) -> u64 {
    let started = Instant::now();
    loop {
        let resident = resident_bytes();
        if resident >= bytes || cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))) {
            return resident;
        }
        assert!(started.elapsed() < Duration::from_secs(120), "{resident} bytes, {bytes} are awaited");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn memory_is_there_ahead_of_its_use_and_follows_it() {
    let before = resident_bytes();
    let store = Store::serve(1, KvOptions { max_memory_bytes: 1 << 30, ..KvOptions::default() });
    let mut client = store.client();
    let mut number = 0u64;
    // The first ones fit the memory of a store that has nothing yet.
    for used_mib in [1, 8, 40] {
        let used_bytes = loop {
            let used_bytes = client.stats(watchdog()).unwrap().used_bytes;
            if used_bytes >= used_mib * MIB {
                break used_bytes;
            }
            for _ in 0..64 {
                client.set(Key::from_words([number, 1]), &[7; 3000], watchdog()).unwrap();
                number += 1;
            }
        };
        // What the kernel counts late, and a piece that was left to its user, may be missing.
        let resident = await_resident(before + used_bytes + AHEAD_BYTES - 6 * MIB) - before;
        assert!(
            resident <= used_bytes + AHEAD_BYTES + BESIDES_BYTES,
            "{resident} bytes with {used_bytes} in use"
        );
    }
    drop(client);
    store.end();
    let kept = resident_bytes().saturating_sub(before);
    assert!(kept <= BESIDES_BYTES, "{kept} bytes are kept");
}
