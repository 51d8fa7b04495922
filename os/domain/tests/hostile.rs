//! Peers that break the protocol on purpose: they lose their connection, and nobody else loses anything.
//!
//! The hostile side is written with raw sockets in the test's own process; the honest side is the real thing.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use beeline_domain::{
    Answer, ConnectError, Departure, Domain, MAX_NOTIFICATION_FDS, MAX_UNTAKEN_FDS,
    MAX_UNTAKEN_NOTIFICATIONS, NotificationsEnded, Offer, OfferOptions, Peer, Refusal, Reply, Service,
    WireError,
};
use harness::{TestFolder, WATCHDOG, wait_until};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};

/// Counts what gets through to it.
struct Counting {
    requests: Arc<AtomicU32>,
    departures: Sender<Departure>,
}

impl Service for Counting {
    fn connected(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        self.requested(peer, request, fds)
    }

    fn requested(&mut self, _peer: &Peer, request: &[u8], _fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        Ok(Reply::new(request).into())
    }

    fn departed(&mut self, peer: &Peer) {
        let _ = self.departures.send(peer.departure().unwrap());
    }
}

struct Offered {
    _offer: Offer,
    requests: Arc<AtomicU32>,
    departures: Receiver<Departure>,
}

fn offer(domain: &Domain, options: OfferOptions) -> Offered {
    let requests = Arc::new(AtomicU32::new(0));
    let (sender, departures) = channel();
    let service = Box::new(Counting { requests: Arc::clone(&requests), departures: sender });
    Offered { _offer: domain.offer_with("name", service, options).unwrap(), requests, departures }
}

fn raw_socket() -> OwnedFd {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

fn address(folder: &TestFolder) -> SocketAddrUnix {
    SocketAddrUnix::new(folder.path().join("test/name.sock")).unwrap()
}

fn raw_connect(folder: &TestFolder) -> OwnedFd {
    let socket = raw_socket();
    rustix::net::connect(&socket, &address(folder)).unwrap();
    socket
}

fn raw_send(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> rustix::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(250))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)
}

/// A header as an honest peer would send it, with fields to be spoiled.
fn header(kind: u16, serial: u32, payload_bytes: u32, fd_count: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(b"BEE\x01");
    bytes.extend(4u16.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(serial.to_le_bytes());
    bytes.extend(payload_bytes.to_le_bytes());
    bytes.extend(fd_count.to_le_bytes());
    bytes.extend([0; 2]);
    bytes.extend(0u64.to_le_bytes());
    bytes
}

const HELLO: u16 = 1;
const CALL: u16 = 2;
const REPLY: u16 = 3;
const WAKE: u16 = 6;
const NOTIFY: u16 = 7;
const TAKEN: u16 = 8;
const TELL: u16 = 9;

/// Reads until the other side closes, and counts the packets.
fn packets_until_closed(socket: &OwnedFd) -> usize {
    let mut buffer = vec![0; 70_000];
    let mut count = 0;
    let mut resets = 0;
    loop {
        match rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((_, 0)) => return count,
            Ok(_) => count += 1,
            // Reported once, when the other side closed before it read everything.
            Err(rustix::io::Errno::CONNRESET) if resets < 2 => resets += 1,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn malformed_packets_close_their_connection_only() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let offered = offer(&domain, OfferOptions::default());
    let (good, _) = domain.connect("name", b"good", &[]).unwrap();
    let spoil = |at: usize, value: u8| {
        let mut bytes = header(HELLO, 1, 0, 0);
        bytes[at] = value;
        bytes
    };
    let bad: Vec<(&str, Vec<u8>)> = vec![
        ("garbage", b"\xff\x00garbage".to_vec()),
        ("one byte", vec![0]),
        ("wrong magic", spoil(0, b'X')),
        ("wrong version", spoil(4, 9)),
        ("unknown kind", spoil(6, 77)),
        ("payload that is not there", spoil(16, 200)),
        ("descriptors that are not there", spoil(20, 3)),
        ("a call before hello", header(CALL, 1, 0, 0)),
        ("a wake-up before hello", header(WAKE, 1, 0, 0)),
        ("a reply of a client", header(REPLY, 1, 0, 0)),
        ("a notification of a client", header(NOTIFY, 1, 0, 0)),
        ("notifications taken before hello", header(TAKEN, 1, 0, 0)),
        ("what is told before hello", header(TELL, 1, 0, 0)),
        ("a packet that is too long", [header(HELLO, 1, 70_000, 0), vec![0; 70_000]].concat()),
        ("nothing but zeros", vec![0; 65_536]),
    ];
    for (what, bytes) in bad {
        let socket = raw_connect(&folder);
        raw_send(&socket, &bytes, &[]).unwrap();
        packets_until_closed(&socket);
        assert_eq!(good.call(what.as_bytes(), &[]).unwrap().payload, what.as_bytes());
    }
    // One hello and fifteen calls of the good client, nothing of the bad ones.
    assert_eq!(offered.requests.load(Ordering::Relaxed), 16);
    assert!(offered.departures.try_iter().next().is_none());
}

#[test]
fn a_second_hello_ends_the_connection() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let offered = offer(&domain, OfferOptions::default());
    let socket = raw_connect(&folder);
    raw_send(&socket, &header(HELLO, 1, 0, 0), &[]).unwrap();
    raw_send(&socket, &header(HELLO, 2, 0, 0), &[]).unwrap();
    assert!(packets_until_closed(&socket) >= 1);
    assert_eq!(offered.departures.recv_timeout(WATCHDOG), Ok(Departure::Closed));
    assert_eq!(offered.requests.load(Ordering::Relaxed), 1);
}

#[test]
fn wake_ups_that_carry_something_end_the_connection() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let offered = offer(&domain, OfferOptions::default());
    for (bytes, fds) in [(4, 0), (0, 1)] {
        let socket = raw_connect(&folder);
        raw_send(&socket, &header(HELLO, 1, 0, 0), &[]).unwrap();
        let mut packet = header(WAKE, 0, bytes, fds);
        packet.resize(packet.len() + bytes as usize, 0);
        raw_send(&socket, &packet, &[socket.as_fd()][..usize::from(fds)]).unwrap();
        assert!(packets_until_closed(&socket) >= 1);
        assert_eq!(offered.departures.recv_timeout(WATCHDOG), Ok(Departure::Closed));
    }
}

#[test]
fn flood_of_wake_ups_delays_no_other_client() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let offered = offer(&domain, OfferOptions::default());
    let (good, _) = domain.connect("name", b"good", &[]).unwrap();
    let socket = raw_connect(&folder);
    raw_send(&socket, &header(HELLO, 1, 0, 0), &[]).unwrap();
    let wake = header(WAKE, 0, 0, 0);
    let mut sent = 0;
    for round in 0..200_u32 {
        // As many as there is room for, so that the domain's thread always has some to read.
        while raw_send(&socket, &wake, &[]).is_ok() {
            sent += 1;
        }
        assert_eq!(good.call(&round.to_le_bytes(), &[]).unwrap().payload, round.to_le_bytes());
    }
    assert!(sent > 200, "{sent} wake-ups are no flood");
    assert_eq!(offered.requests.load(Ordering::Relaxed), 202);
    assert!(offered.departures.try_iter().next().is_none(), "a peer may wake as often as it likes");
}

#[test]
fn client_that_takes_what_it_was_not_sent_is_disconnected() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let offered = offer(&domain, OfferOptions::default());
    let (good, _) = domain.connect("name", b"good", &[]).unwrap();
    for (serial, bytes, fds) in [(0, 0, 0), (1, 0, 0), (u32::MAX, 0, 0), (1, 4, 0), (1, 0, 1)] {
        let socket = raw_connect(&folder);
        raw_send(&socket, &header(HELLO, 1, 0, 0), &[]).unwrap();
        let mut packet = header(TAKEN, serial, bytes, fds);
        packet.resize(packet.len() + bytes as usize, 0);
        raw_send(&socket, &packet, &[socket.as_fd()][..usize::from(fds)]).unwrap();
        assert!(packets_until_closed(&socket) >= 1);
        assert_eq!(offered.departures.recv_timeout(WATCHDOG), Ok(Departure::Closed));
    }
    assert_eq!(good.call(b"ab", &[]).unwrap().payload, b"ab");
}

#[test]
fn descriptors_that_were_not_asked_for_are_closed() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let _offered = offer(&domain, OfferOptions::default());
    let (reader, writer) = std::io::pipe().unwrap();
    for (count, kind) in [(250, HELLO), (33, HELLO), (32, 99), (1, HELLO)] {
        let socket = raw_connect(&folder);
        // The header says that there are none.
        raw_send(&socket, &header(kind, 1, 0, 0), &vec![writer.as_fd(); count]).unwrap();
        packets_until_closed(&socket);
    }
    // As many as are allowed, and the service takes them, but does not keep them.
    let (_good, _) = domain.connect("name", b"x", &[writer.as_fd(); 32]).unwrap();
    drop(writer);
    // The pipe ends only when no copy of its writing end is left anywhere.
    let mut buffer = [0; 1];
    assert_eq!(rustix::io::read(&reader, &mut buffer), Ok(0));
}

#[test]
fn silent_connections_delay_no_other_client() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let patient = Duration::from_secs(3600);
    let options = OfferOptions { max_connections: 8, hello_timeout: patient, ..OfferOptions::default() };
    let _offered = offer(&domain, options);
    let mut silent = Vec::new();
    for round in 0..40u32 {
        silent.extend((0..5).map(|_| raw_connect(&folder)));
        let (good, reply) = domain.connect("name", &round.to_le_bytes(), &[]).unwrap();
        assert_eq!(reply.payload, round.to_le_bytes());
        drop(good);
    }
    // Those that were there first made room; with clients that have spoken, the offer is full.
    let good: Vec<_> = (0..8).map(|_| domain.connect("name", b"x", &[]).unwrap()).collect();
    let full = domain.connect("name", b"x", &[]).unwrap_err();
    assert!(
        matches!(&full, ConnectError::Refused { reason, .. } if reason.contains("8 connections")),
        "{full}"
    );
    drop(good);
}

#[test]
fn a_connection_that_says_nothing_in_time_is_closed() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let options = OfferOptions { hello_timeout: Duration::from_millis(20), ..OfferOptions::default() };
    let offered = offer(&domain, options);
    let socket = raw_connect(&folder);
    packets_until_closed(&socket);
    let (_good, _) = domain.connect("name", b"x", &[]).unwrap();
    assert_eq!(offered.requests.load(Ordering::Relaxed), 1);
}

#[test]
fn a_client_that_never_reads_is_disconnected() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let offered = offer(&domain, OfferOptions::default());
    let (good, _) = domain.connect("name", b"x", &[]).unwrap();
    let socket = raw_connect(&folder);
    let body = vec![0; 30_000];
    let call = |kind| [header(kind, 1, 30_000, 0), body.clone()].concat();
    raw_send(&socket, &call(HELLO), &[]).unwrap();
    let started = Instant::now();
    // While its own queue is full for the moment, the other side takes turns.
    while matches!(raw_send(&socket, &call(CALL), &[]), Ok(_) | Err(rustix::io::Errno::AGAIN)) {
        assert!(started.elapsed() < WATCHDOG);
        assert_eq!(good.call(b"still here", &[]).unwrap().payload, b"still here");
    }
    assert_eq!(offered.departures.recv_timeout(WATCHDOG), Ok(Departure::Closed));
}

#[test]
fn a_peer_that_closes_without_a_word_and_lives_has_closed() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let offered = offer(&domain, OfferOptions::default());
    let socket = raw_connect(&folder);
    raw_send(&socket, &header(HELLO, 1, 0, 0), &[]).unwrap();
    let mut buffer = [0; 64];
    assert!(rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty()).unwrap().1 > 0);
    drop(socket);
    assert_eq!(offered.departures.recv_timeout(WATCHDOG), Ok(Departure::Closed));
}

#[test]
fn connections_that_running_processes_closed_without_a_word_hold_no_place() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let offered = offer(&domain, OfferOptions { max_connections: 8, ..OfferOptions::default() });
    // All within the second that a dying process would be given.
    for round in 0..50 {
        let socket = raw_connect(&folder);
        raw_send(&socket, &header(HELLO, 1, 0, 0), &[]).unwrap();
        let mut answer = [0; 64];
        let (_, bytes) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty()).unwrap();
        assert_eq!((bytes, answer[6]), (32, REPLY as u8), "round {round}");
    }
    let (good, _) = domain.connect("name", b"x", &[]).unwrap();
    for _ in 0..50 {
        assert_eq!(offered.departures.recv_timeout(WATCHDOG), Ok(Departure::Closed));
    }
    assert_eq!(good.call(b"y", &[]).unwrap().payload, b"y");
}

/// Listens where an owner would, and does with each connection what it is told to.
fn hostile_owner(folder: &TestFolder, mut act: impl FnMut(OwnedFd) + Send + 'static) {
    let listener = raw_socket();
    rustix::net::bind(&listener, &address(folder)).unwrap();
    rustix::net::listen(&listener, 8).unwrap();
    std::thread::spawn(move || {
        while let Ok(socket) = rustix::net::accept_with(&listener, SocketFlags::CLOEXEC) {
            let mut hello = [0; 1024];
            let mut control = rustix::net::RecvAncillaryBuffer::default();
            let parts = &mut [IoSliceMut::new(&mut hello)];
            rustix::net::recvmsg(&socket, parts, &mut control, RecvFlags::empty()).unwrap();
            act(socket);
        }
    });
}

#[test]
fn a_hostile_owner_gets_an_error_and_nothing_else() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let answers: Vec<Vec<u8>> = vec![
        b"garbage".to_vec(),
        header(REPLY, 1, 5, 0),
        header(HELLO, 1, 0, 0),
        [header(REPLY, 1, 70_000, 0), vec![0; 70_000]].concat(),
    ];
    let count = answers.len();
    let mut kept = Vec::new();
    let mut answers = answers.into_iter();
    hostile_owner(&folder, move |socket| {
        match answers.next() {
            Some(answer) => drop(raw_send(&socket, &answer, &[])),
            // Closed without a word, by a process that lives.
            None => return,
        }
        kept.push(socket);
    });
    for _ in 0..count {
        let error = domain.connect("name", b"", &[]).unwrap_err();
        assert!(matches!(error, ConnectError::Protocol { .. }), "{error}");
    }
    let error = domain.connect("name", b"", &[]).unwrap_err();
    assert!(matches!(error, ConnectError::Closed { .. }), "{error}");
}

#[test]
fn an_owner_that_never_answers_costs_no_more_than_the_timeout() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let mut kept = Vec::new();
    hostile_owner(&folder, move |socket| {
        // An answer to a question that nobody asked.
        let _ = raw_send(&socket, &header(REPLY, 77, 0, 0), &[]);
        kept.push(socket);
    });
    for _ in 0..3 {
        let error = domain.connect_within("name", b"", &[], Duration::from_millis(20)).unwrap_err();
        assert!(matches!(error, ConnectError::TimedOut { .. }), "{error}");
    }
}

/// Notifications of a hostile owner after a good answer to the connect, each a header, a payload and a number of
/// descriptors; how the client's connection ends, and how many notifications it could take before.
fn told_by_hostile_owner(told: Vec<(Vec<u8>, usize)>) -> (usize, NotificationsEnded) {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut kept = Vec::new();
    hostile_owner(&folder, move |socket| {
        raw_send(&socket, &header(REPLY, 1, 0, 0), &[]).unwrap();
        for (packet, fds) in &told {
            let fds = vec![writer.as_fd(); *fds];
            let started = Instant::now();
            // The client's side reads; only a full socket is tried again.
            while raw_send(&socket, packet, &fds) == Err(rustix::io::Errno::AGAIN) {
                assert!(started.elapsed() < WATCHDOG);
            }
        }
        kept.push(socket);
    });
    let (connection, _) = domain.connect("name", b"", &[]).unwrap();
    let notifications = connection.notifications().unwrap();
    wait_until(|| !connection.peer().is_alive());
    let mut count = 0;
    let ended = loop {
        match notifications.next_within(WATCHDOG) {
            Ok(next) => count += usize::from(next.is_some()),
            Err(ended) => break ended,
        }
    };
    drop(reader);
    (count, ended)
}

#[test]
fn owner_that_floods_or_lies_is_disconnected_and_bounded() {
    let notify = |serial, bytes: u32, fds: u16| {
        let packet = [header(NOTIFY, serial, bytes, fds), vec![7; bytes as usize]].concat();
        (packet, usize::from(fds))
    };
    let flood = (1..=2000).map(|serial| notify(serial, 4096, 0)).collect();
    let ended = NotificationsEnded::Broken(WireError::Flood);
    assert_eq!(told_by_hostile_owner(flood), (MAX_UNTAKEN_NOTIFICATIONS, ended));
    let flood = (1..=200).map(|serial| notify(serial, 0, 4)).collect();
    assert_eq!(told_by_hostile_owner(flood), (MAX_UNTAKEN_FDS / MAX_NOTIFICATION_FDS, ended));
    for (told, error) in [
        (vec![notify(1, 0, 0), notify(3, 0, 0)], WireError::Sequence { expected: 2, found: 3 }),
        (vec![notify(1, 0, 0), notify(1, 0, 0)], WireError::Sequence { expected: 2, found: 1 }),
        (vec![notify(1, 0, 0), notify(2, 4097, 0)], WireError::LargeNotification { bytes: 4097, fds: 0 }),
        (vec![notify(1, 0, 0), notify(2, 0, 5)], WireError::LargeNotification { bytes: 0, fds: 5 }),
        (vec![notify(1, 0, 0), (header(TAKEN, 1, 0, 0), 0)], WireError::Kind { found: TAKEN }),
        (vec![notify(1, 0, 0), (header(NOTIFY, 2, 0, 1), 0)], WireError::Descriptors { said: 1, found: 0 }),
    ] {
        assert_eq!(told_by_hostile_owner(told), (1, NotificationsEnded::Broken(error)));
    }
}
