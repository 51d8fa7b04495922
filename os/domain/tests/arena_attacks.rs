//! What a client of an arena makes its owner keep and do that takes nothing of what it is told, returns much at once, or stores what it
//! likes into the words that the two share.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use beeline_contract_memory::{LoadPort, StorePort};
use beeline_domain::{
    Answer, ArenaListener, ArenaOptions, Departure, Domain, Event, Notification, Peer, Refusal, Reply,
    SenderArena, Service, join_windows, offer_windows,
};
use beeline_mmio::StoreKernel;
use harness::arena::{Client, END, Memory, OPEN, RETURN, RING};
use harness::{TestFolder, WATCHDOG, is_readable, wait_until};

const LINES: u32 = 64;
/// What an owner may have told its client before the client takes something.
const MAX_UNTAKEN: usize = 256;

/// Everything that the owner has told, when it tells nothing more.
fn take_all(client: &Client) -> Vec<Notification> {
    let next = || client.told.next_within(Duration::from_millis(300)).ok().flatten();
    std::iter::from_fn(next).collect()
}

/// The window whose end is told.
fn ended(told: &Notification) -> Option<u32> {
    let word = u64::from_le_bytes(told.payload[..8].try_into().unwrap());
    (word as u32 == 2).then_some((word >> 32) as u32)
}

fn offer(domain: &Domain, windows: u32) -> ArenaListener {
    offer_windows(domain, "arena", ArenaOptions { windows, ..ArenaOptions::default() }).unwrap()
}

#[test]
fn end_that_was_not_told_in_time_is_not_the_end_of_the_next_window_of_the_name() {
    let folder = TestFolder::new();
    let (domain, theirs) = (folder.open(), folder.open());
    let listener = offer(&domain, 600);
    let mut client = Client::join(&theirs);
    let mut names = Vec::new();
    while names.len() < 2 * MAX_UNTAKEN {
        names.extend(client.ask(LINES));
    }
    let receivers: Vec<_> = names.iter().map(|name| client.open(*name, &listener).unwrap()).collect();
    // More ends than may be told.
    drop(receivers);
    names.iter().for_each(|name| client.tell(RETURN, *name));
    let mut answers = names.len().div_ceil(16) as u64 + 1;
    let again = client.ask(LINES);
    answers += 1;
    let windows: Vec<_> = again.iter().map(|name| client.open(*name, &listener).unwrap()).collect();
    let told = take_all(&client);
    assert!(told.len() >= MAX_UNTAKEN, "only {} were told", told.len());
    let late: Vec<_> = told.iter().filter(|told| told.answers_before >= answers).filter_map(ended).collect();
    assert!(again.iter().all(|name| !late.contains(name)), "{again:?} are open, and ended are {late:?}");
    drop(windows);
    let ends: Vec<_> = take_all(&client).iter().filter_map(ended).collect();
    assert!(again.iter().all(|name| ends.contains(name)), "{again:?}, and ended are {ends:?}");
}

/// Whatever a client opens and returns, what waits for it at the owner is no more than an end for each window.
#[test]
fn client_that_takes_nothing_makes_its_owner_keep_no_more_than_its_windows() {
    const WINDOWS: u32 = 64;
    let folder = TestFolder::new();
    let (domain, theirs) = (folder.open(), folder.open());
    let listener = offer(&domain, WINDOWS);
    for guesses in [false, true] {
        let mut client = Client::join(&theirs);
        for _ in 0..200 {
            // Names begin at 1, so they need not be told to be known.
            let names = if guesses { (1..=16).collect() } else { client.ask(LINES) };
            let Some(receiver) = client.open(names[0], &listener) else { break };
            drop(receiver);
            client.tell(RETURN, names[0]);
            for name in &names[1..] {
                let Some(receiver) = client.open(*name, &listener) else { break };
                drop(receiver);
                client.tell(RETURN, *name);
            }
        }
        let told = take_all(&client).len();
        assert!(
            told <= MAX_UNTAKEN + WINDOWS as usize + 1,
            "{told} notifications were kept, by guessing: {guesses}"
        );
        drop(client);
        wait_until(|| listener.try_accept().is_none());
    }
}

/// A client that joins, opens a window and goes, over and over, is refused before long, until its windows are accepted.
#[test]
fn windows_of_clients_that_have_gone_are_bounded_and_their_process_is_served_again_when_they_are_accepted() {
    /// Of the 64 clients that there may be at a time, a process may be as many.
    const SHARE: usize = 4;
    let folder = TestFolder::new();
    let (domain, theirs) = (folder.open(), folder.open());
    let listener = offer(&domain, 100);
    let mut kept = Vec::new();
    for round in 0..3 {
        let mut opened = 0;
        let refused = loop {
            let mut memory = Memory::new();
            let connection = match memory.try_join(&theirs) {
                Ok(connection) => connection,
                Err(error) => break error.to_string(),
            };
            connection.call(&(u64::from(LINES) << 32).to_le_bytes(), &[]).unwrap();
            memory.tell_word(1 << 32 | u64::from(OPEN));
            opened += 1;
            assert!(opened < 2 * SHARE, "{opened} were let in");
        };
        assert!(opened >= SHARE, "{opened} were let in in round {round}");
        let reason = format!("whose windows wait to be accepted process {} has {SHARE}", std::process::id());
        assert!(refused.contains(&reason), "{refused}");
        let windows: Vec<_> = std::iter::from_fn(|| listener.try_accept()).collect();
        assert_eq!(windows.len(), opened);
        // Those that the program has accepted are its own, and count no more.
        kept.extend(windows);
    }
    drop(kept);
}

/// Has a worker do its first request until the test goes on. One work of a process is under way at a time.
struct Holding {
    held: Sender<()>,
    go_on: Option<Receiver<()>>,
}

impl Service for Holding {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let (held, go_on) = (self.held.clone(), self.go_on.take().unwrap());
        Ok(Answer::later(move |_| {
            held.send(()).unwrap();
            go_on.recv_timeout(WATCHDOG).unwrap();
            Ok(Reply::default())
        }))
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::default().into())
    }

    fn departed(&mut self, _: &Peer) {}
}

/// All pages of an arena are those of large windows that were returned: to give them back takes as long as they are many.
#[test]
fn small_window_that_needs_the_pages_of_returned_ones_is_lent_by_a_worker() {
    const LARGE: u32 = 256;
    let folder = TestFolder::new();
    let (domain, theirs) = (folder.open(), folder.open());
    let options = ArenaOptions { bytes: 8 * LARGE as usize * 64, ..ArenaOptions::default() };
    let listener = offer_windows(&domain, "arena", options).unwrap();
    let mut client = Client::join(&theirs);
    let names: Vec<u32> = (0..8).flat_map(|_| client.ask(LARGE)).collect();
    for name in &names {
        drop(client.open(*name, &listener).unwrap());
        client.tell(RETURN, *name);
    }
    let ((held, is_held), (go_on, told)) = (channel(), channel());
    let _offer = domain.offer("holding", Box::new(Holding { held, go_on: Some(told) })).unwrap();
    let (answered, is_answered) = channel();
    std::thread::scope(|scope| {
        let holding = scope.spawn(|| theirs.connect("holding", b"", &[]).map(drop));
        is_held.recv_timeout(WATCHDOG).unwrap();
        scope.spawn(|| answered.send(client.ask(LINES)).unwrap());
        let early = is_answered.recv_timeout(Duration::from_millis(200));
        go_on.send(()).unwrap();
        assert!(early.is_err(), "{early:?} were lent by the thread that watches");
        assert!(!is_answered.recv_timeout(WATCHDOG).unwrap().is_empty());
        holding.join().unwrap().unwrap();
    });
}

/// What the owner's program gets of an honest client, whatever another one does.
fn pass_a_window(arena: &SenderArena, listener: &ArenaListener, value: u64) {
    let mut sender = arena.open(StoreKernel::Cached).unwrap();
    sender.store.store_word(0, 0, value);
    drop(sender);
    let receiver = listener.accept(WATCHDOG).unwrap();
    assert_eq!((receiver.load.load_word(0, 0), receiver.peer.is_alive()), (value, false));
}

#[test]
fn counts_and_entries_of_no_honest_client_end_its_connection_alone() {
    let folder = TestFolder::new();
    let (domain, theirs, honest) = (folder.open(), folder.open(), folder.open());
    let options = ArenaOptions { clients: 1024, ..ArenaOptions::default() };
    let listener = offer_windows(&domain, "arena", options).unwrap();
    let arena = join_windows(&honest, "arena", LINES).unwrap();
    let attacks: [fn(&mut Client); 7] = [
        |client| client.memory.count(0),
        |client| client.memory.count(u64::MAX),
        |client| client.memory.count(1 << 63),
        |client| client.memory.count(client.memory.told() + RING + 1),
        // Entries that were never stored.
        |client| client.memory.count(client.memory.told() + RING),
        |client| client.memory.tell_word(0),
        |client| client.memory.tell_word(u64::MAX),
    ];
    for (value, attack) in (1..).zip(attacks) {
        for is_polled in [false, true] {
            let mut client = Client::join(&theirs);
            let name = client.ask(LINES)[0];
            let receiver = client.open(name, &listener).unwrap();
            attack(&mut client);
            if is_polled {
                // Whoever looks first finds it.
                assert!(listener.try_accept().is_none());
            } else {
                client.ring();
            }
            wait_until(|| !client.connection.peer().is_alive() && !receiver.peer.is_alive());
            pass_a_window(&arena, &listener, value);
        }
    }
}

#[test]
fn end_that_a_client_takes_back_is_an_end() {
    let folder = TestFolder::new();
    let (domain, theirs) = (folder.open(), folder.open());
    let listener = offer(&domain, 100);
    let mut client = Client::join(&theirs);
    let name = client.ask(LINES)[0];
    let receiver = client.open(name, &listener).unwrap();
    assert!(receiver.peer.is_surely_alive());
    client.memory.set_ended(name, u64::MAX);
    assert!(!receiver.peer.is_surely_alive() && !receiver.peer.is_alive());
    client.memory.set_ended(name, 0);
    assert!(!receiver.peer.is_surely_alive() && !receiver.peer.is_alive());
    assert_eq!(receiver.peer.departure(), Some(Departure::Closed));
    // The account still has it open, as the client has not said otherwise.
    client.tell(END, name);
    client.tell(RETURN, name);
    drop(receiver);
    drop(client.open(client.ask(LINES)[0], &listener).unwrap());
    assert!(client.connection.peer().is_alive());
}

/// A client that stores into its flag all the time keeps nobody from hearing of the windows of another one.
#[test]
fn client_that_storms_its_flag_delays_no_window_of_another() {
    let folder = TestFolder::new();
    let (domain, theirs, honest) = (folder.open(), folder.open(), folder.open());
    let listener = offer(&domain, 100);
    let event = Event::new().unwrap();
    let arena = join_windows(&honest, "arena", LINES).unwrap();
    let mut client = Client::join(&theirs);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (waiting, is_over) = (client.memory.waiting(), &is_over);
        scope.spawn(move || {
            for value in [0, u32::MAX, 0x0100_0001, 0x0200_0002, 1, 0x0300_0003].into_iter().cycle() {
                waiting.store(value);
                waiting.wake(1);
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        for value in 1..100 {
            pass_a_window(&arena, &listener, value);
        }
        listener.signal(Some(&event));
        // Kept, so that nothing but the window that is opened has the owner's domain look.
        let mut kept = Vec::new();
        for value in 100..120 {
            event.clear();
            let mut sender = arena.open(StoreKernel::Cached).unwrap();
            assert!(is_readable(&event, WATCHDOG), "{value}");
            sender.store.store_word(0, 0, value);
            let receiver = listener.try_accept().unwrap();
            assert_eq!(receiver.load.load_word(0, 0), value);
            kept.push((sender, receiver));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let name = client.ask(LINES)[0];
    assert!(client.open(name, &listener).is_some(), "it harmed nobody but itself");
}
