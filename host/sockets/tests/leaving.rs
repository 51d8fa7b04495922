//! A process that the engine leaves in the middle of streams: no thread of the library is there behind it, and no byte is missing at either end.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

use beeline_socket_engine::Rest;
use beeline_socket_rules::{Rules, Why};
use rustix::io::Errno;
use rustix::net::sockopt;
use support::*;

/// A byte of the message that says that the messages are over.
const OVER: u8 = 0xff;

/// Two processes with a connection that is carried both ways.
fn both(serve: impl FnOnce(Connection), ask: impl FnOnce(Connection)) -> [Option<i32>; 2] {
    let (folder, listener) = (tempfile::tempdir().unwrap(), TcpListener::bind(("127.0.0.1", 0)).unwrap());
    let server = in_child(|| {
        let server = Connection::accepted(sockets(folder.path(), Rules::default()), &listener);
        let mut bytes = [0; 8];
        while bytes != [OVER; 8] {
            server.receive_all(&mut bytes);
            server.send_all(&bytes);
        }
        assert!(server.is_carried());
        serve(server);
    });
    let client = in_child(|| {
        let client = Connection::connected(sockets(folder.path(), Rules::default()), &listener);
        warm_up(&client);
        client.send_all(&[OVER; 8]);
        client.receive_all(&mut [0; 8]);
        ask(client);
    });
    [exit_of(client), exit_of(server)]
}

fn stream(range: std::ops::Range<u64>) -> Vec<u8> {
    range.map(byte).collect()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// The connection is the kernel's, and then the engine leaves.
fn leave(connection: &Connection, rest: Rest) -> bool {
    let (engine, until) = (connection.sockets(), Instant::now() + HANGS);
    assert!(engine.hand_over_if_unused(connection.socket.as_fd(), Why::Seccomp, until));
    engine.leave(0..connection.socket.as_raw_fd() + 1, rest)
}

#[test]
fn process_that_the_engine_has_left_has_one_thread_and_every_byte_in_its_socket() {
    let (mut has_sent, mut tell) = std::io::pipe().unwrap();
    let (mut has_left, mut left) = std::io::pipe().unwrap();
    let serve = |server: Connection| {
        server.send_all(&stream(0..1000));
        has_sent.read_exact(&mut [0]).unwrap();
        assert!(threads() > 1);
        assert!(leave(&server, Rest::IsLost));
        assert_eq!(threads(), 1);
        assert!(!server.sockets().is_known(server.socket.as_raw_fd()));
        left.write_all(&[0]).unwrap();
        let (mut socket, mut out) = (&server.socket, vec![0; 2000]);
        socket.read_exact(&mut out).unwrap();
        assert!(out == stream(0..2000));
        socket.write_all(&stream(1000..2000)).unwrap();
    };
    let ask = |client: Connection| {
        client.send_all(&stream(0..1000));
        tell.write_all(&[0]).unwrap();
        has_left.read_exact(&mut [0]).unwrap();
        client.send_all(&stream(1000..2000));
        // The first of them lie in a window of which the sender knows nothing any more.
        let mut out = vec![0; 2000];
        client.receive_all(&mut out);
        assert!(out == stream(0..2000));
        assert_eq!(client.receive(&mut [0]), Ok(0));
    };
    assert_eq!(both(serve, ask), [Some(0); 2]);
}

#[test]
fn bytes_that_came_back_and_have_no_room_keep_the_engine_or_reset_their_connection() {
    const TOTAL: u64 = 3 << 20;
    for rest in [Rest::IsDone, Rest::IsLost] {
        let (mut has_sent, mut tell) = std::io::pipe().unwrap();
        let (mut is_over, mut over) = std::io::pipe().unwrap();
        let (mut has_left, mut left) = std::io::pipe().unwrap();
        let serve = |server: Connection| {
            has_sent.read_exact(&mut [0]).unwrap();
            let until = Instant::now() + HANGS;
            assert!(server.sockets().hand_over(server.socket.as_fd(), Why::Executed, until));
            over.write_all(&[0]).unwrap();
            has_left.read_exact(&mut [0]).unwrap();
            let (mut socket, mut out) = (&server.socket, Vec::new());
            socket.set_read_timeout(Some(HANGS)).unwrap();
            let ended = socket.read_to_end(&mut out);
            match rest {
                Rest::IsDone => {
                    assert!(ended.is_ok() && out == stream(0..TOTAL + 4), "{ended:?} {}", out.len())
                }
                Rest::IsLost => {
                    assert_eq!(
                        ended.unwrap_err().raw_os_error(),
                        Some(Errno::CONNRESET.raw_os_error()),
                        "{}",
                        out.len()
                    );
                }
            }
        };
        let ask = |client: Connection| {
            client.send_all(&stream(0..TOTAL));
            sockopt::set_socket_send_buffer_size(&client.socket, 64 << 10).unwrap();
            tell.write_all(&[0]).unwrap();
            is_over.read_exact(&mut [0]).unwrap();
            let engine = client.sockets();
            let has_left = engine.leave(0..client.socket.as_raw_fd() + 1, rest);
            assert_eq!(has_left, rest == Rest::IsLost);
            left.write_all(&[0]).unwrap();
            if rest == Rest::IsDone {
                // Behind what came back.
                client.send_all(&stream(TOTAL..TOTAL + 4));
                client.close();
                engine.end();
            }
        };
        assert_eq!(both(serve, ask), [Some(0); 2], "{rest:?}");
    }
}

#[test]
fn child_that_the_engine_leaves_does_not_touch_what_its_parent_has_used_since() {
    let (mut is_used, mut used) = std::io::pipe().unwrap();
    let (mut has_left, mut left) = std::io::pipe().unwrap();
    let serve = |server: Connection| {
        let child = in_fork(server.sockets(), || {
            is_used.read_exact(&mut [0]).unwrap();
            assert!(leave(&server, Rest::IsLost));
            left.write_all(&[0]).unwrap();
        });
        let mut out = [0; 8];
        server.receive_all(&mut out);
        server.send_all(&out);
        used.write_all(&[0]).unwrap();
        has_left.read_exact(&mut [0]).unwrap();
        assert_eq!(exit_of(child), Some(0));
        let before = server.traffic();
        server.receive_all(&mut out);
        server.send_all(&out);
        let traffic = server.traffic();
        assert_eq!(server.why(), None);
        assert_eq!(traffic.received_by_window_bytes, before.received_by_window_bytes + 8);
    };
    let ask = |client: Connection| {
        for _ in 0..2 {
            client.send_all(&[1; 8]);
            client.receive_all(&mut [0; 8]);
        }
    };
    assert_eq!(both(serve, ask), [Some(0); 2]);
}
