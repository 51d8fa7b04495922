//! Both ends in one process: what each call answers, where it is the window's and where it is the kernel's.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use beeline_socket_engine::Sockets;
use beeline_socket_rules::{Rules, Why};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags};
use support::*;

/// The engine is one for the process, and so for all tests here.
fn engine() -> &'static Sockets {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().unwrap());
    sockets(folder.path(), Rules::default())
}

/// Two ends that send to each other, both by windows.
fn carried() -> (Connection, Connection) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let client = Connection::connected(engine(), &listener);
    let server = Connection::accepted(engine(), &listener);
    let started = Instant::now();
    while !(client.is_carried() && server.is_carried()) {
        assert!(started.elapsed() < HANGS, "not carried: {:?} {:?}", client.traffic(), server.traffic());
        for (from, to) in [(&client, &server), (&server, &client)] {
            from.send_all(b"a message");
            let mut out = [0; 9];
            to.receive_all(&mut out);
            assert_eq!(&out, b"a message");
        }
    }
    (client, server)
}

fn why(connection: &Connection) -> Option<Why> {
    engine().endpoint(connection.socket.as_raw_fd()).unwrap().why()
}

#[test]
fn nothing_is_there_and_then_something() {
    let (client, server) = carried();
    assert_eq!(server.receive_with(&mut [0; 4], RecvFlags::DONTWAIT), Err(Errno::AGAIN));
    assert_eq!(client.send(b"abc"), Ok(3));
    assert_eq!(client.send(b"defg"), Ok(4));
    let mut out = [0; 16];
    // What has come in several messages is given together.
    assert_eq!(server.receive_with(&mut out, RecvFlags::DONTWAIT), Ok(7));
    assert_eq!(&out[..7], b"abcdefg");
    assert_eq!(server.receive_with(&mut out, RecvFlags::DONTWAIT), Err(Errno::AGAIN));
}

#[test]
fn peek_leaves_what_it_shows() {
    let (client, server) = carried();
    client.send_all(b"peeked at");
    let mut out = [0; 9];
    assert_eq!(server.receive_with(&mut out, RecvFlags::PEEK), Ok(9));
    assert_eq!(server.receive_with(&mut out[..4], RecvFlags::PEEK), Ok(4));
    assert_eq!(engine().unread_bytes(server.socket.as_fd()), Some(Ok(9)));
    assert_eq!(server.receive(&mut out), Ok(9));
    assert_eq!(&out, b"peeked at");
    assert_eq!(engine().unread_bytes(server.socket.as_fd()), Some(Ok(0)));
}

#[test]
fn all_that_was_asked_for_is_waited_for() {
    let (client, server) = carried();
    let waiter = thread::spawn(move || {
        let mut out = vec![0; 300_000];
        assert_eq!(server.receive_with(&mut out, RecvFlags::WAITALL), Ok(300_000));
        assert!(out.iter().zip(0..).all(|(found, at)| *found == byte(at)));
    });
    let bytes: Vec<u8> = (0..300_000).map(byte).collect();
    bytes.chunks(999).for_each(|chunk| client.send_all(chunk));
    waiter.join().unwrap();
}

#[test]
fn one_thread_can_fill_its_own_connection() {
    let (client, server) = carried();
    // More than the window: what does not fit goes through the socket.
    let bytes: Vec<u8> = (0..1_000_000).map(byte).collect();
    client.send_all(&bytes);
    assert!(client.traffic().downs > 0);
    let mut out = vec![0; bytes.len()];
    server.receive_all(&mut out);
    assert!(out == bytes);
    // And it goes up again.
    let ups = client.traffic().ups;
    while client.traffic().ups == ups {
        client.send_all(b"again");
        server.receive_all(&mut [0; 5]);
    }
}

#[test]
fn sender_that_does_not_wait_is_told_when_both_paths_are_full() {
    let (client, server) = carried();
    let mut sent = 0;
    let full = loop {
        let bytes: Vec<u8> = (sent..sent + 10_000).map(byte).collect();
        match client.send_with(&bytes, SendFlags::DONTWAIT) {
            Ok(bytes) => sent += bytes as u64,
            Err(errno) => break errno,
        }
    };
    assert_eq!(full, Errno::AGAIN);
    let mut out = vec![0; sent as usize];
    server.receive_all(&mut out);
    assert!(out.iter().zip(0..).all(|(found, at)| *found == byte(at)));
}

#[test]
fn call_ends_with_its_socket_s_time_out() {
    let (_client, server) = carried();
    set_socket_timeout(&server.socket, Timeout::Recv, Some(Duration::from_millis(20))).unwrap();
    assert_eq!(server.receive(&mut [0; 4]), Err(Errno::AGAIN));
}

#[test]
fn end_comes_behind_the_window_s_bytes() {
    let (client, server) = carried();
    client.send_all(b"the last bytes");
    client.shut_down();
    let mut out = [0; 20];
    assert_eq!(server.receive(&mut out), Ok(14));
    assert_eq!(server.receive(&mut out), Ok(0));
    // The other direction goes on.
    server.send_all(b"still");
    assert_eq!(client.receive(&mut out), Ok(5));
}

#[test]
fn close_with_unread_bytes_is_a_reset() {
    let (client, server) = carried();
    client.send_all(b"never read");
    server.close();
    assert_eq!(client.receive(&mut [0; 8]), Err(Errno::CONNRESET));
}

#[test]
fn close_with_everything_read_is_an_end() {
    let (client, server) = carried();
    client.send_all(b"read");
    server.receive_all(&mut [0; 4]);
    server.send_all(b"bye");
    server.close();
    let mut out = [0; 8];
    assert_eq!(client.receive(&mut out), Ok(3));
    assert_eq!(client.receive(&mut out), Ok(0));
    // The kernel's answers to who sends to a socket that is closed.
    assert_eq!(client.send(b"once"), Ok(4));
    let started = Instant::now();
    while client.send(b"more") != Err(Errno::PIPE) {
        assert!(started.elapsed() < HANGS);
    }
}

#[test]
fn forbidden_connection_goes_on_through_the_kernel() {
    let (client, server) = carried();
    client.send_all(b"by the window");
    server.send_all(b"too");
    client.receive_all(&mut [0; 3]);
    engine().forbid(server.socket.as_fd(), Why::Option);
    assert_eq!(why(&server), Some(Why::Option));
    let mut out = [0; 32];
    assert_eq!(server.receive(&mut out[..6]), Ok(6));
    client.send_all(b", then by the socket");
    let mut filled = 6;
    while filled < 32 {
        filled += server.receive(&mut out[filled..]).unwrap();
    }
    assert_eq!(&out[..32], b"by the window, then by the socke");
    server.receive_all(&mut [0; 1]);
    let before = server.traffic().received_bytes;
    for _ in 0..100 {
        client.send_all(b"x");
        assert_eq!(server.receive(&mut out), Ok(1));
        server.send_all(b"y");
        client.receive_all(&mut out[..1]);
    }
    assert_eq!(server.traffic().received_bytes, before, "it is not read by the ledger any more");
}

#[test]
fn sleeping_thread_wakes_when_its_connection_is_forbidden_by_the_other_end() {
    let (client, server) = carried();
    let sleeper = thread::spawn(move || {
        let mut out = [0; 5];
        server.receive_all(&mut out);
        assert_eq!(&out, b"later");
    });
    // Long enough that it sleeps in most runs; what is checked holds also if it does not.
    thread::sleep(Duration::from_millis(5));
    engine().forbid(client.socket.as_fd(), Why::Passed);
    client.send_all(b"later");
    sleeper.join().unwrap();
}

#[test]
fn many_threads_share_an_end() {
    let (client, server) = carried();
    let total: u64 = thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let (mut out, mut bytes) = ([0; 100], 0);
                    loop {
                        match server.receive(&mut out).unwrap() {
                            0 => return bytes,
                            found => bytes += out[..found].iter().map(|byte| u64::from(*byte)).sum::<u64>(),
                        }
                    }
                })
            })
            .collect();
        thread::scope(|writers| {
            for _ in 0..3 {
                writers.spawn(|| (0..2_000).for_each(|_| client.send_all(&[1; 30])));
            }
        });
        client.shut_down();
        readers.into_iter().map(|reader| reader.join().unwrap()).sum()
    });
    assert_eq!(total, 3 * 2_000 * 30);
}

#[test]
fn number_is_another_connection_s_after_close() {
    let (client, server) = carried();
    let number = server.socket.as_raw_fd();
    server.close();
    assert!(!engine().is_known(number));
    drop(client);
    // More connections than were ever open at once: endpoints are used again.
    for _ in 0..20 {
        let (client, server) = carried();
        client.close();
        assert_eq!(server.receive(&mut [0; 1]), Ok(0));
        server.close();
    }
}

#[test]
fn receive_of_no_bytes_waits_for_some_and_leaves_them() {
    let (client, server) = carried();
    assert_eq!(server.receive_with(&mut [], RecvFlags::DONTWAIT), Err(Errno::AGAIN));
    client.send_all(b"some");
    assert_eq!(server.receive(&mut []), Ok(0));
    server.receive_all(&mut [0; 4]);
}

#[test]
fn bytes_that_are_thrown_away_are_counted_and_leave_the_buffer_as_it_is() {
    let (client, server) = carried();
    client.send_all(b"thrown away, kept");
    let mut out = [7; 13];
    assert_eq!(server.receive_with(&mut out, RecvFlags::TRUNC), Ok(13));
    assert_eq!(out, [7; 13]);
    server.receive_all(&mut out[..4]);
    assert_eq!(&out[..4], b"kept");
}

#[test]
fn call_that_waits_sends_all_though_its_connection_is_forbidden_meanwhile() {
    let (client, server) = carried();
    let bytes: Vec<u8> = (0..20_000_000).map(byte).collect();
    thread::scope(|scope| {
        let client = &client;
        let bytes = &bytes;
        let sender = scope.spawn(move || assert_eq!(client.send(bytes), Ok(bytes.len())));
        let mut out = vec![0; 5_000_000];
        server.receive_all(&mut out);
        assert!(out == bytes[..out.len()]);
        engine().forbid(client.socket.as_fd(), Why::Option);
        let mut rest = vec![0; bytes.len() - out.len()];
        server.receive_all(&mut rest);
        assert!(rest == bytes[out.len()..]);
        sender.join().unwrap();
    });
}
