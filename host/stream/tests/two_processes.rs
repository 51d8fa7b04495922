//! Two processes, a connection of the kernel's between them, and windows: every byte comes once and in order, or the kernel's answer does.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use beeline_ledger::{Path, Received};
use beeline_stream::{Failure, TcpError};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use support::*;

/// A stream that has not gone on for so long hangs.
const HANGS: Duration = Duration::from_secs(60);

/// Streams of a test; and how many there are at most until enough has happened to them, which depends on who runs when.
const STREAMS: u64 = 8;
const MOST_STREAMS: u64 = 64;

/// How far the sender runs ahead of the receiver.
const AHEAD_BYTES: u64 = 50_000;

fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// Runs a part in a child, which has a copy of all that this process has.
fn in_child(part: impl FnOnce()) -> Pid {
    match fork::fork().unwrap() {
        fork::Fork::Child => {
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(part));
            if let Err(panic) = &ended {
                // What a test prints is kept by the harness, of which there is a copy here that nobody reads.
                let text = panic.downcast_ref::<String>().map_or("the other end failed", String::as_str);
                let _ = rustix::io::write(rustix::stdio::stderr(), format!("{text}\n").as_bytes());
            }
            std::process::exit(i32::from(ended.is_err()))
        }
        fork::Fork::Parent(child) => Pid::from_raw(child).unwrap(),
    }
}

fn exit_of(child: Pid) -> Option<i32> {
    waitpid(Some(child), WaitOptions::empty()).unwrap().unwrap().1.exit_status()
}

/// Sends and receives `total` bytes each way, with changes of path, and scribbles where bytes are kept.
fn run<W: Windows>(end: &mut End<W>, total: u64) {
    let started = Instant::now();
    let (mut has_left, mut has_ended, mut is_at_end) = (false, false, false);
    while !(has_ended && is_at_end) {
        end.offer();
        end.take_window();
        match end.below(40) {
            // Its end was told: it has nothing more to say, by no path.
            _ if has_left || has_ended => {}
            0..4 => _ = end.go_up(),
            4 if end.below(4) == 0 => end.outgoing.go_down(),
            5 if W::KEEPS && end.outgoing.path() == Path::Window => end.scribble(),
            _ => {}
        }
        if !has_ended {
            // The socket's own buffers would take all of it before the receiver has come to any change.
            if end.outgoing.untaken_bytes() < AHEAD_BYTES {
                end.send(total).unwrap();
            } else {
                end.outgoing.tend(&mut end.tcp).unwrap();
            }
            end.suspect();
            if end.outgoing.sent_bytes() == total && (has_left || end.below(200) == 0) {
                // What is in the window is in the socket behind it, whatever becomes of the window.
                has_left = true;
                has_ended = end.outgoing.leave(&mut end.tcp).unwrap();
                if has_ended {
                    end.tcp.shut_down();
                }
            }
        }
        if !is_at_end {
            match end.receive().unwrap() {
                Received::End => is_at_end = true,
                Received::Nothing => std::thread::yield_now(),
                Received::Bytes(_) => {}
            }
        }
        let at = (end.outgoing.sent_bytes(), end.outgoing.untaken_bytes(), end.incoming.taken_bytes());
        assert!(
            started.elapsed() < HANGS,
            "hangs at {at:?}, {:?}, {:?}",
            end.outgoing.path(),
            end.incoming.path()
        );
    }
    assert_eq!(end.incoming.taken_bytes(), total);
}

fn both_ways<W: Windows>(seed: u64, total: u64) -> Counts {
    let (memory, (client, server)) = (Memory::new(), connection());
    let child = in_child(|| run(&mut End::<W>::new(&memory, 1, server, seed), total));
    let mut end = End::<W>::new(&memory, 0, client, seed);
    run(&mut end, total);
    assert_eq!(exit_of(child), Some(0));
    end.counts
}

#[test]
fn every_byte_comes_once_and_in_order_while_paths_change() {
    let (mut ups, mut by_window) = (0, 0);
    for seed in 0..MOST_STREAMS {
        let counts = both_ways::<Plain>(seed, 4_000_000);
        assert_eq!(counts.windows, 1);
        ups += counts.ups;
        by_window += counts.by_window_bytes;
        if seed + 1 >= STREAMS && ups > 40 && by_window > 4_000_000 {
            return;
        }
    }
    panic!("{ups} times a stream left the socket, {by_window} bytes by the window");
}

#[test]
fn every_byte_comes_once_and_in_order_though_windows_are_scribbled_over() {
    let (mut windows, mut scribbles, mut by_window) = (0, 0, 0);
    for seed in 0..MOST_STREAMS {
        let counts = both_ways::<Checked>(seed, 4_000_000);
        windows += counts.windows;
        scribbles += counts.scribbles;
        by_window += counts.by_window_bytes;
        if seed + 1 >= STREAMS && scribbles > 100 && windows > 50 && by_window > 2_000_000 {
            return;
        }
    }
    panic!("{scribbles} scribbles, {windows} windows, {by_window} bytes by the window");
}

/// Receives until the stream ends or the socket fails, as the program would see it.
fn drain<W: Windows>(end: &mut End<W>) -> Result<(), Errno> {
    let started = Instant::now();
    loop {
        match end.receive() {
            Ok(Received::End) => return Ok(()),
            Ok(Received::Nothing) => std::thread::yield_now(),
            Ok(Received::Bytes(_)) => {}
            Err(Failure::Socket(TcpError::System(error))) => return Err(error),
            Err(failure) => panic!("{failure}"),
        }
        assert!(started.elapsed() < HANGS, "no end of a sender that is gone");
    }
}

/// One end sends for ever and is killed at any moment; all that it had sent has to come.
fn killed_sender<W: Windows>(seed: u64) {
    let (memory, (client, server)) = (Memory::new(), connection());
    let mut end = End::<W>::new(&memory, 0, client, seed);
    let said = memory.direction(1).said();
    let child = in_child(|| {
        let mut sender = End::<W>::new(&memory, 1, server, seed);
        loop {
            sender.take_window();
            match sender.below(20) {
                0..3 => _ = sender.go_up(),
                3 => sender.outgoing.go_down(),
                _ => {}
            }
            sender.send(u64::MAX).unwrap();
            said.store_release(sender.outgoing.sent_bytes());
        }
    });
    while end.incoming.taken_bytes() < 100_000 + seed * 10_007 {
        end.offer();
        end.receive().unwrap();
    }
    kill_process(child, Signal::KILL).unwrap();
    assert_eq!(exit_of(child), None);
    assert_eq!(drain(&mut end), Ok(()), "a process that had nothing to read ends as one that closes");
    let (taken, said) = (end.incoming.taken_bytes(), said.load_acquire());
    assert!(taken >= said, "{taken} bytes came of {said} that were sent");
}

#[test]
fn killed_sender_loses_nothing_that_it_sent() {
    for seed in 0..20 {
        killed_sender::<Plain>(seed);
        killed_sender::<Checked>(seed);
    }
}

/// The sender is killed with bytes unread, so the kernel throws a reset; what it had stored in the window comes first.
#[test]
fn reset_comes_behind_the_bytes_of_the_window() {
    for seed in 0..20 {
        let (memory, (client, server)) = (Memory::new(), connection());
        let mut end = End::<Plain>::new(&memory, 0, client, seed);
        let said = memory.direction(1).said();
        end.send(10).unwrap();
        end.offer();
        let child = in_child(|| {
            let mut sender = End::<Plain>::new(&memory, 1, server, seed);
            sender.take_window();
            assert!(sender.go_up());
            sender.leaves_full_windows = false;
            loop {
                sender.send(u64::MAX).unwrap();
                assert_eq!(sender.outgoing.path(), Path::Window);
                said.store_release(sender.outgoing.sent_bytes());
            }
        });
        while end.incoming.taken_bytes() < 10_000 + seed * 1009 {
            end.receive().unwrap();
        }
        kill_process(child, Signal::KILL).unwrap();
        assert_eq!(exit_of(child), None);
        assert_eq!(drain(&mut end), Err(Errno::CONNRESET));
        assert!(end.incoming.taken_bytes() >= said.load_acquire());
        assert_eq!(drain(&mut end), Ok(()), "the kernel says it once");
    }
}

/// The receiver is killed with bytes unread: the kernel says so to the sender, by either path.
#[test]
fn sender_hears_of_a_killed_receiver_by_the_kernel() {
    for is_up in [false, true] {
        let (memory, (client, server)) = (Memory::new(), connection());
        let mut end = End::<Plain>::new(&memory, 0, client, 1);
        let child = in_child(|| {
            let mut receiver = End::<Plain>::new(&memory, 1, server, 1);
            receiver.offer();
            loop {
                std::thread::yield_now();
            }
        });
        let started = Instant::now();
        while is_up && end.outgoing.path() != Path::Window {
            end.take_window();
            end.go_up();
            assert!(started.elapsed() < HANGS);
        }
        end.send(1000).unwrap();
        kill_process(child, Signal::KILL).unwrap();
        assert_eq!(exit_of(child), None);
        let error = loop {
            match end.send(u64::MAX) {
                Ok(()) => {}
                Err(Failure::Socket(TcpError::System(error))) => break error,
                Err(failure) => panic!("{failure}"),
            }
            // A window whose receiver is dead fills up, or is left sooner by who hears of it.
            end.suspect();
            assert!(started.elapsed() < HANGS);
        };
        assert!([Errno::CONNRESET, Errno::PIPE].contains(&error), "{error}");
    }
}
