//! Sockets of UDP: what is sent between them, by whichever path, and who is told of it.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::io::{IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use beeline_socket_engine::{Datagram, DatagramTraffic, DatagramTurn, Sockets, Turn};
use beeline_socket_rules::{Rules, Why};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use support::*;

fn engine() -> &'static Sockets {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().unwrap());
    sockets(folder.path(), Rules { udp: true, ..Rules::default() })
}

/// A socket of UDP, as a program has it.
struct Socket(UdpSocket);

impl Socket {
    fn bound(address: &str) -> Self {
        let socket = UdpSocket::bind(address).unwrap();
        engine().datagrams_made(socket.as_fd());
        Socket(socket)
    }

    fn connected(to: SocketAddr) -> Self {
        let socket = Socket::bound("127.0.0.1:0");
        socket.0.connect(to).unwrap();
        socket
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    fn send_pieces(&self, to: Option<SocketAddr>, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
        match engine().send_datagram(self.0.as_fd(), to, pieces) {
            Turn::Done(done) => done,
            Turn::Kernel(pass) => {
                let whole: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
                let sent = match to {
                    Some(to) => self.0.send_to(&whole, to),
                    None => self.0.send(&whole),
                };
                pass.moved(1);
                sent.map_err(|error| Errno::from_io_error(&error).unwrap())
            }
        }
    }

    fn send(&self, to: SocketAddr, bytes: &[u8]) {
        assert_eq!(self.send_pieces(Some(to), &[IoSlice::new(bytes)]), Ok(bytes.len()));
    }

    fn receive_with(&self, out: &mut [u8], flags: RecvFlags) -> Result<Datagram, Errno> {
        match engine().receive_datagram(self.0.as_fd(), &mut [IoSliceMut::new(out)], flags) {
            DatagramTurn::Done(done) => done,
            DatagramTurn::Kernel(pass) => self.receive_from_kernel(out, flags).inspect(|datagram| {
                if !flags.contains(RecvFlags::PEEK) {
                    pass.moved(datagram.length);
                    engine().heard_datagram(self.0.as_fd(), datagram.from);
                }
            }),
        }
    }

    fn receive_from_kernel(&self, out: &mut [u8], flags: RecvFlags) -> Result<Datagram, Errno> {
        let room = out.len();
        let (_, length, from) = rustix::net::recvfrom(&self.0, out, flags | RecvFlags::TRUNC)?;
        let from = from.and_then(|from| SocketAddr::try_from(from).ok());
        Ok(Datagram::of_kernel(length.min(room), length, from))
    }

    /// Bytes of the next datagram, and from where it is.
    fn receive(&self) -> (Vec<u8>, SocketAddr) {
        let mut out = vec![0; 1 << 16];
        let datagram = self.receive_with(&mut out, RecvFlags::empty()).unwrap();
        out.truncate(datagram.copied);
        (out, datagram.from.unwrap())
    }

    fn has_nothing(&self) -> bool {
        self.receive_with(&mut [], RecvFlags::DONTWAIT | RecvFlags::PEEK) == Err(Errno::AGAIN)
    }

    fn traffic(&self) -> DatagramTraffic {
        let socket = engine().datagram_socket(self.0.as_raw_fd());
        socket.map_or(DatagramTraffic::default(), |socket| socket.traffic())
    }

    fn why(&self) -> Option<Why> {
        engine().datagram_socket(self.0.as_raw_fd()).unwrap().why()
    }

    fn is_carried(&self) -> bool {
        engine().datagram_socket(self.0.as_raw_fd()).is_some_and(|socket| socket.is_carried())
    }

    fn close(self) {
        engine().close(self.0.as_fd());
    }
}

/// Sends to and fro until windows carry both.
fn warm_up(client: &Socket, server: &Socket) {
    let started = Instant::now();
    let carried = |socket: &Socket| {
        let traffic = socket.traffic();
        traffic.sent_by_window > 0 && traffic.received_by_window > 0 && socket.is_carried()
    };
    while !(carried(client) && carried(server)) {
        assert!(started.elapsed() < HANGS, "not carried: {:?} {:?}", client.traffic(), server.traffic());
        for (from, to) in [(client, server), (server, client)] {
            from.send(to.address(), b"warm");
            assert_eq!(to.receive(), (b"warm".to_vec(), from.address()));
        }
    }
}

fn pair(address: &str) -> (Socket, Socket) {
    let (client, server) = (Socket::bound(address), Socket::bound(address));
    warm_up(&client, &server);
    (client, server)
}

#[test]
fn boundaries_lengths_and_addresses_are_those_that_were_sent() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (client, server) = pair(address);
        let before = client.traffic();
        for length in [0, 1, 7, 8, 47, 48, 49, 55, 56, 57, 64, 1000, 1472, 9000, 40_000, 65_507] {
            let bytes: Vec<u8> = (0..length).map(byte).collect();
            client.send(server.address(), &bytes);
            assert_eq!(server.receive(), (bytes, client.address()), "{length}");
        }
        let sent = client.traffic().sent_by_window - before.sent_by_window;
        assert_eq!(sent, 16, "{address}");
        // In pieces, some of them empty.
        let pieces = [b"one ".as_slice(), b"", b"two ", b"three"].map(IoSlice::new);
        assert_eq!(client.send_pieces(Some(server.address()), &pieces), Ok(13));
        assert_eq!(server.receive().0, b"one two three");
        assert!(server.has_nothing());
    }
}

#[test]
fn what_has_no_room_is_gone_and_a_peek_leaves_it() {
    let (client, server) = pair("127.0.0.1:0");
    client.send(server.address(), b"a long one");
    client.send(server.address(), b"next");
    let mut out = [0; 4];
    let peeked = server.receive_with(&mut out, RecvFlags::PEEK).unwrap();
    assert_eq!((peeked.copied, peeked.length, peeked.from), (4, 10, Some(client.address())));
    assert_eq!(engine().next_datagram_bytes(server.0.as_raw_fd()), Some(10));
    let taken = server.receive_with(&mut out, RecvFlags::empty()).unwrap();
    assert_eq!((taken.copied, taken.length, &out), (4, 10, b"a lo"));
    assert_eq!(server.receive().0, b"next");
    assert_eq!(engine().next_datagram_bytes(server.0.as_raw_fd()), None);
    // Into several places.
    client.send(server.address(), b"scattered");
    let (mut one, mut two) = ([0; 3], [0; 32]);
    let mut places = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut []), IoSliceMut::new(&mut two)];
    let turn = engine().receive_datagram(server.0.as_fd(), &mut places, RecvFlags::empty());
    assert!(matches!(turn, DatagramTurn::Done(Ok(Datagram { copied: 9, length: 9, .. }))));
    assert_eq!((&one, &two[..6]), (b"sca", b"ttered".as_slice()));
}

#[test]
fn what_the_kernel_has_comes_in_the_order_in_which_it_was_sent() {
    let (client, server) = pair("127.0.0.1:0");
    let to = server.address();
    for round in 0..50_u32 {
        // The first one by the window is taken: behind it order is what the kernel leaves of it.
        let before = client.traffic().sent_by_window;
        while client.traffic().sent_by_window == before {
            client.send(to, &[0]);
            assert_eq!(server.receive().0, [0]);
        }
        // By the window, behind the library by the kernel, and by the window again once that is quiet.
        client.send(to, &[1]);
        client.send(to, &[2]);
        engine().sends_datagrams_by_kernel(client.0.as_fd());
        client.0.send_to(&[3], to).unwrap();
        client.send(to, &[4]);
        if round.is_multiple_of(2) {
            thread::sleep(Duration::from_millis(2));
        }
        client.send(to, &[5]);
        let found: Vec<u8> = (0..5).flat_map(|_| server.receive().0).collect();
        assert_eq!(found, [1, 2, 3, 4, 5], "round {round}");
    }
    assert!(server.has_nothing());
    let traffic = client.traffic();
    assert!(traffic.sent_by_window >= 150 && traffic.sent > traffic.sent_by_window, "{traffic:?}");
}

#[test]
fn full_window_leaves_the_rest_to_the_kernel_and_loses_nothing_that_it_has_room_for() {
    let (client, server) = pair("127.0.0.1:0");
    let to = server.address();
    // Each is as long as 1000 lines hold eight of.
    let datagram = |number: u8| vec![number; 8000];
    (0..16).for_each(|number| client.send(to, &datagram(number)));
    let traffic = client.traffic();
    assert!(traffic.sent > traffic.sent_by_window, "{traffic:?}");
    (0..16).for_each(|number| assert_eq!(server.receive(), (datagram(number), client.address())));
    // And by the window again.
    let before = client.traffic().sent_by_window;
    let started = Instant::now();
    while client.traffic().sent_by_window == before {
        assert!(started.elapsed() < HANGS);
        client.send(to, b"again");
        assert_eq!(server.receive().0, b"again");
    }
}

#[test]
fn sender_that_never_pauses_comes_to_a_window_in_order() {
    let (client, server) = (Socket::bound("127.0.0.1:0"), Socket::bound("127.0.0.1:0"));
    let (to, from) = (server.address(), client.address());
    let is_over = Arc::new(AtomicBool::new(false));
    let is_over_there = Arc::clone(&is_over);
    let sender = thread::spawn(move || {
        let started = Instant::now();
        let mut number = 0_u64;
        let mut left = 20_000;
        while left > 0 {
            assert!(started.elapsed() < HANGS, "not carried: {:?}", client.traffic());
            client.send(to, &number.to_le_bytes());
            number += 1;
            left -= u32::from(client.traffic().sent_by_window > 0);
        }
        // These may be dropped, too.
        while !is_over_there.load(Ordering::Relaxed) {
            client.send(to, &u64::MAX.to_le_bytes());
            thread::sleep(Duration::from_millis(2));
        }
    });
    let mut last = None;
    loop {
        let (bytes, source) = server.receive();
        assert_eq!(source, from);
        let number = u64::from_le_bytes(bytes.try_into().unwrap());
        if number == u64::MAX {
            break;
        }
        // Some are dropped, as by the kernel alone; none comes twice, or too early.
        assert!(last < Some(number), "{number} behind {last:?}");
        last = Some(number);
    }
    is_over.store(true, Ordering::Relaxed);
    assert!(server.traffic().received_by_window > 0);
    sender.join().unwrap();
}

#[test]
fn several_senders_have_a_window_each_and_a_new_one_comes_by_the_kernel() {
    let server = Socket::bound("127.0.0.1:0");
    let clients: Vec<Socket> = (0..5).map(|_| Socket::bound("127.0.0.1:0")).collect();
    clients.iter().for_each(|client| warm_up(client, &server));
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..100_u8 {
        for client in &clients {
            client.send(server.address(), &[number]);
        }
        stranger.send_to(&[number], server.address()).unwrap();
        let mut from: Vec<SocketAddr> = (0..6)
            .map(|_| server.receive())
            .inspect(|(bytes, _)| assert_eq!(bytes[..], [number]))
            .map(|(_, from)| from)
            .collect();
        from.sort_unstable();
        let mut expected: Vec<_> = clients.iter().map(Socket::address).collect();
        expected.push(stranger.local_addr().unwrap());
        expected.sort_unstable();
        assert_eq!(from, expected);
    }
}

#[test]
fn receiver_that_has_closed_is_refused_by_the_kernel() {
    let server = Socket::bound("127.0.0.1:0");
    let client = Socket::connected(server.address());
    warm_up(&client, &server);
    assert_eq!(client.send_pieces(None, &[IoSlice::new(b"x")]), Ok(1));
    assert_eq!(server.receive().0, b"x");
    let address = server.address();
    server.close();
    assert_eq!(client.send_pieces(None, &[IoSlice::new(b"y")]), Ok(1));
    assert_eq!(client.receive_with(&mut [0; 4], RecvFlags::empty()), Err(Errno::CONNREFUSED));
    // A new one with the address is the sender's next.
    let server = Socket::bound(&address.to_string());
    warm_up(&client, &server);
}

#[test]
fn forbidden_socket_gives_what_its_windows_have_and_then_what_the_kernel_has() {
    let (client, server) = pair("127.0.0.1:0");
    client.send(server.address(), b"by the window");
    engine().forbid(server.0.as_fd(), Why::Option);
    client.send(server.address(), b"by the kernel");
    assert_eq!(server.receive().0, b"by the window");
    assert_eq!(server.receive().0, b"by the kernel");
    assert_eq!(server.why(), Some(Why::Option));
    let before = client.traffic().sent_by_window;
    (0..300).for_each(|_| {
        client.send(server.address(), b"z");
        assert_eq!(server.receive().0, b"z");
    });
    assert_eq!(client.traffic().sent_by_window, before);
}

#[test]
fn window_stays_behind_a_datagram_to_another_host_and_not_behind_one_to_a_second_address_of_this() {
    let (client, server) = pair("127.0.0.1:0");
    // The first is of a network for documentation. Whether anything leads there is the kernel's to say.
    for (address, stays) in [([192, 0, 2, 1], true), ([127, 0, 0, 2], false)] {
        let other = SocketAddr::from((address, server.address().port()));
        for _ in 0..2 {
            let _ = client.send_pieces(Some(other), &[IoSlice::new(b"elsewhere")]);
        }
        let before = client.traffic().sent_by_window;
        (0..300).for_each(|_| {
            client.send(server.address(), b"z");
            assert_eq!(server.receive().0, b"z");
        });
        assert_eq!(client.traffic().sent_by_window > before, stays, "{address:?}");
    }
}

#[test]
fn sleeper_is_woken_by_either_path() {
    let (client, server) = pair("127.0.0.1:0");
    let (to, from) = (server.address(), client.address());
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (asleep, woken) = std::sync::mpsc::channel();
    let sleeper = thread::spawn(move || {
        for _ in 0..20 {
            asleep.send(server.receive()).unwrap();
        }
        server
    });
    for number in 0..10_u8 {
        // Most rounds find it asleep; the test does not need that.
        thread::sleep(Duration::from_millis(3));
        client.send(to, &[number]);
        assert_eq!(woken.recv().unwrap(), (vec![number], from));
        thread::sleep(Duration::from_millis(3));
        stranger.send_to(&[number], to).unwrap();
        assert_eq!(woken.recv().unwrap(), (vec![number], stranger.local_addr().unwrap()));
    }
    let server = sleeper.join().unwrap();
    assert!(server.is_carried());
    rustix::net::sockopt::set_socket_timeout(
        &server.0,
        rustix::net::sockopt::Timeout::Recv,
        Some(Duration::from_millis(5)),
    )
    .unwrap();
    assert_eq!(server.receive_with(&mut [0; 4], RecvFlags::empty()), Err(Errno::AGAIN));
}

#[test]
fn receiver_that_sleeps_each_time_has_its_sender_use_the_kernel_in_order_and_windows_are_tried_again() {
    let (client, server) = pair("127.0.0.1:0");
    let (to, from) = (server.address(), client.address());
    let answered = thread::spawn(move || {
        for number in 0..400_u32 {
            let (bytes, from) = server.receive();
            assert_eq!(bytes, number.to_le_bytes());
            server.send(from, &bytes);
        }
        server
    });
    for number in 0..400_u32 {
        // Longer than a receiver spins.
        thread::sleep(Duration::from_micros(200));
        client.send(to, &number.to_le_bytes());
        assert_eq!(client.receive(), (number.to_le_bytes().to_vec(), to));
    }
    let server = answered.join().unwrap();
    let slow = client.traffic();
    assert!(slow.sent - slow.sent_by_window > 200, "{slow:?}");
    warm_up(&client, &server);
    let (before, started) = (client.traffic().sent_by_window, Instant::now());
    while client.traffic().sent_by_window < before + 10 {
        assert!(started.elapsed() < HANGS, "{:?}", client.traffic());
        client.send(to, b"fast");
        assert_eq!(server.receive(), (b"fast".to_vec(), from));
    }
}

/// Its process answers for it. Until all senders have, a receive looks at windows, and whoever sends to it by the kernel wakes it beside a bell.
#[test]
fn idle_sender_does_not_keep_a_receiver_from_its_rest() {
    let (client, server) = pair("127.0.0.1:0");
    let idle = Socket::bound("127.0.0.1:0");
    warm_up(&idle, &server);
    let (to, from) = (server.address(), client.address());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let started = Instant::now();
            let mut number = 0_u32;
            while !is_over.load(Ordering::Relaxed) && started.elapsed() < HANGS {
                // Longer than a receiver spins.
                thread::sleep(Duration::from_micros(200));
                client.send(to, &number.to_le_bytes());
                number += 1;
            }
        });
        let mut out = [0; 64];
        for number in 0..u32::MAX {
            assert!(!sender.is_finished(), "no receive is the kernel's: {:?}", server.traffic());
            let places = &mut [IoSliceMut::new(&mut out)];
            let turn = engine().receive_datagram(server.0.as_fd(), places, RecvFlags::empty());
            if let DatagramTurn::Kernel(pass) = turn {
                server.receive_from_kernel(&mut out, RecvFlags::empty()).unwrap();
                pass.moved(4);
                assert_eq!(out[..4], number.to_le_bytes());
                break;
            }
            assert!(matches!(turn, DatagramTurn::Done(Ok(datagram)) if datagram.from == Some(from)));
            assert_eq!(out[..4], number.to_le_bytes());
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // It is heard during the rest, and comes to its window again behind it.
    while server.receive_with(&mut [0; 64], RecvFlags::DONTWAIT).is_ok() {}
    for number in 0..5_u8 {
        idle.send(to, &[number]);
        assert_eq!(server.receive(), (vec![number], idle.address()));
    }
    let before = idle.traffic().sent_by_window;
    let started = Instant::now();
    while idle.traffic().sent_by_window == before {
        assert!(started.elapsed() < HANGS, "{:?}", idle.traffic());
        idle.send(to, b"again");
        assert_eq!(server.receive().0, b"again");
    }
}
