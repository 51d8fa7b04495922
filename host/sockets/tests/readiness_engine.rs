//! Connections of the engine in sets and polls: they begin, and wake who sleeps there.
#![cfg(not(loom))]
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod readiness;
mod support;

use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use beeline_socket_engine::readiness::{Change, PollEntry, poll};
use beeline_socket_engine::{Carried, OwnBell, Sockets};
use beeline_socket_rules::{Rules, Spin, Why};
use readiness::{Real, event, room};
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use support::*;

const NEVER: Spin = Spin::For(Duration::ZERO);

fn engine() -> &'static Sockets {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().unwrap());
    sockets(folder.path(), Rules::default())
}

/// Connections that tests drop are closed by a call that the engine does not see, and their numbers are other tests' at once.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A set with one connection.
struct Server {
    epoll: OwnedFd,
    connection: Connection,
}

impl Server {
    fn new(connection: Connection, flags: EventFlags) -> Self {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let sets = engine().sets();
        sets.created(epoll.as_raw_fd());
        let number = connection.socket.as_raw_fd();
        epoll::add(&epoll, &connection.socket, epoll::EventData::new_u64(5), flags).unwrap();
        let watched = engine().endpoint(number);
        let _ = sets.changed(
            epoll.as_fd(),
            Change::Add,
            number,
            watched.map(Carried::Connection),
            event(5, flags),
        );
        Server { epoll, connection }
    }

    /// Sends back what comes, until the end.
    fn answer(&self, spin: Spin) {
        let set = engine().sets().find(self.epoll.as_raw_fd()).unwrap();
        let (mut out, mut bytes) = (room(4), [0; 256]);
        loop {
            let ready = set.wait(&mut Real::new(&self.epoll), &mut out, Some(2 * HANGS), spin).unwrap();
            assert!(ready == 1 && out[0].data.u64() == 5);
            loop {
                match self.connection.receive_with(&mut bytes, RecvFlags::DONTWAIT) {
                    Ok(0) => return,
                    Ok(received) => self.connection.send_all(&bytes[..received]),
                    Err(errno) => break assert_eq!(errno, Errno::AGAIN),
                }
            }
        }
    }
}

impl Drop for Server {
    /// As hooks tell of a close. Otherwise the number, which is another connection's at once, is in two sets, and that one stays with the kernel.
    fn drop(&mut self) {
        engine().sets().closed(self.connection.socket.as_raw_fd());
        engine().close(self.connection.socket.as_fd());
        engine().sets().closed(self.epoll.as_raw_fd());
    }
}

fn ends() -> (Connection, Connection) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let client = Connection::connected(engine(), &listener);
    let server = Connection::accepted(engine(), &listener);
    (client, server)
}

fn served(flags: EventFlags, spin: Spin) {
    let (client, server) = ends();
    thread::scope(|scope| {
        scope.spawn(|| Server::new(server, flags).answer(spin));
        warm_up(&client);
        for turn in 0_u64..3000 {
            client.send_all(&turn.to_le_bytes());
            let mut answer = [0; 8];
            client.receive_all(&mut answer);
            assert_eq!(u64::from_le_bytes(answer), turn);
        }
        assert!(client.traffic().received_by_window_bytes > 8 * 2900);
        client.shut_down();
    });
}

#[test]
fn connection_in_a_set_begins_and_wakes_who_sleeps_there() {
    let _alone = alone();
    served(EventFlags::IN, NEVER);
    served(EventFlags::IN | EventFlags::OUT | EventFlags::ET, Spin::For(Duration::from_micros(20)));
}

#[test]
fn one_shot_member_stays_with_the_kernel() {
    let _alone = alone();
    let (client, server) = ends();
    let set = Server::new(server, EventFlags::IN | EventFlags::ONESHOT);
    let server = &set.connection;
    let started = Instant::now();
    let why = || engine().endpoint(server.socket.as_raw_fd()).and_then(|endpoint| endpoint.why());
    while why().is_none() {
        assert!(started.elapsed() < HANGS);
        for (from, to) in [(&client, server), (server, &client)] {
            from.send_all(b"x");
            to.receive_all(&mut [0]);
        }
    }
    assert_eq!(why(), Some(Why::SetOneShot));
    assert_eq!(server.traffic().received_by_window_bytes, 0);
}

#[test]
fn connection_in_a_poll_begins_and_wakes_who_sleeps_there() {
    let _alone = alone();
    let (client, server) = ends();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut bytes = [0; 256];
            let mut kernel = Real::of_polls();
            loop {
                let mut entries = [PollEntry { number: server.socket.as_raw_fd(), asked: 1, told: 0 }];
                let bell = || OwnBell::of_this_thread().ok();
                let limit = Some(HANGS);
                assert_eq!(poll(engine(), &mut entries, &mut kernel, limit, NEVER, bell), Ok(1));
                match server.receive_with(&mut bytes, RecvFlags::DONTWAIT) {
                    Ok(0) => break,
                    Ok(received) => server.send_all(&bytes[..received]),
                    Err(errno) => assert_eq!(errno, Errno::AGAIN),
                }
            }
        });
        warm_up(&client);
        for _ in 0..1000 {
            client.send_all(b"abcdefgh");
            client.receive_all(&mut [0; 8]);
        }
        client.shut_down();
    });
}

/// As nginx does: behind an edge it receives once, and what has less than there was room for was all.
#[test]
fn edge_is_told_for_bytes_of_the_window_behind_those_of_the_socket() {
    let _alone = alone();
    const BURST: usize = 40;
    for _ in 0..30 {
        let (client, server) = ends();
        thread::scope(|scope| {
            scope.spawn(|| {
                let server = Server::new(server, EventFlags::IN | EventFlags::ET);
                let set = engine().sets().find(server.epoll.as_raw_fd()).unwrap();
                let (mut out, mut bytes) = (room(4), vec![0; 1 << 16]);
                loop {
                    let ready =
                        set.wait(&mut Real::new(&server.epoll), &mut out, Some(HANGS), NEVER).unwrap();
                    assert_eq!(ready, 1, "it is told of nothing, and bytes are missing");
                    match server.connection.receive_with(&mut bytes, RecvFlags::DONTWAIT) {
                        Ok(0) => break,
                        Ok(received) => server.connection.send_all(&bytes[..received]),
                        Err(errno) => assert_eq!(errno, Errno::AGAIN),
                    }
                }
            });
            // Several messages are under way when the window begins.
            let started = Instant::now();
            while client.traffic().sent_by_window_bytes < 100 * 8 {
                assert!(started.elapsed() < HANGS, "not carried: {:?}, {:?}", client.traffic(), client.why());
                for message in 0_u64..BURST as u64 {
                    client.send_all(&message.to_le_bytes());
                }
                client.receive_all(&mut [0; 8 * BURST]);
            }
            client.shut_down();
        });
    }
}
