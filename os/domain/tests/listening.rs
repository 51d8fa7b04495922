//! Readiness by descriptor between two domains: what is signalled when the way of the wake-up is full.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};

use beeline_contract_memory::{LoadPort, StorePort};
use beeline_domain::{
    Answer, Event, Peer, Refusal, Reply, Service, StoreOptions, WindowOptions, connect_window, listen_all,
    offer_window,
};
use beeline_mmio::StoreKernel;
use harness::{TestFolder, WATCHDOG};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

fn is_readable(event: &Event, seconds: i64) -> bool {
    let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
    poll(&mut [PollFd::new(event, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

/// Holds the domain's thread from its first connection until it is told to go on.
struct Holding {
    is_held: Sender<()>,
    go_on: Receiver<()>,
}

impl Service for Holding {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        self.is_held.send(()).unwrap();
        self.go_on.recv().unwrap();
        Ok(Reply::default().into())
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::default().into())
    }

    fn departed(&mut self, _: &Peer) {}
}

#[test]
fn wake_up_that_finds_the_connection_full_is_not_lost() {
    let folder = TestFolder::new();
    let (ours, theirs) = (folder.open(), folder.open());
    let listener = offer_window(&ours, "window", WindowOptions::default()).unwrap();
    let store = StoreOptions::with_kernel(StoreKernel::Cached);
    let mut sender = connect_window(&theirs, "window", store).unwrap();
    let mut receiver = listener.accept(WATCHDOG).unwrap();
    let ((is_held, held), (go_on, told)) = (channel(), channel());
    let _offer = ours.offer("holding", Box::new(Holding { is_held, go_on: told })).unwrap();
    let connecting = std::thread::spawn(move || theirs.connect("holding", b"", &[]).map(drop));
    held.recv_timeout(WATCHDOG).unwrap();

    // Far more than there is room for, and nobody reads them.
    (0..10_000).for_each(|_| sender.peer.ring());
    let event = Event::new().unwrap();
    event.clear();
    receiver.sleeper.announce(&event);
    listen_all([&receiver.sleeper]);
    sender.store.store_word(0, 0, 1 << 32);
    sender.store.wake_receiver();
    assert!(!is_readable(&event, 0), "the domain's thread is held");
    go_on.send(()).unwrap();
    assert!(is_readable(&event, WATCHDOG.as_secs().cast_signed()));
    assert_eq!(receiver.load.load_word(0, 0), 1 << 32);
    assert!(sender.peer.is_alive() && receiver.peer.is_alive(), "a full connection is no reason to end it");
    connecting.join().unwrap().unwrap();
}
