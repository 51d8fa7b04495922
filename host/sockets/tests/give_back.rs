//! Sockets that somebody else uses from the middle of a stream on: who knows of no windows finds every byte there, once and in order.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use beeline_socket_rules::{Rules, Why};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use support::*;

/// A byte of the first message that says that the messages are over.
const OVER: u8 = 0xff;

fn listener() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).unwrap()
}

/// Numbers that a seed gives.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Has both directions carried, and both sides know that.
fn warm_up_and_say_so(client: &Connection) {
    warm_up(client);
    client.send_all(&[OVER; 8]);
    client.receive_all(&mut [0; 8]);
}

/// The other side of [`warm_up_and_say_so`].
fn answer_until_over(server: &Connection) {
    let mut bytes = [0; 8];
    while bytes != [OVER; 8] {
        server.receive_all(&mut bytes);
        server.send_all(&bytes);
    }
    assert!(server.is_carried());
}

fn hand_over(connection: &Connection) -> bool {
    let until = Instant::now() + HANGS;
    connection.sockets().hand_over(connection.socket.as_fd(), Why::Executed, until)
}

/// Whether every thread of a process has come to its stop: one that has not may answer still.
fn is_stopped(process: Pid) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())).unwrap();
    let mut stats =
        threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap());
    stats.all(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')))
}

/// Bytes of a direction's stream: two streams have other ones.
fn bytes_of(stream: u64, range: std::ops::Range<u64>) -> Vec<u8> {
    range.map(|at| byte(at + (stream << 40))).collect()
}

fn send_stream(connection: &Connection, stream: u64, total: u64, random: &mut Random) {
    let mut sent = 0;
    while sent < total {
        let most = [50, 3_000, 200_000][random.below(3) as usize];
        let end = total.min(sent + 1 + random.below(most));
        connection.send_all(&bytes_of(stream, sent..end));
        sent = end;
    }
}

fn receive_stream(
    mut receive: impl FnMut(&mut [u8]) -> usize,
    stream: u64,
    range: std::ops::Range<u64>,
    random: &mut Random,
) {
    let mut at = range.start;
    while at < range.end {
        let most = (1 + random.below(100_000)).min(range.end - at);
        let mut out = vec![0; most as usize];
        let found = receive(&mut out);
        assert!(found > 0, "it ended at {at}");
        assert!(out[..found] == bytes_of(stream, at..at + found as u64), "wrong behind {at}");
        at += found as u64;
    }
}

/// Two processes: one hands its socket over, and the other one knows nothing of that.
fn both(serve: impl FnOnce(Connection), ask: impl FnOnce(Connection)) -> [Option<i32>; 2] {
    let (folder, listener) = (tempfile::tempdir().unwrap(), listener());
    let server = in_child(|| {
        let server = Connection::accepted(sockets(folder.path(), Rules::default()), &listener);
        answer_until_over(&server);
        serve(server);
    });
    let client = in_child(|| {
        let client = Connection::connected(sockets(folder.path(), Rules::default()), &listener);
        warm_up_and_say_so(&client);
        ask(client);
    });
    [exit_of(client), exit_of(server)]
}

/// What the socket has until its end, as one who knows of no windows reads it.
fn rest_of(connection: &Connection) -> std::io::Result<Vec<u8>> {
    let (mut out, mut socket) = (Vec::new(), &connection.socket);
    socket.set_read_timeout(Some(HANGS))?;
    socket.read_to_end(&mut out)?;
    Ok(out)
}

#[test]
fn socket_that_is_handed_over_within_streams_has_every_byte_once_and_in_order() {
    const TOTAL: u64 = 3_000_000;
    for seed in 0..12 {
        let serve = |server: Connection| {
            let random = &mut Random(seed);
            let (by_engine, sent_by_engine) = (random.below(TOTAL), random.below(60_000));
            server.send_all(&bytes_of(1, 0..sent_by_engine));
            let receive = |out: &mut [u8]| server.receive(out).unwrap();
            receive_stream(receive, 0, 0..by_engine, random);
            assert!(hand_over(&server), "seed {seed}");
            // As a program that does not have the engine.
            let mut socket = &server.socket;
            let rest = thread::spawn({
                let mut socket = server.socket.try_clone().unwrap();
                move || socket.write_all(&bytes_of(1, sent_by_engine..TOTAL)).unwrap()
            });
            let receive = |out: &mut [u8]| socket.read(out).unwrap();
            receive_stream(receive, 0, by_engine..TOTAL, random);
            rest.join().unwrap();
            assert_eq!(socket.read(&mut [0]).unwrap(), 0);
        };
        let ask = |client: Connection| {
            thread::scope(|scope| {
                scope.spawn(|| send_stream(&client, 0, TOTAL, &mut Random(seed + 100)));
                let receive = |out: &mut [u8]| client.receive(out).unwrap();
                receive_stream(receive, 1, 0..TOTAL, &mut Random(seed + 200));
            });
            client.shut_down();
        };
        assert_eq!(both(serve, ask), [Some(0); 2], "seed {seed}");
    }
}

#[test]
fn unread_bytes_of_both_paths_come_again_by_the_socket() {
    const TOTAL: u64 = 1 << 20;
    let (mut has_sent, mut tell) = std::io::pipe().unwrap();
    let serve = |server: Connection| {
        has_sent.read_exact(&mut [0]).unwrap();
        assert!(hand_over(&server));
        let mut socket = &server.socket;
        let mut out = vec![0; TOTAL as usize];
        socket.read_exact(&mut out).unwrap();
        assert!(out == bytes_of(0, 0..TOTAL));
        socket.write_all(b"by the socket").unwrap();
    };
    let ask = |client: Connection| {
        let before = client.traffic();
        send_stream(&client, 0, TOTAL, &mut Random(1));
        let traffic = client.traffic();
        let by_window = traffic.sent_by_window_bytes - before.sent_by_window_bytes;
        assert!(by_window > 10_000 && by_window < TOTAL / 2, "{traffic:?}");
        tell.write_all(&[0]).unwrap();
        let mut out = [0; 13];
        client.receive_all(&mut out);
        assert_eq!(&out, b"by the socket");
    };
    assert_eq!(both(serve, ask), [Some(0); 2]);
}

#[test]
fn bytes_that_come_back_are_sent_though_their_program_has_closed_and_ended() {
    const TOTAL: u64 = 3 << 20;
    let (mut has_sent, mut tell) = std::io::pipe().unwrap();
    let (mut is_over, mut over) = std::io::pipe().unwrap();
    let serve = |server: Connection| {
        has_sent.read_exact(&mut [0]).unwrap();
        assert!(hand_over(&server));
        over.write_all(&[0]).unwrap();
        let out = rest_of(&server).unwrap();
        assert!(out == bytes_of(0, 0..TOTAL), "{} bytes", out.len());
    };
    let ask = |client: Connection| {
        send_stream(&client, 0, TOTAL, &mut Random(1));
        // Hardly anything of what comes back has room before it is read.
        rustix::net::sockopt::set_socket_send_buffer_size(&client.socket, 64 << 10).unwrap();
        tell.write_all(&[0]).unwrap();
        is_over.read_exact(&mut [0]).unwrap();
        let sockets = client.sockets();
        client.close();
        sockets.end();
    };
    assert_eq!(both(serve, ask), [Some(0); 2]);
}

#[test]
fn what_the_kernel_alone_sends_comes_behind_bytes_that_come_back() {
    const TOTAL: u64 = 3 << 20;
    let (mut has_sent, mut tell) = std::io::pipe().unwrap();
    let (mut is_over, mut over) = std::io::pipe().unwrap();
    let (mut may_read, mut let_read) = std::io::pipe().unwrap();
    let serve = |server: Connection| {
        has_sent.read_exact(&mut [0]).unwrap();
        assert!(hand_over(&server));
        over.write_all(&[0]).unwrap();
        may_read.read_exact(&mut [0]).unwrap();
        let out = rest_of(&server).unwrap();
        assert!(out == [&bytes_of(0, 0..TOTAL)[..], b"behind"].concat(), "{} bytes", out.len());
    };
    let ask = |client: Connection| {
        send_stream(&client, 0, TOTAL, &mut Random(1));
        // Hardly anything of what comes back has room before it is read.
        rustix::net::sockopt::set_socket_send_buffer_size(&client.socket, 64 << 10).unwrap();
        tell.write_all(&[0]).unwrap();
        is_over.read_exact(&mut [0]).unwrap();
        let (sockets, socket) = (client.sockets(), client.socket.as_fd());
        sockets.forbid(socket, Why::OutOfBand);
        let is_settled = sockets.settle_sending(socket, false);
        let_read.write_all(&[0]).unwrap();
        assert!(!is_settled, "nobody had read what was owed");
        assert!(sockets.settle_sending(socket, true));
        (&client.socket).write_all(b"behind").unwrap();
        client.close();
    };
    assert_eq!(both(serve, ask), [Some(0); 2]);
}

#[test]
fn connection_ends_when_a_program_that_forked_and_sends_no_more_closes_it_behind_bytes_that_came_back() {
    let (mut has_sent, mut tell) = std::io::pipe().unwrap();
    let (mut is_over, mut over) = std::io::pipe().unwrap();
    let (mut has_ended, mut ended) = std::io::pipe().unwrap();
    let serve = |server: Connection| {
        has_sent.read_exact(&mut [0]).unwrap();
        assert!(hand_over(&server));
        over.write_all(&[0]).unwrap();
        let out = rest_of(&server);
        ended.write_all(&[0]).unwrap();
        assert!(out.unwrap() == bytes_of(0, 0..1000));
    };
    let ask = |client: Connection| {
        client.send_all(&bytes_of(0, 0..1000));
        tell.write_all(&[0]).unwrap();
        is_over.read_exact(&mut [0]).unwrap();
        // Of which nobody knows whether it uses the connection, so that this process does not end it for both.
        let child = in_fork(client.sockets(), || {});
        assert_eq!(exit_of(child), Some(0));
        client.close();
        has_ended.read_exact(&mut [0]).unwrap();
    };
    assert_eq!(both(serve, ask), [Some(0); 2]);
}

#[test]
fn nothing_is_given_back_where_the_other_process_is_stopped_and_no_byte_is_wrong() {
    let (mut has_sent, mut tell) = std::io::pipe().unwrap();
    let (mut has_asked, mut asked) = std::io::pipe().unwrap();
    let serve = |server: Connection| {
        has_sent.read_exact(&mut [0]).unwrap();
        let until = Instant::now() + Duration::from_millis(50);
        let is_back = server.sockets().hand_over(server.socket.as_fd(), Why::Executed, until);
        asked.write_all(&[0]).unwrap();
        assert!(!is_back);
        // It is still received by who knows of windows.
        let mut out = [0; 1000];
        server.receive_all(&mut out);
        assert!(out[..] == bytes_of(0, 0..1000));
        // Nothing is in the window then, so that nobody has to answer.
        server.send_all(&[OVER]);
        server.receive_all(&mut out);
        assert!(out[..] == bytes_of(0, 1000..2000));
    };
    let ask = |client: Connection| {
        client.send_all(&bytes_of(0, 0..1000));
        let own = rustix::process::getpid();
        let waker = in_child(|| {
            kill_process(own, Signal::STOP).unwrap();
            while !is_stopped(own) {
                thread::yield_now();
            }
            tell.write_all(&[0]).unwrap();
            has_asked.read_exact(&mut [0]).unwrap();
            kill_process(own, Signal::CONT).unwrap();
        });
        exit_of(waker);
        client.receive_all(&mut [0]);
        client.send_all(&bytes_of(0, 1000..2000));
    };
    assert_eq!(both(serve, ask), [Some(0); 2]);
}

#[test]
fn bytes_of_a_process_that_was_killed_cannot_be_given_back() {
    for leaves_unread in [false, true] {
        let (mut is_dead, mut tell) = std::io::pipe().unwrap();
        let serve = |server: Connection| {
            is_dead.read_exact(&mut [0]).unwrap();
            assert_eq!(hand_over(&server), !leaves_unread);
            if leaves_unread {
                server.sockets().reset(server.socket.as_fd());
                let mut socket = &server.socket;
                let error = socket.read(&mut [0]).unwrap_err();
                assert_eq!(error.raw_os_error(), Some(Errno::CONNRESET.raw_os_error()));
            }
        };
        let ask = |client: Connection| {
            if leaves_unread {
                client.send_all(b"unread");
            }
            let own = rustix::process::getpid();
            let _killer = in_child(|| {
                // It has something to say behind the end of who made it.
                set_parent_process_death_signal(None).unwrap();
                kill_process(own, Signal::KILL).unwrap();
                // The kernel has closed its sockets once nobody has this pipe open but this child.
                tell.write_all(&[0]).unwrap();
            });
            thread::sleep(HANGS);
        };
        assert_eq!(both(serve, ask), [None, Some(0)], "{leaves_unread}");
    }
}

#[test]
fn child_and_parent_use_a_connection_in_turn_as_one_of_the_kernel() {
    let serve = |server: Connection| {
        let child = in_fork(server.sockets(), || {
            let mut out = [0; 1000];
            server.receive_all(&mut out);
            assert!(out[..] == bytes_of(0, 0..1000));
            server.send_all(&[1]);
        });
        assert_eq!(exit_of(child), Some(0));
        let mut out = [0; 1000];
        server.receive_all(&mut out);
        assert!(out[..] == bytes_of(0, 1000..2000));
        server.send_all(&[2]);
    };
    let ask = |client: Connection| {
        client.send_all(&bytes_of(0, 0..2000));
        let mut out = [0; 2];
        client.receive_all(&mut out);
        assert_eq!(out, [1, 2]);
    };
    assert_eq!(both(serve, ask), [Some(0); 2]);
}

#[test]
fn child_sends_behind_bytes_that_came_back_to_its_parent() {
    let (mut has_sent, mut tell) = std::io::pipe().unwrap();
    let (mut is_over, mut over) = std::io::pipe().unwrap();
    let serve = |server: Connection| {
        has_sent.read_exact(&mut [0]).unwrap();
        assert!(hand_over(&server));
        over.write_all(&[0]).unwrap();
        let out = rest_of(&server).unwrap();
        assert!(out == bytes_of(0, 0..2000), "{} bytes", out.len());
    };
    let ask = |client: Connection| {
        client.send_all(&bytes_of(0, 0..1000));
        tell.write_all(&[0]).unwrap();
        is_over.read_exact(&mut [0]).unwrap();
        let child = in_fork(client.sockets(), || client.send_all(&bytes_of(0, 1000..2000)));
        client.close();
        assert_eq!(exit_of(child), Some(0));
    };
    assert_eq!(both(serve, ask), [Some(0); 2]);
}

#[test]
fn child_hands_over_one_end_of_a_connection_of_which_its_parent_has_both() {
    let (folder, listener) = (tempfile::tempdir().unwrap(), listener());
    let parent = in_child(|| {
        let engine = sockets(folder.path(), Rules::default());
        let client = Connection::connected(engine, &listener);
        let server = Connection::accepted(engine, &listener);
        let started = Instant::now();
        while !(client.is_carried() && server.is_carried()) {
            assert!(started.elapsed() < HANGS, "not carried: {:?} {:?}", client.traffic(), server.traffic());
            for (from, to) in [(&client, &server), (&server, &client)] {
                from.send_all(&[OVER; 8]);
                to.receive_all(&mut [0; 8]);
            }
        }
        client.send_all(&bytes_of(0, 0..1000));
        let child = in_fork(engine, || {
            assert!(hand_over(&server));
            let mut socket = &server.socket;
            socket.set_read_timeout(Some(HANGS)).unwrap();
            let mut out = [0; 1000];
            socket.read_exact(&mut out).unwrap();
            assert!(out[..] == bytes_of(0, 0..1000));
        });
        assert_eq!(exit_of(child), Some(0));
    });
    assert_eq!(exit_of(parent), Some(0));
}
