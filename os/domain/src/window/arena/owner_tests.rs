//! What the domain's thread does of what a client has told, and what it leaves to others.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::super::tells::Teller;
use super::*;
use crate::peer::tests::{hold_notifications, peer_with_socket};

const LINES: u32 = 64;
/// More than any of this takes.
const LONG: Duration = Duration::from_secs(20);

/// An arena whose client is this test.
pub(in crate::window::arena) struct Told {
    pub arena: Arc<OwnedArena>,
    pub queue: Arc<Openings>,
    disposer: Disposer,
    ring: TellRing,
    teller: Teller,
    _socket: OwnedFd,
}

impl Told {
    pub fn new() -> Self {
        let (peer, socket) = peer_with_socket();
        let memory = SharedMemory::create("credits", CLIENT_BYTES, MemoryOptions::default()).unwrap();
        let ring = TellRing::of(&memory.map_sparse().unwrap());
        let credits = memory.fd().try_clone_to_owned().unwrap();
        let (queue, disposer, options) =
            (Arc::new(Queue::new()), Disposer::default(), ArenaOptions::default());
        let made = OwnedArena::make(&peer, "told", &options, LINES, credits, &queue, &disposer);
        Told { arena: made.unwrap().0, queue, disposer, ring, teller: Teller::default(), _socket: socket }
    }

    /// Is lent so many windows, and opens them.
    pub fn open(&mut self, windows: u32) {
        for lease in self.arena.lend(LINES, windows, Some(&Unpaced)).unwrap() {
            self.teller.tell(&self.ring, Tell::Open { name: lease.name, kernel: None }.encode());
        }
    }

    fn heard(&self) -> u64 {
        self.arena.heard.load(Ordering::Relaxed)
    }

    /// Waits until the disposer has done what it was given before.
    fn dispose_all(&self) {
        let (done, is_done) = channel::<()>();
        self.disposer.dispose(done);
        assert!(is_done.recv_timeout(LONG).is_err());
    }
}

/// Keeps the disposer from what comes after it until the test goes on.
struct Holding(Receiver<()>);

impl Drop for Holding {
    fn drop(&mut self) {
        let _ = self.0.recv_timeout(LONG);
    }
}

#[test]
fn thread_of_the_domain_hears_a_piece_at_a_time() {
    let mut told = Told::new();
    told.open(5 * PIECE as u32);
    let (go_on, held) = channel();
    told.disposer.dispose(Holding(held));
    assert!(told.arena.asked_at_once(LINES).is_none(), "a worker hears the rest");
    assert_eq!(told.heard(), PIECE);
    told.arena.packet_came();
    assert_eq!(told.heard(), 2 * PIECE);
    told.arena.end();
    assert_eq!(told.heard(), 3 * PIECE);
    go_on.send(()).unwrap();
    told.dispose_all();
    assert_eq!(told.heard(), 5 * PIECE);
    assert!(told.arena.is_deaf.load(Ordering::Relaxed));
}

#[test]
fn little_that_was_told_is_heard_by_the_thread_of_the_domain() {
    let mut told = Told::new();
    told.open(3);
    let (_go_on, held) = channel::<()>();
    told.disposer.dispose(Holding(held));
    assert!(told.arena.asked_at_once(LINES).unwrap().is_ok());
    assert_eq!(told.heard(), 3);
    told.open(3);
    told.arena.packet_came();
    assert_eq!(told.heard(), 6);
    told.open(3);
    told.arena.end();
    assert_eq!(told.heard(), 9);
    assert!(told.arena.is_deaf.load(Ordering::Relaxed));
}

/// A thread that hears and is kept from going on, after it has looked for the last time.
#[test]
fn thread_of_the_domain_waits_for_nobody_who_hears_and_nothing_told_is_lost() {
    for does_end in [false, true] {
        let mut told = Told::new();
        told.open(3);
        let hearing = told.arena.hearer.lock().unwrap();
        let (done, is_done) = channel();
        let arena = Arc::clone(&told.arena);
        let domain = std::thread::spawn(move || {
            let is_answered = arena.asked_at_once(LINES).is_some();
            arena.packet_came();
            if does_end {
                arena.end();
            }
            done.send(is_answered).unwrap();
        });
        let is_answered = is_done.recv_timeout(LONG);
        assert_eq!(told.heard(), 0);
        drop(hearing);
        domain.join().unwrap();
        assert_eq!(is_answered, Ok(false), "it waited, or answered without what was told before");
        told.dispose_all();
        assert_eq!(told.heard(), 3);
        let next = || told.queue.take(Some(Instant::now()));
        assert_eq!(std::iter::from_fn(next).count(), 3);
        assert_eq!(told.arena.is_deaf.load(Ordering::Relaxed), does_end);
    }
}

/// Another process may have the memory of a client that has gone, and go on telling; a thread may have begun to hear it before.
#[test]
fn window_that_is_opened_after_its_client_was_heard_for_the_last_time_does_not_wait() {
    let mut told = Told::new();
    told.open(1);
    assert!(!told.arena.hear_at_once() && told.arena.waits().strong_count() == 2);
    told.open(1);
    told.arena.lock().end();
    assert!(!told.arena.hear_at_once());
    assert!(told.queue.try_take().is_some() && told.queue.try_take().is_none());
    assert_eq!(told.arena.waits().strong_count(), 0);
}

/// Waits until a thread is inside the system call that tells the client, or about to enter it.
fn wait_until_told(arena: &OwnedArena) {
    let deadline = Instant::now() + LONG;
    loop {
        if let Ok(state) = arena.state.try_lock()
            && state.untold.is_being_told()
        {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "the thread of the domain would wait for whoever tells the client"
        );
        std::thread::yield_now();
    }
}

#[test]
fn account_is_open_for_the_thread_of_the_domain_while_a_client_is_told_of_an_end() {
    for is_dropped in [false, true] {
        let mut told = Told::new();
        told.open(2);
        assert!(!told.arena.hear_at_once());
        let [first, second] = [(); 2].map(|()| told.queue.try_take().unwrap());
        let names = [&first, &second].map(|opened| opened.lease.name);
        std::thread::scope(|scope| {
            // Here, so that whoever waits for it goes on when this panics.
            let held = hold_notifications(&told.arena.peer);
            let giving_up = scope.spawn(|| if is_dropped { drop(first) } else { first.peer.disconnect() });
            wait_until_told(&told.arena);
            // The client has given it up, too, and does not know of the end yet: the name is not lent anew before it does.
            told.teller.tell(&told.ring, Tell::Return { name: names[0] }.encode());
            assert!(!told.arena.hear_at_once());
            let lent = told.arena.lend_one(LINES, Some(&Unpaced)).unwrap();
            assert!(!names.contains(&lent.name));
            // What ends meanwhile is told by that thread.
            drop(second);
            drop(held);
            giving_up.join().unwrap();
        });
        let state = told.arena.lock();
        assert!(!state.untold.is_being_told() && !state.untold.has_ends());
    }
}

#[test]
fn name_of_a_window_that_was_returned_while_its_end_was_told_is_lent_anew() {
    let mut told = Told::new();
    told.open(1);
    assert!(!told.arena.hear_at_once());
    let opened = told.queue.try_take().unwrap();
    let name = opened.lease.name;
    std::thread::scope(|scope| {
        let held = hold_notifications(&told.arena.peer);
        let dropping = scope.spawn(|| drop(opened));
        wait_until_told(&told.arena);
        told.teller.tell(&told.ring, Tell::Return { name }.encode());
        assert!(!told.arena.hear_at_once());
        drop(held);
        dropping.join().unwrap();
    });
    let names = told.arena.lend(LINES, BATCH, Some(&Unpaced)).unwrap();
    assert!(names.iter().any(|lease| lease.name == name), "{names:?}");
}
