//! Readiness by descriptor between two domains: what is signalled when the connection that carries the wake-up is full.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::time::Duration;

use beeline_contract_memory::{LoadPort, StorePort};
use beeline_domain::{Event, StoreOptions, WindowOptions, connect_window, listen_all, offer_window};
use beeline_mmio::StoreKernel;
use harness::held::Held;
use harness::{TestFolder, WATCHDOG, is_readable};

#[test]
fn wake_up_that_finds_the_connection_full_is_not_lost() {
    let folder = TestFolder::new();
    let (ours, theirs) = (folder.open(), folder.open());
    let listener = offer_window(&ours, "window", WindowOptions::default()).unwrap();
    let store = StoreOptions::with_kernel(StoreKernel::Cached);
    let mut sender = connect_window(&theirs, "window", store).unwrap();
    let mut receiver = listener.accept(WATCHDOG).unwrap();
    let held = Held::new(&ours, theirs);

    // Far more than there is room for, and nobody reads them.
    (0..10_000).for_each(|_| sender.peer.ring());
    let event = Event::new().unwrap();
    event.clear();
    receiver.sleeper.announce(&event);
    listen_all([&receiver.sleeper]);
    sender.store.store_word(0, 0, 1 << 32);
    sender.store.wake_receiver();
    assert!(!is_readable(&event, Duration::ZERO), "the domain's thread is held");
    held.go_on();
    assert!(is_readable(&event, WATCHDOG));
    assert_eq!(receiver.load.load_word(0, 0), 1 << 32);
    assert!(sender.peer.is_alive() && receiver.peer.is_alive(), "a full connection is no reason to end it");
}
