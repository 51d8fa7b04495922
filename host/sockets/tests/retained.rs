//! Connections of which copies are kept: windows that somebody writes over cost no byte, and neither program is told.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

#[path = "support/scribbles.rs"]
mod scribbles;
mod support;

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use beeline_socket_engine::switch;
use beeline_socket_rules::{Retain, Rules, Why};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, RngExt, SeedableRng};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::process::Pid;
use scribbles::Windows;
use support::*;

fn copies() -> Rules {
    Rules { retain: Retain::Copy, ..Rules::default() }
}

/// Bytes of a stream of one direction, and how far one end is ahead.
const STREAM: u64 = 1_500_000;
const AHEAD: u64 = 40_000;
const MOST_PIECE: u64 = 9_000;

/// Sends a stream and checks the one that comes, of the seed's pieces, until both have ended.
fn both_ways(connection: &Connection, random: &mut Xoshiro256PlusPlus) {
    let (mut sent, mut received, mut out) = (0, 0, vec![0; MOST_PIECE as usize]);
    let mut has_shut = false;
    loop {
        while sent < STREAM && sent < received + AHEAD {
            let piece = random.random_range(1..=MOST_PIECE.min(STREAM - sent));
            let bytes: Vec<u8> = (sent..sent + piece).map(byte).collect();
            connection.send_all(&bytes);
            sent += piece;
        }
        if sent == STREAM && !has_shut {
            connection.shut_down();
            has_shut = true;
        }
        let most = random.random_range(1..=out.len());
        match connection.receive(&mut out[..most]).unwrap() {
            0 => break,
            bytes => {
                let wrong = out[..bytes].iter().zip(received..).position(|(found, at)| *found != byte(at));
                assert_eq!(
                    wrong,
                    None,
                    "behind {received}: {:?}, {:?}",
                    connection.traffic(),
                    connection.why()
                );
                received += bytes as u64;
            }
        }
    }
    assert_eq!((sent, received), (STREAM, STREAM), "{:?}", connection.why());
}

/// Stores something anywhere in a window: anything, nothing, or what stands elsewhere in it.
fn scribble(windows: &Windows, slots: u64, random: &mut Xoshiro256PlusPlus) {
    let (slot, direction) = (random.random_range(0..slots), random.random_range(0..2));
    let window_bytes = u64::from(Rules::default().window_bytes);
    let mut bytes = vec![0; random.random_range(1..200)];
    let mut at = random.random_range(0..window_bytes - 200);
    match random.random_range(0..4) {
        0 => random.fill_bytes(&mut bytes),
        1 => {}
        2 => windows.read(slot, direction, random.random_range(0..window_bytes - 200), &mut bytes),
        _ => {
            // A whole message where another one belongs.
            at &= !63;
            bytes = vec![0; 64];
            windows.read(slot, direction, random.random_range(0..window_bytes / 64) * 64, &mut bytes);
        }
    }
    windows.write(slot, direction, at, &bytes);
}

/// Connections of two processes at most, and slots that they have, one after the other.
const MOST_CONNECTIONS: u32 = 300;
const SLOTS: u64 = 6;

/// Runs connections of two processes one after the other while their windows are written over all the time, until so many have lost one.
fn streams_are_exact(rules: [Rules; 2], wanted: u32, seed: u64, meanwhile: impl Fn(&Path)) {
    let (folder, listener) = (tempfile::tempdir().unwrap(), TcpListener::bind(("127.0.0.1", 0)).unwrap());
    let (mut goes_on, mut say) = std::io::pipe().unwrap();
    let random = |end: u64| Xoshiro256PlusPlus::seed_from_u64(seed * 3 + end);
    let server = in_child(|| {
        let (sockets, mut random, mut more) = (sockets(folder.path(), rules[0].clone()), random(0), [1]);
        while more == [1] {
            let connection = Connection::accepted(sockets, &listener);
            both_ways(&connection, &mut random);
            connection.close();
            goes_on.read_exact(&mut more).unwrap();
        }
    });
    let client = in_child(|| {
        let (sockets, mut random, mut lost) = (sockets(folder.path(), rules[1].clone()), random(1), 0);
        for number in 1.. {
            let connection = Connection::connected(sockets, &listener);
            both_ways(&connection, &mut random);
            lost += u32::from(connection.why() == Some(Why::Broken));
            connection.close();
            let has_enough = lost == wanted || number == MOST_CONNECTIONS;
            say.write_all(&[u8::from(!has_enough)]).unwrap();
            if has_enough {
                break;
            }
        }
        assert_eq!(lost, wanted, "windows were lost");
    });
    let (mut random, pid) = (random(2), server.as_raw_nonzero().to_string());
    let mut windows = None;
    while ![server, client].into_iter().any(has_ended) {
        windows = windows.or_else(|| Windows::of(&pid));
        if let Some(windows) = &windows {
            (0..50).for_each(|_| scribble(windows, SLOTS, &mut random));
        }
        meanwhile(folder.path());
        std::thread::sleep(Duration::from_micros(200));
    }
    drop(say);
    assert_eq!([server, client].map(exit_of), [Some(0), Some(0)], "seed {seed}");
}

/// Whether a child has ended, and is to be waited for still.
fn has_ended(process: Pid) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(process), options).unwrap().is_some()
}

#[test]
fn streams_are_exact_while_windows_are_written_over() {
    for seed in 0..3 {
        streams_are_exact([copies(), copies()], 12, seed, |_| {});
    }
}

#[test]
fn streams_are_exact_where_one_end_alone_wants_copies() {
    streams_are_exact([copies(), Rules::default()], 4, 10, |_| {});
    streams_are_exact([Rules::default(), copies()], 4, 11, |_| {});
}

#[test]
fn streams_are_exact_while_windows_are_ordered_down_and_up_too() {
    streams_are_exact([copies(), copies()], 12, 20, |folder| {
        for to in [beeline_socket_rules::Windows::Down, beeline_socket_rules::Windows::Up] {
            let _ = switch(&folder.join("d"), &[], to, Duration::from_millis(2));
        }
    });
}

#[test]
#[ignore = "long"]
fn streams_are_exact_while_windows_are_written_over_for_long() {
    for seed in 100..160 {
        streams_are_exact([copies(), copies()], 12, seed, |_| {});
    }
}

/// What is written over windows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum With {
    Nothing,
    Garbage,
    Blanks,
}

/// What the sender does behind its last byte, before the window is written over.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// It keeps its connection, and never sends again.
    Sleeps,
    ShutsDown,
    Closes,
    /// Its process ends without closing anything.
    Exits,
}

/// What the receiver does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Receiver {
    Receives,
    /// It waits until there is something.
    Polls,
    /// It gives the socket to somebody who knows nothing of windows.
    HandsOver,
}

const UNREAD: &[u8] = b"in the window";

fn wait_for(pipe: &mut PipeReader) {
    pipe.read_exact(&mut [0]).unwrap();
}

fn tell(pipe: &mut PipeWriter) {
    pipe.write_all(&[0]).unwrap();
}

/// Waits as a set does: for the window's news, and for the kernel.
fn wait_for_readiness(connection: &Connection) {
    let (endpoint, started) =
        (connection.sockets().endpoint(connection.socket.as_raw_fd()).unwrap(), Instant::now());
    let millisecond = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    while !endpoint.has_news() {
        let mut watched = [PollFd::new(&connection.socket, PollFlags::IN)];
        if poll(&mut watched, Some(&millisecond)).unwrap() > 0 {
            return;
        }
        assert!(started.elapsed() < HANGS, "nobody tells of what is sent anew");
    }
}

fn receive_unread(connection: &Connection, receiver: Receiver, then: Then) {
    let mut got = vec![0; UNREAD.len()];
    if receiver == Receiver::HandsOver {
        let until = Instant::now() + HANGS;
        assert!(connection.sockets().hand_over(connection.socket.as_fd(), Why::Passed, until));
        (&connection.socket).read_exact(&mut got).unwrap();
        assert_eq!(got, UNREAD);
        return;
    }
    let mut filled = 0;
    while filled < got.len() {
        if receiver == Receiver::Polls {
            wait_for_readiness(connection);
        }
        let flags = if receiver == Receiver::Polls {
            rustix::net::RecvFlags::DONTWAIT
        } else {
            rustix::net::RecvFlags::empty()
        };
        match connection.receive_with(&mut got[filled..], flags) {
            Ok(bytes) => {
                assert!(bytes > 0, "it ended behind {filled} bytes");
                filled += bytes;
            }
            Err(errno) => assert_eq!(errno, Errno::AGAIN),
        }
    }
    assert_eq!(got, UNREAD);
    if then != Then::Sleeps {
        assert_eq!(connection.receive(&mut got), Ok(0));
    }
}

fn unread_bytes_are_not_lost(with: With, then: Then, receiver: Receiver) {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let [mut scribbled, mut has_sent, mut is_done] = std::array::from_fn(|_| std::io::pipe().unwrap());
    let server = in_child(|| {
        let server = Connection::accepted(sockets(folder.path(), copies()), &listener);
        answer_to_the_last(&server);
        wait_for(&mut has_sent.0);
        let windows = Windows::of("self").unwrap();
        match with {
            With::Nothing => {}
            With::Garbage => windows.spoil(0),
            With::Blanks => windows.blank(0),
        }
        tell(&mut scribbled.1);
        receive_unread(&server, receiver, then);
        tell(&mut is_done.1);
    });
    let client = in_child(|| {
        let client = Connection::connected(sockets(folder.path(), copies()), &listener);
        warm_up(&client);
        client.send_all(&u64::MAX.to_le_bytes());
        client.receive_all(&mut [0; 8]);
        let before = client.traffic().sent_by_window_bytes;
        client.send_all(UNREAD);
        assert_eq!(client.traffic().sent_by_window_bytes, before + UNREAD.len() as u64);
        match then {
            Then::Sleeps | Then::Exits => {}
            Then::ShutsDown => client.shut_down(),
            Then::Closes => client.close(),
        }
        if then == Then::Exits {
            // As a program that ends does, by the hook of its end.
            sockets(folder.path(), copies()).end();
            tell(&mut has_sent.1);
            return;
        }
        tell(&mut has_sent.1);
        wait_for(&mut scribbled.0);
        wait_for(&mut is_done.0);
    });
    assert_eq!((exit_of(client), exit_of(server)), (Some(0), Some(0)), "{with:?}, {then:?}, {receiver:?}");
}

#[test]
fn bytes_of_a_sender_that_sends_no_more_come_anew() {
    for with in [With::Nothing, With::Garbage, With::Blanks] {
        for receiver in [Receiver::Receives, Receiver::Polls, Receiver::HandsOver] {
            unread_bytes_are_not_lost(with, Then::Sleeps, receiver);
        }
    }
}

#[test]
fn bytes_of_a_sender_that_has_ended_are_there() {
    for with in [With::Nothing, With::Garbage, With::Blanks] {
        for then in [Then::ShutsDown, Then::Closes, Then::Exits] {
            for receiver in [Receiver::Receives, Receiver::Polls, Receiver::HandsOver] {
                unread_bytes_are_not_lost(with, then, receiver);
            }
        }
    }
}

/// The window and the socket are full when the window is written over, and the sender ends its stream.
fn full_paths_are_received(then: Then) {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let [mut has_sent, mut total] = std::array::from_fn(|_| std::io::pipe().unwrap());
    let server = in_child(|| {
        let server = Connection::accepted(sockets(folder.path(), copies()), &listener);
        answer_to_the_last(&server);
        wait_for(&mut has_sent.0);
        Windows::of("self").unwrap().spoil(0);
        let mut bytes = [0; 8];
        total.0.read_exact(&mut bytes).unwrap();
        let (mut received, mut out) = (0, vec![0; 50_000]);
        loop {
            let got = server.receive(&mut out).unwrap();
            if got == 0 {
                break;
            }
            let wrong = out[..got].iter().zip(received..).position(|(found, at)| *found != byte(at));
            assert_eq!(wrong, None, "behind {received}");
            received += got as u64;
        }
        assert_eq!(received, u64::from_le_bytes(bytes));
        server.send_all(b"answer");
    });
    let client = in_child(|| {
        let client = Connection::connected(sockets(folder.path(), copies()), &listener);
        warm_up(&client);
        client.send_all(&u64::MAX.to_le_bytes());
        client.receive_all(&mut [0; 8]);
        let (mut sent, piece) = (0, 10_000);
        loop {
            let bytes: Vec<u8> = (sent..sent + piece).map(byte).collect();
            match client.send_with(&bytes, SendFlags::DONTWAIT) {
                Ok(bytes) => sent += bytes as u64,
                Err(errno) => break assert_eq!(errno, Errno::AGAIN),
            }
        }
        assert!(client.traffic().downs > 0);
        tell(&mut has_sent.1);
        match then {
            Then::ShutsDown => {
                client.shut_down();
                assert_eq!(client.send(&[1]), Err(Errno::PIPE), "its direction has ended");
            }
            _ => {
                assert_eq!(client.receive_with(&mut [0], rustix::net::RecvFlags::DONTWAIT), Err(Errno::AGAIN))
            }
        }
        total.1.write_all(&u64::to_le_bytes(sent)).unwrap();
        if then == Then::Closes {
            let sockets = client.sockets();
            client.close();
            // Nobody pays for a process that has ended.
            while !sockets.settle() {}
            return;
        }
        let mut answer = [0; 6];
        client.receive_all(&mut answer);
        assert_eq!(&answer, b"answer");
    });
    assert_eq!((exit_of(client), exit_of(server)), (Some(0), Some(0)), "{then:?}");
}

#[test]
fn bytes_for_which_the_socket_has_no_room_come_behind_it_before_the_end() {
    full_paths_are_received(Then::ShutsDown);
    full_paths_are_received(Then::Closes);
}
