//! What a client of an arena makes its owner keep and do that takes nothing of what it is told, or returns much at once.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use beeline_domain::{
    Answer, ArenaListener, ArenaOptions, Connection, Domain, Notification, Notifications, Notified, Peer,
    ReceiverParts, Refusal, Reply, Service, offer_windows,
};
use beeline_mmio::{MemoryOptions, SharedMemory};
use harness::{TestFolder, WATCHDOG, wait_until};

const LINES: u32 = 64;
const CREDIT_BYTES: usize = 16384 * 128;
const OPEN: u32 = 1;
const RETURN: u32 = 3;
/// What an owner may have told its client before the client takes something.
const MAX_UNTAKEN: usize = 256;

/// A client that says what it likes.
struct Client {
    connection: Connection,
    told: Notifications,
}

impl Client {
    fn join(domain: &Domain) -> Self {
        let credits = SharedMemory::create("credits", CREDIT_BYTES, MemoryOptions::default()).unwrap();
        let (connection, _) = domain.connect("arena", br#"{"arena":1,"lines":64}"#, &[credits.fd()]).unwrap();
        let told = connection.notifications().unwrap();
        Client { connection, told }
    }

    fn tell(&self, code: u32, name: u32) {
        let message = (u64::from(name) << 32 | u64::from(code)).to_le_bytes();
        // The socket may be full of what the owner has not read.
        while self.connection.tell(&message) == Ok(Notified::WouldBlock) {
            std::thread::yield_now();
        }
    }

    /// The names of the windows that the owner lends when it is asked for some.
    fn ask(&self, lines: u32) -> Vec<u32> {
        let ask = (u64::from(lines) << 32).to_le_bytes();
        let reply = self.connection.call(&ask, &[]).unwrap();
        let (leases, _) = reply.payload[8..].as_chunks::<32>();
        leases.iter().map(|lease| u32::from_le_bytes(lease[..4].try_into().unwrap())).collect()
    }

    /// Opens a window and gives what the owner's program has of it; `None` if the owner ends the connection instead.
    fn open(&self, name: u32, listener: &ArenaListener) -> Option<ReceiverParts> {
        self.tell(OPEN, name);
        loop {
            match listener.accept(Duration::from_millis(20)) {
                None if self.connection.peer().is_alive() => {}
                opened => return opened,
            }
        }
    }

    /// Everything that the owner has told, when it tells nothing more.
    fn take_all(&self) -> Vec<Notification> {
        let next = || self.told.next_within(Duration::from_millis(300)).ok().flatten();
        std::iter::from_fn(next).collect()
    }
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
    let client = Client::join(&theirs);
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
    let told = client.take_all();
    assert!(told.len() >= MAX_UNTAKEN, "only {} were told", told.len());
    let late: Vec<_> = told.iter().filter(|told| told.answers_before >= answers).filter_map(ended).collect();
    assert!(again.iter().all(|name| !late.contains(name)), "{again:?} are open, and ended are {late:?}");
    drop(windows);
    let ends: Vec<_> = client.take_all().iter().filter_map(ended).collect();
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
        let client = Client::join(&theirs);
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
        let told = client.take_all().len();
        assert!(
            told <= MAX_UNTAKEN + WINDOWS as usize + 1,
            "{told} notifications were kept, by guessing: {guesses}"
        );
        drop(client);
        wait_until(|| listener.try_accept().is_none());
    }
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
    let client = Client::join(&theirs);
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
