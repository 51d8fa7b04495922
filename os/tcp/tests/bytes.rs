//! Bytes that are peeked at stay, bytes that are taken are gone, and nothing else changes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod connections;

use std::io::Read;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use beeline_tcp::{Peeked, State, TakeError, given, peek, reset, room, send, state, take, taken};
use connections::{End, FAMILIES, pair, sleeps, wait_until};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rustix::io::Errno;

const SEED: u64 = 72;

/// Waits for so many bytes and peeks at them.
fn peek_at(end: &End, bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    wait_until(|| peek(&end.stream, &mut out) == Ok(Peeked::Bytes(bytes)));
    out
}

#[test]
fn what_is_taken_after_a_peek_leaves_exactly_the_rest() {
    let mut random = SmallRng::seed_from_u64(SEED);
    let stream: Vec<u8> = (0..400_000).map(|_| random.random()).collect();
    for family in FAMILIES {
        for at in [0, 1] {
            let mut ends = pair(family);
            ends.rotate_left(at);
            let [sender, receiver] = &ends;
            let (mut sent, mut gone) = (0, 0);
            while gone < stream.len() {
                if sent < stream.len() && random.random_bool(0.5) {
                    let size = random.random_range(1..=20_000.min(stream.len() - sent));
                    sent += send(&sender.stream, &stream[sent..sent + size]).unwrap();
                }
                let mut out = vec![0; random.random_range(1..30_000)];
                match peek(&receiver.stream, &mut out).unwrap() {
                    Peeked::Bytes(bytes) => {
                        assert_eq!(out[..bytes], stream[gone..gone + bytes], "{family:?}, seed {SEED}");
                        let size = random.random_range(0..=bytes);
                        take(&receiver.stream, size).unwrap();
                        gone += size;
                        assert_eq!(taken(&receiver.stream), Ok(gone as u64), "{family:?}, seed {SEED}");
                    }
                    found => assert_eq!(found, Peeked::Nothing),
                }
            }
            assert_eq!(peek(&receiver.stream, &mut [0]), Ok(Peeked::Nothing));
        }
    }
}

#[test]
fn peek_tells_nothing_the_end_and_an_error_apart() {
    for family in FAMILIES {
        let [a, b] = pair(family);
        assert_eq!(peek(&b.stream, &mut [0; 9]), Ok(Peeked::Nothing), "{family:?}");
        send(&a.stream, b"last").unwrap();
        a.stream.shutdown(Shutdown::Write).unwrap();
        wait_until(|| state(&b.stream) == Ok(State::CloseWait));
        assert_eq!(peek_at(&b, 4), b"last", "{family:?}");
        assert_eq!(peek(&b.stream, &mut []), Ok(Peeked::Nothing), "{family:?}");
        assert_eq!(peek(&b.stream, &mut [0; 9]), Ok(Peeked::Bytes(4)), "FIN is behind bytes");
        take(&b.stream, 4).unwrap();
        for _ in 0..2 {
            assert_eq!(peek(&b.stream, &mut [0; 9]), Ok(Peeked::End), "{family:?}");
        }
        assert_eq!(peek(&a.stream, &mut [0; 9]), Ok(Peeked::Nothing), "the other direction is open");
    }
}

#[test]
fn bytes_before_a_reset_come_first_and_the_error_once() {
    for family in FAMILIES {
        let [a, b] = pair(family);
        send(&a.stream, b"before").unwrap();
        peek_at(&b, 6);
        reset(&a.stream).unwrap();
        wait_until(|| state(&b.stream) == Ok(State::Closed));
        assert_eq!(peek_at(&b, 6), b"before", "{family:?}");
        take(&b.stream, 2).unwrap();
        assert_eq!(peek_at(&b, 4), b"fore", "{family:?}");
        take(&b.stream, 4).unwrap();
        assert_eq!(peek(&b.stream, &mut [0]), Err(Errno::CONNRESET), "{family:?}");
        assert_eq!(peek(&b.stream, &mut [0]), Ok(Peeked::End), "{family:?}");
    }
}

#[test]
fn taking_more_than_there_is_says_how_many_went() {
    let [a, b] = pair(FAMILIES[0]);
    assert_eq!(take(&b.stream, 0), Ok(()));
    assert_eq!(take(&b.stream, 1), Err(TakeError::Short { asked: 1, taken: 0 }));
    send(&a.stream, &[1; 10]).unwrap();
    peek_at(&b, 10);
    assert_eq!(take(&b.stream, 11), Err(TakeError::Short { asked: 11, taken: 10 }));
    send(&a.stream, &[1; 10]).unwrap();
    a.stream.shutdown(Shutdown::Write).unwrap();
    wait_until(|| state(&b.stream) == Ok(State::CloseWait));
    assert_eq!(take(&b.stream, 11), Err(TakeError::Short { asked: 11, taken: 10 }));
}

#[test]
fn send_gives_what_there_is_room_for_and_raises_no_signal() {
    let has_signal = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGPIPE, Arc::clone(&has_signal)).unwrap();
    for family in FAMILIES {
        let [a, mut b] = pair(family);
        let bytes: Vec<u8> = (0..20 << 20).map(|at| (at % 251) as u8).collect();
        assert_eq!(send(&a.stream, &[]), Ok(0));
        let mut sent = 0;
        loop {
            let more = send(&a.stream, &bytes[sent..]).unwrap();
            sent += more;
            if more == 0 {
                break;
            }
        }
        assert!(sent > 0 && sent < bytes.len(), "{sent}");
        assert_eq!(given(&a.stream, a.side), Ok(sent as u64), "{family:?}");
        let mut received = vec![0; sent];
        b.stream.read_exact(&mut received).unwrap();
        assert!(received == bytes[..sent], "{family:?}");
        a.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(send(&a.stream, b"more"), Err(Errno::PIPE), "{family:?}");
        assert!(!has_signal.load(Ordering::Relaxed), "{family:?}");
    }
}

#[test]
fn socket_takes_at_once_what_it_says_that_it_has_room_for() {
    let mut random = SmallRng::seed_from_u64(SEED);
    for family in FAMILIES {
        let [sender, _receiver] = &pair(family);
        let mut sent = 0;
        loop {
            let room = room(&sender.stream).unwrap() as usize;
            if room == 0 {
                break;
            }
            let bytes = vec![0; random.random_range(1..=room)];
            assert_eq!(send(&sender.stream, &bytes), Ok(bytes.len()), "{family:?}, {sent}, seed {SEED}");
            sent += bytes.len();
        }
        assert!(sent > 100_000, "{family:?}, {sent}, seed {SEED}");
    }
}

#[test]
fn reset_is_seen_by_the_other_side_and_by_each_holder_and_throws_bytes_away() {
    for family in FAMILIES {
        for at in [0, 1] {
            let mut ends = pair(family);
            ends.rotate_left(at);
            let [own, other] = &ends;
            let holder = own.stream.try_clone().unwrap();
            send(&other.stream, b"unread").unwrap();
            peek_at(own, 6);
            // More than the other side takes in.
            let mut sent = 0;
            loop {
                match send(&own.stream, &[1; 65_536]).unwrap() {
                    0 => break,
                    bytes => sent += bytes,
                }
            }
            reset(&own.stream).unwrap();
            assert_eq!(state(&own.stream), Ok(State::Closed), "{family:?}");
            assert_eq!(peek(&holder, &mut [0; 9]), Err(Errno::CONNRESET), "{family:?}");
            assert_eq!(peek(&own.stream, &mut [0; 9]), Err(Errno::NOTCONN), "{family:?}");
            assert_eq!(send(&holder, b"more"), Err(Errno::PIPE), "{family:?}");
            wait_until(|| state(&other.stream) == Ok(State::Closed));
            let mut came = 0;
            let end = loop {
                match peek(&other.stream, &mut [0; 4096]) {
                    Ok(Peeked::Bytes(bytes)) => {
                        take(&other.stream, bytes).unwrap();
                        came += bytes;
                    }
                    found => break found,
                }
            };
            assert_eq!(end, Err(Errno::CONNRESET), "{family:?}");
            assert!(came < sent, "{came} of {sent} came: the unsent ones should be gone");
        }
    }
}

#[test]
fn thread_that_waits_in_a_receive_is_woken_by_a_reset() {
    for family in FAMILIES {
        for at in [0, 1] {
            let ends = pair(family);
            let end = &ends[at];
            let mut holder = end.stream.try_clone().unwrap();
            let (ids, id) = channel();
            let waiting = std::thread::spawn(move || {
                ids.send(rustix::thread::gettid()).unwrap();
                holder.read(&mut [0; 9])
            });
            let id = id.recv().unwrap();
            wait_until(|| sleeps(id));
            let done = reset(&end.stream);
            if done == Err(Errno::BUSY) {
                eprintln!("skipped: this kernel resets no socket that a thread waits for");
                end.stream.shutdown(Shutdown::Both).unwrap();
                waiting.join().unwrap().unwrap();
                return;
            }
            assert_eq!(done, Ok(()), "{family:?}");
            let error = waiting.join().unwrap().unwrap_err();
            match Errno::from_io_error(&error) {
                // It is not the one that is told of the reset.
                Some(Errno::PIPE) => {
                    assert_eq!(peek(&end.stream, &mut [0]), Err(Errno::CONNRESET), "{family:?}");
                }
                // Older kernels, and a thread that had not begun to wait.
                error => assert_eq!(error, Some(Errno::CONNRESET), "{family:?}"),
            }
        }
    }
}
