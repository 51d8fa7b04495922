//! Windows, credits and sleep between real processes.
//!
//! Messages are not this crate's business: the tests store and load bare words.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use beeline_contract_memory::{CreditSink, CreditSource, LoadPort, Sleeper, StorePort};
use beeline_domain::{
    ConnectError, Departure, Domain, ReceiverParts, SenderParts, Slept, StoreOptions, WindowError,
    WindowListener, WindowOptions, connect_window, offer_window,
};
use beeline_mmio::{MemoryOptions, SharedMemory, StoreKernel, membarrier};
use harness::{Helper, Role, TestFolder, WATCHDOG, fork_a_bystander, listen, say, wait_for_end, wait_until};
use rustix::fs::MemfdFlags;

const LINES: u32 = 64;

fn cached() -> StoreOptions {
    StoreOptions::with_kernel(StoreKernel::Cached)
}

fn listener(domain: &Domain) -> WindowListener {
    offer_window(domain, "window", WindowOptions { lines: LINES, ..WindowOptions::default() }).unwrap()
}

fn sender(domain: &Domain) -> Result<SenderParts, WindowError> {
    connect_window(domain, "window", cached())
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let domain = role.open();
    match role.name.as_str() {
        "sender" => {
            let mut parts = sender(&domain).unwrap();
            parts.store.store_word(0, 0, 77);
            parts.store.wake_receiver();
            if role.argument == "forks" {
                fork_a_bystander();
            }
            say("stored");
            match listen().as_deref() {
                Some("credits") => say(&format!("credits: {:?}", wait_for_credits(&mut parts, 1))),
                _ => drop(parts),
            }
            wait_for_end();
        }
        "receiver" => {
            let listener = listener(&domain);
            say("ready");
            let _parts = listener.accept(WATCHDOG).unwrap();
            say("accepted");
            wait_for_end();
        }
        "pong" => {
            let rounds = role.argument.parse().unwrap();
            let listener =
                offer_window(&domain, "pong", WindowOptions { lines: LINES, ..Default::default() }).unwrap();
            say("ready");
            let receiver = listener.accept(WATCHDOG).unwrap();
            let sender = sender(&domain).unwrap();
            say(&format!("{:?}", rally(receiver, sender, rounds, false)));
        }
        other => panic!("unknown role {other}"),
    }
}

/// Sleeps until at least `lines` are freed or the receiver is gone.
fn wait_for_credits(parts: &mut SenderParts, lines: u64) -> Slept {
    loop {
        let credits = &mut parts.credits;
        match parts.sleeper.sleep(WATCHDOG, || credits.freed_lines() >= lines) {
            slept @ (Slept::Ready | Slept::PeerGone) => return slept,
            Slept::Woken | Slept::TimedOut => {}
        }
    }
}

/// Two sides store `rounds` words in turn, always asleep while they wait. Counts sleeps that only their bound ended:
/// each is a lost wake-up.
fn rally(mut receiver: ReceiverParts, mut sender: SenderParts, rounds: u32, serves: bool) -> u32 {
    let mut lost = 0;
    for round in 0..rounds {
        let (line, word) = (round % LINES, 1u64 << 32 | u64::from(round));
        if serves {
            sender.store.store_word(line, 0, word);
            sender.store.wake_receiver();
        }
        let load = &mut receiver.load;
        while load.load_word(line, 0) != word {
            let is_over =
                receiver.sleeper.sleep(WATCHDOG, || load.load_word(line, 0) == word) == Slept::TimedOut;
            // A word that is there when the bound passes did not wake us; one that is not is just late.
            lost += u32::from(is_over && load.load_word(line, 0) == word);
        }
        if !serves {
            sender.store.store_word(line, 0, word);
            sender.store.wake_receiver();
        }
    }
    lost
}

#[test]
fn a_window_is_blank_and_shared() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = listener(&domain);
    assert!(listener.try_accept().is_none());
    let mut sender = sender(&domain).unwrap();
    let mut receiver = listener.try_accept().unwrap();
    assert_eq!((sender.blank, sender.epoch), (receiver.blank, receiver.epoch));
    assert_eq!(sender.blank >> 63, 1);
    assert_eq!((sender.store.lines(), receiver.load.lines()), (LINES, LINES));
    for line in 0..LINES {
        assert_eq!(receiver.load.load_line(line), [receiver.blank; 8]);
    }
    sender.store.store_line(5, &[1, 2, 3, 4, 5, 6, 7, 8]);
    sender.store.store_word(6, 7, 9);
    assert_eq!(receiver.load.load_line(5), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(receiver.load.load_word(6, 7), 9);
    assert_eq!(sender.credits.freed_lines(), 0);
    receiver.sink.publish(12);
    assert_eq!(sender.credits.freed_lines(), 12);
    assert_eq!(sender.needs_fence_per_message, !membarrier::is_registered());
    assert!(!receiver.sleeper.is_peer_gone() && !sender.sleeper.is_peer_gone());
}

#[test]
fn impossible_sizes_are_refused() {
    let folder = TestFolder::new();
    let domain = folder.open();
    for lines in [0, 1, 3, 1000, 1 << 25] {
        let error =
            offer_window(&domain, "window", WindowOptions { lines, ..WindowOptions::default() }).unwrap_err();
        assert!(matches!(error, WindowError::Lines { lines: l } if l == lines));
    }
}

#[test]
fn a_window_has_one_sender_and_the_next_gets_a_fresh_one() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = listener(&domain);
    let mut last: Option<ReceiverParts> = None;
    for (argument, is_killed) in [("", true), ("forks", true), ("", false)] {
        let mut helper = folder.helper("sender", argument);
        helper.expect("stored");
        let mut receiver = listener.accept(WATCHDOG).unwrap();
        assert_eq!(receiver.peer.pid(), helper.pid());
        let taken = sender(&domain).unwrap_err();
        assert!(taken.to_string().contains(&format!("taken by process {}", helper.pid())), "{taken}");
        if is_killed {
            helper.kill();
        } else {
            helper.tell("close");
        }
        // Woken by the domain's thread: nobody else would.
        while !receiver.sleeper.is_peer_gone() {
            receiver.sleeper.sleep(WATCHDOG, || false);
        }
        let departure = if is_killed { Departure::Died } else { Departure::Closed };
        assert_eq!(receiver.peer.departure(), Some(departure), "{argument}");
        assert_eq!(receiver.load.load_word(0, 0), 77, "what it left is still there");
        if let Some(last) = &mut last {
            assert_ne!(last.blank, receiver.blank);
            assert_ne!(last.epoch, receiver.epoch);
            assert_eq!(last.load.load_word(0, 0), 77, "an old window is not used again");
        }
        last = Some(receiver);
    }
}

#[test]
fn the_next_sender_need_not_wait_until_a_death_is_noticed() {
    // Straight after the kill, so that the next sender's request may come in before the death does.
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = listener(&domain);
    for _ in 0..10 {
        let mut helper = folder.helper("sender", "");
        helper.expect("stored");
        helper.kill();
        let parts = sender(&domain).unwrap();
        drop(parts);
        // Of the same process: closed in order, and at once connected again.
        drop(sender(&domain).unwrap());
        assert_eq!(std::iter::from_fn(|| listener.try_accept()).count(), 3);
    }
}

#[test]
fn senders_that_come_and_go_fill_no_more_than_a_few_windows() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = listener(&domain);
    let refused = (0..100).find_map(|_| sender(&domain).err()).unwrap();
    assert!(refused.to_string().contains("the most that one process may have"), "{refused}");
    // Another process still finds a place.
    folder.helper("sender", "").expect("stored");
    assert_eq!(std::iter::from_fn(|| listener.try_accept()).count(), 16);
    assert!(sender(&domain).is_ok());
}

#[test]
fn a_sender_that_waits_for_credits_is_woken() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = listener(&domain);
    // By credits.
    let mut helper = folder.helper("sender", "");
    helper.expect("stored");
    let mut receiver = listener.accept(WATCHDOG).unwrap();
    helper.tell("credits");
    receiver.sink.publish(1);
    helper.expect("credits: Ready");
    // By a receiver that gives the window up.
    drop(receiver);
    let mut helper = folder.helper("sender", "");
    helper.expect("stored");
    let receiver = listener.accept(WATCHDOG).unwrap();
    helper.tell("credits");
    drop(receiver);
    helper.expect("credits: PeerGone");
}

#[test]
fn a_receiver_that_dies_is_noticed_by_its_sender() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let mut helper = folder.helper("receiver", "");
    helper.expect("ready");
    let mut parts = sender(&domain).unwrap();
    helper.expect("accepted");
    helper.kill();
    assert_eq!(wait_for_credits(&mut parts, 1), Slept::PeerGone);
    assert_eq!(parts.peer.departure(), Some(Departure::Died));
    // The memory is still mapped: stores go nowhere, but they go.
    parts.store.store_line(0, &[1; 8]);
    parts.store.wake_receiver();
}

#[test]
fn no_wake_up_is_lost_between_processes_that_always_sleep() {
    const ROUNDS: u32 = 3000;
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = listener(&domain);
    let mut pong: Helper = folder.helper("pong", &ROUNDS.to_string());
    pong.expect("ready");
    let sender = connect_window(&domain, "pong", cached()).unwrap();
    let receiver = listener.accept(WATCHDOG).unwrap();
    assert_eq!(rally(receiver, sender, ROUNDS, true), 0);
    pong.expect("0");
}

#[test]
fn the_listener_may_go_before_its_windows() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let first = listener(&domain);
    let mut sender_parts = sender(&domain).unwrap();
    let mut receiver = first.accept(WATCHDOG).unwrap();
    drop(first);
    receiver.sink.publish(3);
    assert_eq!(sender_parts.credits.freed_lines(), 3);
    assert!(sender_parts.peer.is_alive());
    drop(sender_parts);
    wait_until(|| !receiver.peer.is_alive());
    let refused = sender(&domain).unwrap_err().to_string();
    assert!(refused.contains("accepts no more senders"), "{refused}");
    assert!(offer_window(&domain, "window", WindowOptions::default()).is_err(), "the name is still taken");
    drop(receiver);
    let _next = listener(&domain);
}

#[test]
fn a_credit_page_that_is_not_one_is_refused() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = listener(&domain);
    let request = br#"{"window":1}"#;
    let page = |bytes| SharedMemory::create("page", bytes, MemoryOptions::default()).unwrap();
    let unsealed =
        rustix::fs::memfd_create("unsealed", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&unsealed, 4096).unwrap();
    let file: OwnedFd = tempfile::tempfile().unwrap().into();
    let (small, large, good) = (page(64), page(8192), page(4096));
    let refused = |request: &[u8], fds: &[_]| {
        let result = domain.connect("window", request, fds);
        assert!(matches!(result, Err(ConnectError::Refused { .. })), "{result:?}");
    };
    for fd in [small.fd(), large.fd(), unsealed.as_fd(), file.as_fd()] {
        refused(request, &[fd]);
    }
    refused(request, &[]);
    refused(request, &[good.fd(), good.fd()]);
    refused(b"garbage", &[good.fd()]);
    refused(br#"{"window":2}"#, &[good.fd()]);
    assert!(listener.try_accept().is_none());
    assert!(sender(&domain).is_ok());
}

#[test]
fn garbage_in_the_flags_does_no_harm() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = listener(&domain);
    let page = SharedMemory::create("page", 4096, MemoryOptions::default()).unwrap();
    let (_connection, _) = domain.connect("window", br#"{"window":1}"#, &[page.fd()]).unwrap();
    let mut receiver = listener.accept(WATCHDOG).unwrap();
    let flag = page.map().unwrap().flag(64);
    let short = Duration::from_millis(1);
    // A peer that never wakes, and one that changes the flag the moment it is set.
    assert_eq!(receiver.sleeper.sleep(short, || false), Slept::TimedOut);
    let slept = receiver.sleeper.sleep(WATCHDOG, || {
        flag.store(0xdead_beef);
        false
    });
    assert_eq!(slept, Slept::Woken);
    assert_eq!(receiver.sleeper.sleep(WATCHDOG, || true), Slept::Ready);
    assert_eq!(flag.load(), 0);
}
