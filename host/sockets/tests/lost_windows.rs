//! Windows that somebody writes over: both ends are told of a reset, and nobody of a wrong byte.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use beeline_socket_engine::switch;
use beeline_socket_rules::{Rules, Why, Windows};
use rustix::io::Errno;
use support::*;

/// Where windows begin in the memory of a pair, as `memory.rs` lays it out: bells, then words of 16,384 slots.
const WINDOWS_AT: u64 = 2 * 1024 * 64 + 16_384 * 1152;
/// From one window of a slot to the other.
const PLACE_BYTES: u64 = 128 << 10;

/// What is written over windows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum With {
    Garbage,
    /// What stands in a line that has no message.
    Blanks,
}

/// Writes over the windows of the only connection that this process has with another one.
fn scribble(with: With) {
    let mut maps = String::new();
    File::open("/proc/self/maps").unwrap().read_to_string(&mut maps).unwrap();
    let ranges = maps.lines().filter_map(|line| {
        let (from, rest) = line.split_once('-')?;
        let (to, rest) = rest.split_once(' ')?;
        let [from, to] = [from, to].map(|number| u64::from_str_radix(number, 16).unwrap());
        (rest.starts_with("rw-s") && to - from > 1 << 32).then_some(from)
    });
    let starts: Vec<u64> = ranges.collect();
    let [start] = starts[..] else { panic!("{maps}") };
    let memory = OpenOptions::new().read(true).write(true).open("/proc/self/mem").unwrap();
    for place in [start + WINDOWS_AT, start + WINDOWS_AT + PLACE_BYTES] {
        let mut line = [0xa5; 64];
        if with == With::Blanks {
            // The last one, to which nothing has come yet.
            memory.read_exact_at(&mut line, place + u64::from(Rules::default().window_bytes) - 64).unwrap();
        }
        let lines = line.repeat(Rules::default().window_bytes as usize / 64);
        memory.write_all_at(&lines, place).unwrap();
    }
}

fn window_that_is_written_over_is_a_reset_for(with: With, polls: bool) {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (mut is_scribbled, mut tell) = std::io::pipe().unwrap();
    let server = in_child(|| {
        let server = Connection::accepted(sockets(folder.path(), Rules::default()), &listener);
        let mut bytes = [0; 8];
        while u64::from_le_bytes(bytes) != u64::MAX {
            server.receive_all(&mut bytes);
            server.send_all(&bytes);
        }
        is_scribbled.read_exact(&mut [0]).unwrap();
        let endpoint = server.sockets().endpoint(server.socket.as_raw_fd()).unwrap();
        if polls {
            assert!(endpoint.has_news(), "who waits for it is told");
        }
        assert_eq!(server.receive(&mut bytes), Err(Errno::CONNRESET));
        assert_eq!(endpoint.why(), Some(Why::Lost));
    });
    let client = in_child(|| {
        let client = Connection::connected(sockets(folder.path(), Rules::default()), &listener);
        warm_up(&client);
        client.send_all(&u64::MAX.to_le_bytes());
        client.receive_all(&mut [0; 8]);
        // Unread until it is written over: the other process waits for the word.
        client.send_all(b"in the window");
        scribble(with);
        if with == With::Blanks {
            // It is as if nothing had been sent, until the ledger says where the window ends.
            let domain = folder.path().join("d");
            switch(&domain, &[], Windows::Down, HANGS).unwrap();
        }
        tell.write_all(&[0]).unwrap();
        assert_eq!(client.receive(&mut [0; 8]), Err(Errno::CONNRESET));
    });
    assert_eq!((exit_of(client), exit_of(server)), (Some(0), Some(0)), "{with:?}, {polls}");
}

#[test]
fn window_that_is_written_over_is_a_reset_at_both_ends() {
    window_that_is_written_over_is_a_reset_for(With::Garbage, false);
}

#[test]
fn who_polls_a_window_that_is_written_over_is_told() {
    window_that_is_written_over_is_a_reset_for(With::Garbage, true);
}

#[test]
fn bytes_that_are_blanked_are_missed_when_the_window_goes_down() {
    window_that_is_written_over_is_a_reset_for(With::Blanks, false);
}
