//! Descriptors that move out of a program's way a thousand times while every kind of traffic goes on, and a program that then
//! closes all that it thinks is its own.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use beeline_contract_memory::{LoadPort, StorePort};
use beeline_domain::{
    Answer, Departure, Domain, Event, Notified, Peer, Purpose, Refusal, Reply, Service, StoreOptions,
    WindowOptions, connect_window, descriptors, listen_all, move_descriptors_above, offer_window,
};
use beeline_mmio::StoreKernel;
use harness::{Role, TestFolder, WATCHDOG, say, wait_until};
use rustix::process::{Resource, getrlimit, setrlimit};

const MOVES: RawFd = 1000;
/// More than the descriptors that the role has at a time.
const FIRST: RawFd = 200;

struct Echo {
    comers: Sender<Peer>,
    leavers: Sender<Peer>,
}

impl Service for Echo {
    fn connected(&mut self, peer: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let _ = self.comers.send(peer.clone());
        Ok(Reply::default().into())
    }

    /// With a notification in front of the answer.
    fn requested(&mut self, peer: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let request = request.to_vec();
        assert!(peer.notify(&request, &[]).is_ok_and(|told| told == Notified::Accepted));
        Ok(Answer::later(move |_| Ok(Reply::new(request))))
    }

    fn departed(&mut self, peer: &Peer) {
        let _ = self.leavers.send(peer.clone());
    }
}

fn echo() -> (Box<Echo>, Receiver<Peer>, Receiver<Peer>) {
    let ((comers, come), (leavers, left)) = (channel(), channel());
    (Box::new(Echo { comers, leavers }), come, left)
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let _watchdog = harness::watchdog();
    match role.name.as_str() {
        "mover" => mover(&role),
        "client" => {
            let _connection = role.open().connect("name", b"", &[]).unwrap();
            say("connected");
            std::thread::sleep(WATCHDOG);
        }
        other => panic!("unknown role {other}"),
    }
}

/// What other threads do until it is over, each again and again; how often each did it.
struct Traffic<'a> {
    domain: &'a Domain,
    is_over: AtomicBool,
    done: [AtomicU64; 5],
}

impl Traffic<'_> {
    fn again(&self, kind: usize, mut each: impl FnMut(u64)) {
        // Relaxed: nothing is read on the strength of it.
        while !self.is_over.load(Ordering::Relaxed) {
            each(self.done[kind].fetch_add(1, Ordering::Relaxed));
        }
    }

    /// Calls, whose notifications are waited for by descriptor.
    fn calls(&self) {
        let (connection, _) = self.domain.connect("name", b"", &[]).unwrap();
        let notifications = connection.notifications().unwrap();
        self.again(0, |number| {
            let bytes = number.to_le_bytes();
            assert_eq!(connection.call(&bytes, &[]).unwrap().payload, bytes);
            assert_eq!(notifications.try_next().unwrap().unwrap().payload, bytes);
        });
    }

    /// Notifications that are given to a callback.
    fn callbacks(&self) {
        let (connection, _) = self.domain.connect("name", b"", &[]).unwrap();
        let (sender, given) = channel();
        let notifications = connection.notifications().unwrap();
        let _thread = notifications.deliver_to(move |given| drop(sender.send(given))).unwrap();
        self.again(1, |number| {
            connection.call(&number.to_le_bytes(), &[]).unwrap();
            assert_eq!(given.recv_timeout(WATCHDOG).unwrap().unwrap().payload, number.to_le_bytes());
        });
    }

    /// Connections that come and go, and the watch that notices.
    fn connections(&self) {
        let (service, _come, left) = echo();
        let _offer = self.domain.offer("other", service).unwrap();
        self.again(2, |_| {
            drop(self.domain.connect("other", b"", &[]).unwrap());
            assert_eq!(left.recv_timeout(WATCHDOG).unwrap().departure(), Some(Departure::Closed));
        });
    }

    /// Names that come and go.
    fn offers(&self) {
        self.again(3, |_| {
            drop(self.domain.offer("short", echo().0).unwrap());
            assert!(self.domain.names().is_ok());
        });
    }

    /// A window whose receiver waits by an event.
    fn window(&self) {
        let listener = offer_window(self.domain, "window", WindowOptions::default()).unwrap();
        let store = StoreOptions::with_kernel(StoreKernel::Cached);
        let mut sender = connect_window(self.domain, "window", store).unwrap();
        let mut receiver = listener.accept(WATCHDOG).unwrap();
        let event = Event::new().unwrap();
        self.again(4, |number| {
            event.clear();
            receiver.sleeper.announce(&event);
            listen_all([&receiver.sleeper]);
            let word = number << 32 | 1;
            sender.store.store_word(0, 0, word);
            sender.store.wake_receiver();
            assert!(event.wait(WATCHDOG), "wake-up {number} is lost");
            assert_eq!(receiver.load.load_word(0, 0), word);
        });
    }
}

/// The number below which every descriptor of ours has moved out of the way.
fn move_a_thousand_times(traffic: &Traffic<'_>) -> RawFd {
    let begun = || traffic.done.each_ref().map(|done| done.load(Ordering::Relaxed));
    wait_until(|| begun().iter().all(|done| *done > 0));
    let before = begun();
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
    let limit = RawFd::try_from(limit).unwrap().min(8192) - FIRST;
    let step = (limit / MOVES - 1).max(1);
    let lowest = |number: RawFd| FIRST + number * step % (limit - FIRST);
    (0..MOVES).for_each(|number| move_descriptors_above(lowest(number)).unwrap());
    wait_until(|| begun().iter().zip(before).all(|(done, before)| *done > before));
    lowest(MOVES - 1)
}

fn mover(role: &Role) {
    let mut limits = getrlimit(Resource::Nofile);
    limits.current = limits.maximum;
    setrlimit(Resource::Nofile, limits).unwrap();
    let domain = role.open();
    let (service, come, left) = echo();
    let _offer = domain.offer("name", service).unwrap();
    let shown = Event::new().unwrap();
    let shown_number = shown.as_fd().as_raw_fd();
    say("offers");
    let client = come.recv_timeout(WATCHDOG).unwrap();
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let traffic = Traffic { domain: &domain, is_over: AtomicBool::new(false), done: Default::default() };
    let lowest = std::thread::scope(|scope| {
        scope.spawn(|| traffic.calls());
        scope.spawn(|| traffic.callbacks());
        scope.spawn(|| traffic.connections());
        scope.spawn(|| traffic.offers());
        scope.spawn(|| traffic.window());
        let lowest = move_a_thousand_times(&traffic);
        traffic.is_over.store(true, Ordering::Relaxed);
        lowest
    });
    // Of what is below, the program leaves alone what the list says; it closes the rest, which may not be ours.
    let stays = |listed: &(RawFd, Purpose)| listed.0 < lowest;
    let expected = || {
        let below: BTreeSet<_> = descriptors().into_iter().filter(stays).collect();
        let lock = below.iter().filter(|(_, purpose)| *purpose == Purpose::Claim).count();
        let event = usize::from(below.contains(&(shown_number, Purpose::Event)));
        (below.len() == lock + event && lock == 1 && event == 1).then_some(below)
    };
    wait_until(|| expected().is_some());
    let below = expected().unwrap();
    for number in (3..lowest).filter(|number| !below.iter().any(|(ours, _)| ours == number)) {
        let _ = nix::unistd::close(number);
    }
    assert_eq!(connection.call(b"ab", &[]).unwrap().payload, b"ab");
    assert!(domain.connect("name", b"", &[]).is_ok() && domain.offer("later", echo().0).is_ok());
    shown.signal();
    assert!(harness::is_readable(&shown, Duration::ZERO));
    assert!(client.is_alive());
    say("closed");
    wait_until(|| left.try_iter().any(|peer| peer.id() == client.id()));
    assert_eq!(client.departure(), Some(Departure::Died));
    say("done");
}

#[test]
fn nothing_is_lost_by_a_thousand_moves_nor_by_a_program_that_closes_what_is_below() {
    let folder = TestFolder::new();
    let mut mover = folder.helper("mover", "");
    mover.expect("offers");
    let mut client = folder.helper("client", "");
    client.expect("connected");
    mover.expect("closed");
    client.kill();
    mover.expect("done");
    assert!(mover.finish().success());
}

/// Moves descriptors on the domain's thread while another thread does, which waits for the domain's thread.
struct MovesMeanwhile;

impl Service for MovesMeanwhile {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::default().into())
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let (sender, begins) = channel();
        std::thread::spawn(move || {
            sender.send(()).unwrap();
            move_descriptors_above(0).unwrap();
        });
        begins.recv().unwrap();
        let refused = move_descriptors_above(0).unwrap_err().to_string();
        Ok(Reply::new(refused).into())
    }

    fn departed(&mut self, _: &Peer) {}
}

#[test]
fn service_that_moves_descriptors_is_refused_and_does_not_wait_for_who_waits_for_it() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let _offer = domain.offer("name", Box::new(MovesMeanwhile)).unwrap();
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    for _ in 0..200 {
        let refused = connection.call(b"", &[]).unwrap().payload;
        assert!(String::from_utf8_lossy(&refused).contains("deadlock"), "{refused:?}");
    }
}
