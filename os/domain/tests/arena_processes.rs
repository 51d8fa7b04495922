//! Windows in arenas between two processes: ten thousand of them in a process of 1,024 descriptors, memory that follows use, and
//! deaths at any moment.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::collections::BTreeSet;
use std::time::Duration;

use beeline_contract_memory::{CreditSink, CreditSource, LoadPort, StorePort};
use beeline_domain::{
    ArenaListener, ArenaOptions, Departure, Domain, ReceiverParts, SenderArena, SenderParts, Slept,
    join_windows, offer_windows,
};
use beeline_mmio::StoreKernel;
use harness::held::Held;
use harness::{
    Helper, Role, TestFolder, WATCHDOG, fork_a_bystander, listen, open_fds, say, wait_for_end, wait_until,
};
use rustix::process::{Resource, Rlimit, setrlimit};

const LINES: u32 = 64;
const MANY: usize = 10_000;
/// Windows that a client opens before it is killed, of those that it has in stock.
const OPENED: u64 = 10;

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let domain = role.open();
    match role.name.as_str() {
        "many" => many(&domain, &role.argument),
        "receiver" => {
            let listener = offer(&domain, "arena");
            say("ready");
            follow_use(&listener);
            wait_for_end();
        }
        "both" => have_both_sides(&role),
        "churner" => churn(&join(&domain, "arena")),
        "opener" => {
            let arena = join(&domain, "arena");
            let _first = arena.open(StoreKernel::Cached).unwrap();
            assert_eq!(listen().as_deref(), Some("open"));
            // Nobody hears of these before it dies.
            for value in 1..=OPENED {
                let mut sender = arena.open(StoreKernel::Cached).unwrap();
                sender.store.store_word(0, 0, value);
                std::mem::forget(sender);
            }
            say("opened");
            wait_for_end();
        }
        "owner" => {
            let listener = offer(&domain, "arena");
            say("ready");
            // Half of them stay.
            let mut kept = Vec::new();
            loop {
                let receiver = listener.accept(WATCHDOG).unwrap();
                if kept.len() < 500 {
                    kept.push(receiver);
                }
            }
        }
        other => panic!("unknown role {other}"),
    }
}

fn offer(domain: &Domain, name: &str) -> ArenaListener {
    let options =
        ArenaOptions { lines: 256, windows: 16 * 1024, bytes: 256 << 20, ..ArenaOptions::default() };
    offer_windows(domain, name, options).unwrap()
}

fn join(domain: &Domain, name: &str) -> SenderArena {
    domain.retry_until_offered(WATCHDOG, |_| join_windows(domain, name, LINES)).unwrap()
}

/// The next of a sequence that a number begins.
fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// The word of a message. Bit 63 is clear, so that it is no blank.
fn word_of(window: u64, round: u64, word: u32) -> u64 {
    window << 16 | round << 8 | u64::from(word) | 1 << 62
}

/// Stores a line in an order that the window and the round decide.
fn send(sender: &mut SenderParts, window: u64, round: u64) {
    let mut order: Vec<u32> = (0..8).collect();
    order.sort_by_key(|word| mix(window << 16 | round << 8 | u64::from(*word)));
    for word in order {
        sender.store.store_word(round as u32, word, word_of(window, round, word));
    }
    sender.store.wake_receiver();
}

/// Waits for a line, and gives the window that it came from.
fn receive(receiver: &mut ReceiverParts, round: u64) -> u64 {
    let line = wait_for_line(receiver, round as u32);
    let window = (line[0] ^ 1 << 62) >> 16;
    let expected: Vec<_> = (0..8).map(|word| word_of(window, round, word)).collect();
    assert_eq!(line.to_vec(), expected);
    receiver.load.blank_line(round as u32, receiver.blank);
    receiver.sink.publish(round + 1);
    window
}

fn wait_for_line(receiver: &mut ReceiverParts, line: u32) -> [u64; 8] {
    loop {
        let words = receiver.load.load_line(line);
        if words.iter().all(|word| *word != receiver.blank) {
            return words;
        }
        std::thread::yield_now();
    }
}

fn maps() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

/// Has both sides of an arena, several times: nothing is left of it.
fn have_both_sides(role: &Role) {
    let before = open_fds();
    for _ in 0..3 {
        let domain = role.open();
        let (listener, arena) = (offer(&domain, "arena"), join(&domain, "arena"));
        let open = || (arena.open(StoreKernel::Cached).unwrap(), listener.accept(WATCHDOG).unwrap());
        let windows: Vec<_> = (0..100).map(|_| open()).collect();
        // A hundred windows, and no more than a few descriptors for the offer, the connection and its evidence.
        assert!(open_fds() < before + 20);
        drop((windows, arena, listener, domain));
        // What is dropped by threads that nobody waits for takes a moment.
        wait_until(|| open_fds() <= before);
    }
    say("done");
}

/// One of two processes that each have ten thousand windows to send into and as many to receive from.
fn many(domain: &Domain, argument: &str) {
    let (own, other) = argument.split_once(' ').unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(1024), maximum: Some(1024) }).unwrap();
    let (maps_before, fds_before) = (maps(), open_fds());
    let listener = offer(domain, own);
    let arena = join(domain, other);
    let mut senders: Vec<_> = (0..MANY).map(|_| arena.open(StoreKernel::Cached).unwrap()).collect();
    let mut receivers: Vec<_> = (0..MANY).map(|_| listener.accept(WATCHDOG).unwrap()).collect();
    for round in 0..3 {
        for (window, sender) in senders.iter_mut().enumerate() {
            send(sender, window as u64, round);
        }
        let windows: BTreeSet<_> = receivers.iter_mut().map(|receiver| receive(receiver, round)).collect();
        assert_eq!(windows.len(), MANY, "each has its own");
        for sender in &mut senders {
            wait_until(|| sender.credits.freed_lines() == round + 1);
        }
    }
    say(&format!("{} {}", maps() - maps_before, open_fds() - fds_before));
    assert_eq!(listen().as_deref(), Some("close"));
    drop(senders);
    wait_until(|| receivers.iter().all(|receiver| receiver.peer.departure() == Some(Departure::Closed)));
    drop(receivers);
    // And once more, out of what came back.
    let senders: Vec<_> = (0..MANY).map(|_| arena.open(StoreKernel::Cached).unwrap()).collect();
    let receivers: Vec<_> = (0..MANY).map(|_| listener.accept(WATCHDOG).unwrap()).collect();
    say("again");
    wait_for_end();
    drop((senders, receivers));
}

/// In a process of its own, where no other test opens anything meanwhile.
#[test]
fn nothing_is_left_when_both_sides_have_gone() {
    let folder = TestFolder::new();
    let mut helper = folder.helper("both", "");
    helper.expect("done");
    assert!(helper.finish().success());
}

#[test]
fn ten_thousand_windows_fit_a_default_process() {
    let folder = TestFolder::new();
    let mut helpers = [folder.helper("many", "left right"), folder.helper("many", "right left")];
    for helper in &mut helpers {
        let counts = helper.hear();
        let (maps, fds) = counts.split_once(' ').unwrap();
        let (maps, fds): (usize, usize) = (maps.parse().unwrap(), fds.parse().unwrap());
        // Two memories of each arena, and what the allocator and the threads took meanwhile.
        assert!(maps < 100, "{maps} mappings more");
        assert!(fds < 20, "{fds} descriptors more");
    }
    helpers.iter_mut().for_each(|helper| helper.tell("close"));
    helpers.iter_mut().for_each(|helper| helper.expect("again"));
}

/// Bytes of shared memory that this process has in its address space.
fn shared_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssShmem:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

const LARGE: usize = 1000;
const LARGE_BYTES: usize = 16 << 10;

/// A receiver that says what its memory is while windows are there and afterwards.
fn follow_use(listener: &ArenaListener) {
    let before = shared_bytes();
    for is_first in [false, true, true, false] {
        let receivers: Vec<_> = (0..LARGE).map(|_| listener.accept(WATCHDOG).unwrap()).collect();
        assert!(shared_bytes() >= before + LARGE * LARGE_BYTES);
        say("full");
        assert_eq!(listen().as_deref(), Some("close"));
        if is_first {
            drop(receivers);
            say("closed");
        } else {
            wait_until(|| receivers.iter().all(|receiver| !receiver.peer.is_alive()));
            drop(receivers);
        }
        // What free windows keep (1 MiB), the stock, and the words of windows.
        wait_until(|| shared_bytes() < before + (4 << 20));
        say("empty");
    }
}

#[test]
fn memory_follows_use() {
    let folder = TestFolder::new();
    let mut helper = folder.helper("receiver", "");
    helper.expect("ready");
    let domain = folder.open();
    let arena = join_windows(&domain, "arena", 256).unwrap();
    let open = |helper: &mut Helper| {
        let senders: Vec<_> = (0..LARGE).map(|_| arena.open(StoreKernel::Cached).unwrap()).collect();
        helper.expect("full");
        senders
    };
    // The sender is the first to close; the receiver is, and the sender knows; the sender does not know yet; and once more.
    let senders = open(&mut helper);
    helper.tell("close");
    drop(senders);
    helper.expect("empty");
    let senders = open(&mut helper);
    helper.tell("close");
    helper.expect("closed");
    wait_until(|| senders.iter().all(|sender| !sender.peer.is_alive()));
    drop(senders);
    helper.expect("empty");
    let senders = open(&mut helper);
    let held = Held::new(&domain, folder.open());
    helper.tell("close");
    helper.expect("closed");
    drop(senders);
    held.go_on();
    helper.expect("empty");
    let senders = open(&mut helper);
    helper.tell("close");
    drop(senders);
    helper.expect("empty");
}

/// Opens, sends and closes until it is killed, with some windows open all the time.
fn churn(arena: &SenderArena) {
    fork_a_bystander();
    say("begun");
    let mut kept = Vec::new();
    for window in 0.. {
        let mut sender = arena.open(StoreKernel::Cached).unwrap();
        send(&mut sender, window, 0);
        if mix(window).is_multiple_of(8) {
            kept.push(sender);
        }
        if kept.len() > 50 {
            kept.swap_remove(mix(window) as usize % 50);
        }
    }
}

#[test]
fn what_a_client_opened_before_it_was_killed_is_accepted_and_then_ends() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = offer(&domain, "arena");
    let mut helper = folder.helper("opener", "");
    let first = listener.accept(WATCHDOG).unwrap();
    helper.tell("open");
    assert_eq!(helper.hear(), "opened");
    helper.kill();
    wait_until(|| first.peer.departure() == Some(Departure::Died));
    // The domain's thread has known it for a while.
    std::thread::sleep(Duration::from_millis(100));
    for value in 1..=OPENED {
        let receiver = listener.accept(WATCHDOG).unwrap();
        assert_eq!(receiver.load.load_word(0, 0), value);
        wait_until(|| !receiver.peer.is_alive());
        assert_eq!(receiver.peer.departure(), Some(Departure::Died));
    }
}

#[test]
fn next_client_of_one_that_was_killed_gets_clean_windows() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = offer(&domain, "arena");
    let mut fds = Vec::new();
    for kill in 0..8u64 {
        let mut helper: Helper = folder.helper("churner", "");
        helper.expect("begun");
        // Some of what it opens is kept, some goes at once.
        let mut kept = Vec::new();
        for _ in 0..200 + mix(kill) % 300 {
            let mut receiver = listener.accept(WATCHDOG).unwrap();
            wait_for_line(&mut receiver, 0);
            if kept.len() < 50 {
                kept.push(receiver);
            }
        }
        helper.kill();
        wait_until(|| kept.iter().all(|receiver| !receiver.peer.is_alive()));
        while listener.accept(Duration::from_millis(1)).is_some() {}
        let arena = join(&domain, "arena");
        let opened: Vec<_> = (0..100).map(|_| arena.open(StoreKernel::Cached).unwrap()).collect();
        for _ in &opened {
            let mut receiver = listener.accept(WATCHDOG).unwrap();
            assert!((0..LINES).all(|line| receiver.load.load_line(line) == [receiver.blank; 8]));
            assert!(receiver.peer.is_alive());
        }
        drop((opened, kept));
        drop(helper);
        fds.push(open_fds());
    }
    // Other tests of this process open some, too.
    assert!(fds[7] < fds[0] + 40, "{fds:?}");
}

#[test]
fn death_of_the_owner_ends_every_window() {
    let folder = TestFolder::new();
    let domain = folder.open();
    for kill in 0..6u64 {
        let mut helper = folder.helper("owner", "");
        helper.expect("ready");
        let arena = join(&domain, "arena");
        let mut senders: Vec<_> =
            (0..600 + mix(kill) % 500).map(|_| arena.open(StoreKernel::Cached).unwrap()).collect();
        let mut first = senders.swap_remove(0);
        std::thread::scope(|scope| {
            let asleep = scope.spawn(move || {
                while first.sleeper.sleep(WATCHDOG, || false) != Slept::PeerGone {}
                first.peer.departure()
            });
            helper.kill();
            assert_eq!(asleep.join().unwrap(), Some(Departure::Died));
        });
        for sender in &mut senders {
            wait_until(|| !sender.peer.is_alive());
            // The memory is still mapped: stores go nowhere, but they go.
            sender.store.store_line(0, &[1; 8]);
            sender.store.wake_receiver();
        }
        assert!(arena.open(StoreKernel::Cached).is_err());
    }
}
