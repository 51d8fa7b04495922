//! Windows that somebody writes over: both ends are told of a reset, and nobody of a wrong byte.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

#[path = "support/scribbles.rs"]
mod scribbles;
mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;

use beeline_socket_engine::switch;
use beeline_socket_rules::{Rules, Why};
use rustix::io::Errno;
use scribbles::Windows;
use support::*;

/// What is written over windows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum With {
    Garbage,
    /// What stands in a line that has no message.
    Blanks,
}

/// Writes over the windows of the only connection that this process has with another one.
fn scribble(with: With) {
    let windows = Windows::of("self").unwrap();
    match with {
        With::Garbage => windows.spoil(0),
        With::Blanks => windows.blank(0),
    }
}

fn window_that_is_written_over_is_a_reset_for(with: With, polls: bool) {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (mut is_scribbled, mut tell) = std::io::pipe().unwrap();
    let server = in_child(|| {
        let server = Connection::accepted(sockets(folder.path(), Rules::default()), &listener);
        answer_to_the_last(&server);
        is_scribbled.read_exact(&mut [0]).unwrap();
        let endpoint = server.sockets().endpoint(server.socket.as_raw_fd()).unwrap();
        if polls {
            assert!(endpoint.has_news(), "who waits for it is told");
        }
        assert_eq!(server.receive(&mut [0; 8]), Err(Errno::CONNRESET));
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
            switch(&domain, &[], beeline_socket_rules::Windows::Down, HANGS).unwrap();
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
