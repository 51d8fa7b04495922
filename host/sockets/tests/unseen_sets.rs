//! Connections that a program waits for in a set that it made by system calls of its own: nobody tells the engine of it, and they stay with the kernel.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::net::TcpListener;

use beeline_socket_engine::Sockets;
use beeline_socket_rules::{Rules, Why};
use rustix::event::{Timespec, epoll};
use support::*;

/// Messages of a connection: more than it needs to leave the kernel, were it allowed to, also where its thread gets no core for a while.
const MESSAGES: u64 = 20_000;
const WAITS: Timespec = Timespec { tv_sec: HANGS.as_secs().cast_signed(), tv_nsec: 0 };

/// A set, and the only connection in it.
struct Waiting {
    set: std::os::fd::OwnedFd,
    connection: Connection,
}

impl Waiting {
    fn new(connection: Connection) -> Self {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        epoll::add(&set, &connection.socket, epoll::EventData::new_u64(0), epoll::EventFlags::IN).unwrap();
        Waiting { set, connection }
    }

    fn receive(&self, out: &mut [u8]) -> usize {
        let mut told = Vec::with_capacity(1);
        epoll::wait(&self.set, rustix::buffer::spare_capacity(&mut told), Some(&WAITS)).unwrap();
        assert_eq!(told.len(), 1, "nothing came: {:?}", self.connection.traffic());
        self.connection.receive(out).unwrap()
    }
}

/// Sends back what comes, which the set has to tell of each time.
fn answer_as_told(sockets: &'static Sockets, listener: &TcpListener) {
    let waiting = Waiting::new(Connection::accepted(sockets, listener));
    let mut bytes = [0; 64];
    loop {
        match waiting.receive(&mut bytes) {
            0 => break,
            received => waiting.connection.send_all(&bytes[..received]),
        }
    }
    let Waiting { connection, .. } = waiting;
    assert_eq!((connection.why(), connection.traffic().received_by_window_bytes), (Some(Why::Poll), 0));
    connection.close();
}

#[test]
fn connection_in_a_set_that_nobody_saw_made_stays_with_the_kernel_and_is_told_of() {
    let (folder, listener) = (tempfile::tempdir().unwrap(), TcpListener::bind(("127.0.0.1", 0)).unwrap());
    let server = in_child(|| answer_as_told(sockets(folder.path(), Rules::default()), &listener));
    let client = in_child(|| {
        let client = Connection::connected(sockets(folder.path(), Rules::default()), &listener);
        for number in 0..MESSAGES {
            client.send_all(&number.to_le_bytes());
            let mut answer = [0; 8];
            client.receive_all(&mut answer);
            assert_eq!(u64::from_le_bytes(answer), number);
        }
        assert!(!client.is_carried(), "{:?}", client.traffic());
        client.shut_down();
        assert_eq!(client.receive(&mut [0]), Ok(0));
    });
    assert_eq!((exit_of(client), exit_of(server)), (Some(0), Some(0)));
}

/// Sets that are seen, and those without the connection, are none of these.
#[test]
fn connection_beside_sets_that_were_seen_or_have_others_is_carried() {
    let (folder, listener) = (tempfile::tempdir().unwrap(), TcpListener::bind(("127.0.0.1", 0)).unwrap());
    let server = in_child(|| {
        let server = Connection::accepted(sockets(folder.path(), Rules::default()), &listener);
        answer(&server);
    });
    let client = in_child(|| {
        let unseen = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        epoll::add(&unseen, &listener, epoll::EventData::new_u64(0), epoll::EventFlags::IN).unwrap();
        let client = Connection::connected(sockets(folder.path(), Rules::default()), &listener);
        warm_up(&client);
        client.shut_down();
        assert_eq!(client.receive(&mut [0]), Ok(0));
    });
    assert_eq!((exit_of(client), exit_of(server)), (Some(0), Some(0)));
}
