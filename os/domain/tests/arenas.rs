//! Windows in an arena: what each half sees, when one is lent anew, and what a hostile side gets.
//!
//! Both sides are in the test's process here; `arena_processes.rs` has two.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use beeline_contract_memory::{CreditSink, CreditSource, LoadPort, StorePort};
use beeline_domain::{
    Answer, ArenaListener, ArenaOptions, Connection, Departure, Domain, Event, Notified, Peer, ReceiverParts,
    Refusal, Reply, SenderArena, SenderParts, Service, Slept, WindowError, join_windows, listen_all,
    offer_windows,
};
use beeline_mmio::{MemoryOptions, SharedMemory, StoreKernel};
use harness::arena::{CLIENT_BYTES, Client, END, HELLO, OPEN, RETURN};
use harness::held::Held;
use harness::{TestFolder, WATCHDOG, is_readable, wait_until};

const LINES: u32 = 64;

fn options(windows: u32) -> ArenaOptions {
    ArenaOptions { lines: 1024, windows, bytes: 64 << 20, ..ArenaOptions::default() }
}

fn offer(domain: &Domain, windows: u32) -> ArenaListener {
    offer_windows(domain, "arena", options(windows)).unwrap()
}

fn join(domain: &Domain) -> SenderArena {
    join_windows(domain, "arena", LINES).unwrap()
}

fn open(arena: &SenderArena) -> SenderParts {
    arena.open(StoreKernel::Cached).unwrap()
}

fn accept(listener: &ArenaListener) -> ReceiverParts {
    listener.accept(WATCHDOG).unwrap()
}

fn is_blank(receiver: &mut ReceiverParts) -> bool {
    (0..receiver.load.lines()).all(|line| receiver.load.load_line(line) == [receiver.blank; 8])
}

#[test]
fn window_is_blank_and_shared_and_ends_by_itself() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = offer(&domain, 100);
    assert!(listener.try_accept().is_none());
    let arena = join(&domain);
    let mut windows: Vec<_> = (0..3).map(|_| (open(&arena), accept(&listener))).collect();
    for (sender, receiver) in &mut windows {
        assert_eq!((sender.blank, sender.epoch), (receiver.blank, receiver.epoch));
        assert_eq!((sender.store.lines(), receiver.load.lines()), (LINES, LINES));
        assert_eq!(receiver.kernel, Some(StoreKernel::Cached));
        assert!(is_blank(receiver));
        sender.store.store_line(5, &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(receiver.load.load_line(5), [1, 2, 3, 4, 5, 6, 7, 8]);
        receiver.sink.publish(12);
        assert_eq!(sender.credits.freed_lines(), 12);
    }
    let blanks: BTreeSet<_> = windows.iter().map(|(sender, _)| sender.blank).collect();
    assert_eq!(blanks.len(), 3, "each has a blank of its own");
    let (first, first_receiver) = windows.remove(0);
    drop(first);
    wait_until(|| !first_receiver.peer.is_alive());
    assert_eq!(first_receiver.peer.departure(), Some(Departure::Closed));
    let (second, second_receiver) = windows.remove(0);
    drop(second_receiver);
    wait_until(|| !second.peer.is_alive());
    assert!(!second.peer.is_surely_alive());
    let (third, third_receiver) = &windows[0];
    assert!(third.peer.is_alive() && third_receiver.peer.is_alive() && arena.peer().is_alive());
    assert!(third.peer.is_surely_alive() && arena.peer().is_surely_alive());
    // What ends a window on one side alone.
    third.peer.disconnect();
    wait_until(|| !third_receiver.peer.is_alive());
    let (fourth, fourth_receiver) = (open(&arena), accept(&listener));
    fourth_receiver.peer.disconnect();
    wait_until(|| !fourth.peer.is_alive());
    assert!(arena.peer().is_alive());
}

#[test]
fn windows_of_other_sizes_are_opened_when_asked_for() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = offer(&domain, 100);
    let arena = join(&domain);
    for lines in [2, 64, 128, 512, 1024] {
        let sender = arena.open_sized(lines, StoreKernel::Cached).unwrap();
        let mut receiver = accept(&listener);
        assert_eq!((sender.store.lines(), receiver.load.lines()), (lines, lines));
        assert!(is_blank(&mut receiver));
    }
    for lines in [0, 3, 2048, 1 << 25] {
        assert!(arena.open_sized(lines, StoreKernel::Cached).is_err());
        assert!(join_windows(&domain, "arena", lines).is_err());
    }
    let large = join_windows(&domain, "arena", 1024).unwrap();
    let mut sender = open(&large);
    sender.store.store_word(1023, 7, 1);
    assert_eq!(accept(&listener).load.load_word(1023, 7), 1);
}

/// What opens and ends a window are stores: the domain's thread may be doing something else.
#[test]
fn window_is_opened_and_ended_while_the_thread_of_the_owners_domain_is_held() {
    let folder = TestFolder::new();
    let (domain, theirs) = (folder.open(), folder.open());
    let listener = offer(&domain, 100);
    let arena = join(&theirs);
    drop((open(&arena), accept(&listener)));
    let held = Held::new(&domain, folder.open());
    let begun = Instant::now();
    for value in 1..=20 {
        std::thread::scope(|scope| {
            let accepting = scope.spawn(|| {
                let mut receiver = accept(&listener);
                while receiver.sleeper.sleep(WATCHDOG, || false) != Slept::PeerGone {}
                receiver.load.load_word(0, 0)
            });
            let mut sender = open(&arena);
            sender.store.store_word(0, 0, value);
            std::thread::sleep(Duration::from_millis(value));
            drop(sender);
            assert_eq!(accepting.join().unwrap(), value);
        });
    }
    // One that is not woken looks again after a second.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    held.go_on();
}

#[test]
fn event_is_signalled_by_a_client_that_joins_after_it_was_given() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = offer(&domain, 100);
    let event = Event::new().unwrap();
    event.clear();
    listener.signal(Some(&event));
    let arena = join(&domain);
    let sender = open(&arena);
    assert!(is_readable(&event, WATCHDOG));
    assert!(listener.has_opened());
    drop((sender, accept(&listener)));
    listener.signal(None);
    event.clear();
    let _sender = open(&arena);
    assert!(listener.try_accept().is_some() && !is_readable(&event, Duration::ZERO));
}

/// Whoever sleeps for the windows of all clients sleeps for those of one that was not there yet, too.
#[test]
fn thread_that_accepts_is_woken_by_a_client_that_joins_later() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = offer_windows(&domain, "arena", ArenaOptions { clients: 1024, ..options(100) }).unwrap();
    let begun = Instant::now();
    for _ in 0..15 {
        std::thread::scope(|scope| {
            let accepting = scope.spawn(|| accept(&listener));
            std::thread::sleep(Duration::from_millis(10));
            let _sender = open(&join(&domain));
            accepting.join().unwrap();
        });
    }
    // One that is not woken looks again after a second.
    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
}

/// One of the threads that accept sleeps for all; when it gives up, another one does.
#[test]
fn thread_that_accepts_for_longer_than_the_one_that_sleeps_is_woken() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = offer(&domain, 100);
    let arena = join(&domain);
    let begun = Instant::now();
    for _ in 0..15 {
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(listener.accept(Duration::from_millis(20)).is_none()));
            std::thread::sleep(Duration::from_millis(5));
            let accepting = scope.spawn(|| accept(&listener));
            std::thread::sleep(Duration::from_millis(30));
            let _sender = open(&arena);
            accepting.join().unwrap();
        });
    }
    // One that is not woken looks again after a second.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// What was sent before a window was given up is there for whoever accepts it afterwards.
#[test]
fn message_of_a_sender_that_has_gone_is_still_there() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = offer(&domain, 100);
    let arena = join(&domain);
    for value in 1..=50 {
        open(&arena).store.store_word(0, 0, value);
    }
    drop(arena);
    for value in 1..=50 {
        let receiver = accept(&listener);
        assert_eq!(receiver.load.load_word(0, 0), value);
        wait_until(|| !receiver.peer.is_alive());
    }
}

/// A window that any handle of either side is left of is not lent anew, so nothing that is stored through it reaches another one.
#[test]
fn window_is_lent_anew_only_when_no_handle_of_it_is_left() {
    const WINDOWS: u32 = 8;
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = offer(&domain, WINDOWS);
    let arena = join(&domain);
    let SenderParts { store: mut late_store, credits, sleeper, .. } = open(&arena);
    drop((credits, sleeper));
    drop(accept(&listener));
    let (early, ReceiverParts { load: mut late_load, .. }) = (open(&arena), accept(&listener));
    drop(early);
    for round in 0..30 {
        let mut windows = Vec::new();
        for _ in 0..WINDOWS - 2 {
            windows.push((open(&arena), accept(&listener)));
        }
        let full = arena.open(StoreKernel::Cached).unwrap_err().to_string();
        assert!(full.contains("as many windows as it may have"), "{full}");
        for line in 0..LINES {
            late_store.store_line(line, &[round; 8]);
            late_load.blank_line(line, 1 << 63 | 0xabc);
        }
        assert!(windows.iter_mut().all(|(_, receiver)| is_blank(receiver)));
        for (sender, _) in &mut windows {
            sender.store.store_word(0, 0, 1);
        }
    }
    drop((late_store, late_load));
    let windows: Vec<_> = (0..WINDOWS).map(|_| (open(&arena), accept(&listener))).collect();
    drop(windows);
}

#[test]
fn client_that_opens_and_never_closes_takes_only_its_arena() {
    let folder = TestFolder::new();
    let (domain, other) = (folder.open(), folder.open());
    let options = ArenaOptions { lines: LINES, windows: 1000, bytes: 100 * 4096, ..ArenaOptions::default() };
    let listener = offer_windows(&domain, "arena", options).unwrap();
    let (greedy, modest) = (join(&other), join(&domain));
    let opened: Vec<_> = (0..100).map(|_| open(&greedy)).collect();
    let full = greedy.open(StoreKernel::Cached).unwrap_err().to_string();
    assert!(full.contains("no 4096 bytes together: 0 bytes are free"), "{full}");
    assert_eq!((0..100).filter(|_| listener.accept(WATCHDOG).is_some()).count(), 100);
    drop(open(&modest));
    assert!(listener.accept(WATCHDOG).is_some());
    drop(opened);
    wait_until(|| greedy.open(StoreKernel::Cached).is_ok());
    // A process is one of sixteen clients at most.
    let joined: Vec<_> = (0..64).map_while(|_| join_windows(&domain, "arena", LINES).ok()).collect();
    assert!(joined.len() < 4, "{}", joined.len());
}

#[test]
fn whoever_sleeps_for_a_window_is_woken_by_its_end_and_by_credits() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = offer(&domain, 100);
    let arena = join(&domain);
    let ((mut one, mut one_receiver), (mut other, other_receiver)) =
        ((open(&arena), accept(&listener)), (open(&arena), accept(&listener)));
    std::thread::scope(|scope| {
        let credits = &mut one.credits;
        let woken = scope.spawn(move || {
            while credits.freed_lines() < 3 {
                one.sleeper.sleep(WATCHDOG, || credits.freed_lines() >= 3);
            }
        });
        let ended = scope.spawn(move || while other.sleeper.sleep(WATCHDOG, || false) != Slept::PeerGone {});
        one_receiver.sink.publish(3);
        drop(other_receiver);
        woken.join().unwrap();
        ended.join().unwrap();
    });
    assert!(arena.peer().is_alive());
}

/// The wake-ups of windows are packets of one connection. Those that find no room are sent later, each by its name.
#[test]
fn every_window_that_waits_by_descriptor_is_signalled() {
    const WINDOWS: usize = 1000;
    let folder = TestFolder::new();
    let (domain, theirs) = (folder.open(), folder.open());
    let listener = offer(&domain, 2000);
    let arena = join(&theirs);
    let mut windows: Vec<_> = (0..WINDOWS).map(|_| (open(&arena), accept(&listener))).collect();
    let events: Vec<_> = (0..WINDOWS).map(|_| Event::new().unwrap()).collect();
    for ((_, receiver), event) in windows.iter_mut().zip(&events) {
        event.clear();
        receiver.sleeper.announce(event);
    }
    listen_all(windows.iter().map(|(_, receiver)| &receiver.sleeper));
    let held = Held::new(&domain, folder.open());
    let left_out = 7;
    for (index, (sender, _)) in windows.iter_mut().enumerate() {
        if index != left_out {
            sender.store.wake_receiver();
        }
    }
    assert!(!is_readable(&events[0], Duration::ZERO), "the thread that signals is held");
    held.go_on();
    for (index, event) in events.iter().enumerate() {
        if index != left_out {
            assert!(is_readable(event, WATCHDOG), "{index}");
        }
    }
    assert!(!is_readable(&events[left_out], Duration::ZERO), "nobody woke it");
    // The end of the connection is the end of each.
    domain_ends(windows, &events[left_out], arena);
}

fn domain_ends(windows: Vec<(SenderParts, ReceiverParts)>, event: &Event, arena: SenderArena) {
    // Not a window's own end: the senders keep their halves.
    arena.peer().disconnect();
    assert!(is_readable(event, WATCHDOG));
    let has_ended = |receiver: &ReceiverParts| receiver.peer.departure() == Some(Departure::Closed);
    wait_until(|| windows.iter().all(|(_, receiver)| has_ended(receiver)));
    drop(arena);
}

#[test]
fn listener_may_go_before_its_windows() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let listener = offer(&domain, 100);
    let arena = join(&domain);
    let (mut sender, mut receiver) = (open(&arena), accept(&listener));
    let event = Event::new().unwrap();
    event.clear();
    listener.signal(Some(&event));
    let waiting = open(&arena);
    assert!(is_readable(&event, WATCHDOG), "it waits to be accepted");
    drop(listener);
    wait_until(|| !waiting.peer.is_alive());
    let unwanted = open(&arena);
    wait_until(|| !unwanted.peer.is_alive());
    receiver.sink.publish(3);
    assert_eq!(sender.credits.freed_lines(), 3);
    sender.store.store_word(0, 0, 1);
    assert!(offer_windows(&domain, "arena", options(1)).is_err(), "the name is still taken");
    drop(receiver);
    wait_until(|| !arena.peer().is_alive());
    assert!(arena.open(StoreKernel::Cached).is_err());
    let _next = offer(&domain, 1);
}

/// Notifications of ends that the client has not taken wait at the owner, and all come.
#[test]
fn ends_of_more_windows_than_may_be_told_at_once_are_all_told() {
    let folder = TestFolder::new();
    let (domain, theirs) = (folder.open(), folder.open());
    let listener = offer(&domain, 2000);
    let arena = join(&theirs);
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..1000).map(|_| (open(&arena), accept(&listener))).unzip();
    let held = Held::new(&theirs, folder.open());
    drop(receivers);
    assert!(senders.iter().all(|sender| sender.peer.is_alive()));
    held.go_on();
    wait_until(|| senders.iter().all(|sender| !sender.peer.is_alive()));
    drop(senders);
    drop((open(&arena), accept(&listener)));
}

/// What a client of an arena says at first, with memory for its credits.
fn hello(
    domain: &Domain,
    bytes: usize,
    request: &[u8],
) -> Result<(Connection, Reply), beeline_domain::ConnectError> {
    let memory = SharedMemory::create("credits", bytes, MemoryOptions::default()).unwrap();
    domain.connect("arena", request, &[memory.fd()])
}

fn word(code: u32, name: u32) -> [u8; 8] {
    (u64::from(name) << 32 | u64::from(code)).to_le_bytes()
}

#[test]
fn hostile_clients_lose_their_connection_and_nobody_else_anything() {
    let folder = TestFolder::new();
    let options = ArenaOptions { clients: 1024, ..options(100) };
    let domain = folder.open();
    let listener = offer_windows(&domain, "arena", options).unwrap();
    let arena = join(&domain);
    let (mut sender, mut receiver) = (open(&arena), accept(&listener));
    for (bytes, request) in [
        (4096, HELLO),
        (CLIENT_BYTES * 2, HELLO),
        (CLIENT_BYTES, b"" as &[u8]),
        (CLIENT_BYTES, br#"{"arena":1,"lines":64}"#),
        (CLIENT_BYTES, br#"{"arena":2,"lines":63}"#),
        (CLIENT_BYTES, br#"{"arena":2,"lines":2048}"#),
    ] {
        assert!(hello(&domain, bytes, request).is_err());
    }
    assert!(domain.connect("arena", HELLO, &[]).is_err());
    // Open what was never lent, end what is not open, return twice, say nothing that is anything.
    let lent = || {
        let client = Client::join(&domain);
        let name = client.ask(LINES)[0];
        (client, name)
    };
    for words in [
        &[(OPEN, 9999)][..],
        &[(OPEN, 0)],
        &[(END, 1)],
        &[(RETURN, 1)],
        &[(9, 1)],
        &[(OPEN, 1), (OPEN, 1)],
        &[(OPEN, 1), (END, 1), (END, 1)],
        &[(OPEN, 1), (RETURN, 1), (RETURN, 1)],
        &[(OPEN, 1), (RETURN, 1), (END, 1)],
    ] {
        let (mut client, name) = lent();
        for (code, said) in words {
            client.tell(*code, if *said == 1 { name } else { *said });
        }
        wait_until(|| !client.connection.peer().is_alive());
    }
    let (client, _) = lent();
    let _ = client.connection.tell(&word(OPEN, 1));
    wait_until(|| !client.connection.peer().is_alive());
    let (Client { connection, memory: _memory, .. }, _) = lent();
    for ask in [&b""[..], &word(1, LINES), &word(0, 3), &word(0, 2048), &[0; 100]] {
        assert!(connection.call(ask, &[]).is_err());
    }
    assert!(connection.call(&word(0, LINES), &[connection_fd().as_fd()]).is_err());
    assert!(connection.peer().is_alive(), "a request is refused");
    assert_eq!(connection.tell(&[0; 4097]).ok(), None);
    sender.store.store_word(0, 0, 5);
    assert_eq!(receiver.load.load_word(0, 0), 5);
    receiver.sink.publish(1);
    assert_eq!(sender.credits.freed_lines(), 1);
}

fn connection_fd() -> OwnedFd {
    tempfile::tempfile().unwrap().into()
}

/// Lends what it is told to.
struct Lending {
    bytes: usize,
    first: Vec<u8>,
    notes: Vec<Vec<u8>>,
    heard: Option<Sender<()>>,
}

impl Service for Lending {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let memory = SharedMemory::create("arena", (1 << 20) + self.bytes, MemoryOptions::default()).unwrap();
        let fd = memory.fd().try_clone_to_owned().unwrap();
        let payload = format!(r#"{{"bytes":{},"lines":64}}"#, self.bytes).into_bytes();
        Ok(Reply { payload, fds: vec![fd] }.into())
    }

    fn requested(&mut self, peer: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        for note in &self.notes {
            let _ = peer.notify(note, &[]).is_ok_and(|told| told == Notified::Accepted);
        }
        Ok(Reply::new(self.first.clone()).into())
    }

    fn heard(&mut self, _: &Peer) {
        if let Some(heard) = &self.heard {
            heard.send(()).unwrap();
        }
    }

    fn departed(&mut self, _: &Peer) {}
}

fn lease(name: u32, lines: u32, offset: u64, blank: u64) -> Vec<u8> {
    let words = [1, u64::from(lines) << 32 | u64::from(name), offset, blank, 7];
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

const BLANK: u64 = 1 << 63 | 5;
const START: u64 = 1 << 20;

fn lending(domain: &Domain, first: Vec<u8>, notes: Vec<Vec<u8>>) -> Result<SenderParts, WindowError> {
    let _offer =
        domain.offer("arena", Box::new(Lending { bytes: 16 * 4096, first, notes, heard: None })).unwrap();
    let arena = join(domain);
    let opened = arena.open(StoreKernel::Cached);
    if opened.is_err() {
        wait_until(|| !arena.peer().is_alive());
    }
    opened
}

#[test]
fn hostile_owners_lend_nothing_outside_and_nothing_twice() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let good = || lease(1, LINES, START, BLANK);
    lending(&domain, good(), vec![]).unwrap().store.store_line(63, &[1; 8]);
    for bad in [
        lease(1, LINES, 0, BLANK),
        lease(1, LINES, START - 4096, BLANK),
        lease(1, LINES, START + 64, BLANK),
        lease(1, LINES, START + 16 * 4096, BLANK),
        lease(1, LINES, u64::MAX - 4095, BLANK),
        lease(1, 2048, START, BLANK),
        lease(1, 63, START, BLANK),
        lease(1, LINES, START, 5),
    ] {
        let error = lending(&domain, bad.clone(), vec![]).unwrap_err();
        assert!(matches!(error, WindowError::Malformed { .. }), "{error}");
        assert!(lending(&domain, good(), vec![bad]).is_err(), "it comes as a notification");
    }
    for overlapping in [lease(2, LINES, START, BLANK), lease(1, LINES, START + 4096, BLANK)] {
        assert!(lending(&domain, good(), vec![overlapping]).is_err());
    }
    for answer in [
        vec![],
        word(2, 1).to_vec(),
        word(1, 0).to_vec(),
        lease(0, LINES, START, BLANK),
        lease(1, LINES / 2, START, BLANK),
        vec![0xff; 40],
    ] {
        let _offer = domain
            .offer("arena", Box::new(Lending { bytes: 4096, first: answer, notes: vec![], heard: None }))
            .unwrap();
        assert!(join(&domain).open(StoreKernel::Cached).is_err());
    }
    // Ends of windows that are not there are the end of a window that this side has just given up.
    lending(&domain, good(), vec![word(2, 77).to_vec()]).unwrap();
}

/// The owner may have no half of it any more, and does not tell an end to a sender that has ended.
#[test]
fn window_that_is_returned_after_its_sender_ended_it_rings() {
    let folder = TestFolder::new();
    let (domain, theirs) = (folder.open(), folder.open());
    let (heard, rung) = channel();
    let first = lease(1, LINES, START, BLANK);
    let lending = Lending { bytes: 16 * 4096, first, notes: Vec::new(), heard: Some(heard) };
    let _offer = domain.offer("arena", Box::new(lending)).unwrap();
    let arena = join(&theirs);
    let sender = arena.open(StoreKernel::Cached).unwrap();
    // What it was asked before.
    while rung.recv_timeout(Duration::from_millis(300)).is_ok() {}
    sender.peer.disconnect();
    assert!(rung.recv_timeout(Duration::from_millis(100)).is_err(), "its receiver looks");
    drop(sender);
    assert!(rung.recv_timeout(WATCHDOG).is_ok());
}
