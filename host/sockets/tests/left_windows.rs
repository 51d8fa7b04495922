//! Connections of which copies are kept, whose sender leaves the window: what it had sent costs no byte more than without copies, also where nobody has written
//! over a window.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

#[path = "support/scribbles.rs"]
mod scribbles;
mod support;

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use beeline_socket_engine::{Sockets, switch};
use beeline_socket_rules::{Retain, Rules, Why};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getrlimit, kill_process, setrlimit, waitpid,
};
use scribbles::Windows;
use support::*;

const UNREAD: &[u8] = b"in the window";

fn kept(folder: &Path) -> &'static Sockets {
    sockets(folder, Rules { retain: Retain::Copy, ..Rules::default() })
}

fn wait_for(pipe: &mut PipeReader) {
    pipe.read_exact(&mut [0]).unwrap();
}

fn tell(pipe: &mut PipeWriter) {
    pipe.write_all(&[0]).unwrap();
}

/// Runs a server and a client, both of whose directions are carried. The server is told by its pipe when the client has ended.
fn both(serve: impl FnOnce(Connection, PipeReader), ask: impl FnOnce(Connection, &Path)) {
    let (folder, listener) = (tempfile::tempdir().unwrap(), TcpListener::bind(("127.0.0.1", 0)).unwrap());
    let (is_alone, mut say) = std::io::pipe().unwrap();
    let server = in_child(|| {
        let server = Connection::accepted(kept(folder.path()), &listener);
        // One that hangs fails.
        server.socket.set_read_timeout(Some(HANGS / 3)).unwrap();
        let mut bytes = [0; 8];
        while bytes != [u8::MAX; 8] {
            server.receive_all(&mut bytes);
            server.send_all(&bytes);
        }
        serve(server, is_alone);
    });
    let client = in_child(|| {
        let client = Connection::connected(kept(folder.path()), &listener);
        warm_up(&client);
        client.send_all(&[u8::MAX; 8]);
        client.receive_all(&mut [0; 8]);
        ask(client, folder.path());
    });
    let mut running = vec![server, client];
    while !running.is_empty() {
        std::thread::sleep(Duration::from_millis(1));
        let end_of =
            |process: &Pid| Some((*process, waitpid(Some(*process), WaitOptions::NOHANG).unwrap()?.1));
        let Some((process, status)) = running.iter().find_map(end_of) else { continue };
        running.retain(|other| *other != process);
        if status.exit_status() != Some(0) {
            // The other one may wait for it for ever.
            running.iter().for_each(|other| _ = kill_process(*other, Signal::KILL));
            panic!("{} failed", if process == server { "the server" } else { "the client" });
        }
        if process == client {
            // A server that has ended needs not be told.
            let _ = say.write_all(&[0]);
        }
    }
}

/// Sends a stream until neither the window nor the socket has room; says how many bytes it has.
fn fill(client: &Connection) -> u64 {
    let (downs, mut sent) = (client.traffic().downs, 0);
    loop {
        let bytes: Vec<u8> = (sent..sent + 10_000).map(byte).collect();
        match client.send_with(&bytes, SendFlags::DONTWAIT) {
            Ok(bytes) => sent += bytes as u64,
            Err(errno) => break assert_eq!(errno, Errno::AGAIN),
        }
    }
    assert!(client.traffic().downs > downs);
    sent
}

fn send_by_window(client: &Connection, bytes: &[u8]) {
    let before = client.traffic().sent_by_window_bytes;
    client.send_all(bytes);
    assert_eq!(client.traffic().sent_by_window_bytes, before + bytes.len() as u64);
}

/// Receives the stream of which so many bytes were had until its end; how many bytes it has.
fn receive_to_end(server: &Connection, from: u64) -> u64 {
    let (mut received, mut out) = (from, vec![0; 50_000]);
    loop {
        let got = server.receive(&mut out).unwrap();
        if got == 0 {
            return received;
        }
        let wrong = out[..got].iter().zip(received..).position(|(found, at)| *found != byte(at));
        assert_eq!(wrong, None, "behind {received}");
        received += got as u64;
    }
}

fn total_of(pipe: &mut PipeReader) -> u64 {
    let mut bytes = [0; 8];
    pipe.read_exact(&mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

#[test]
fn process_that_ends_before_a_slow_reader_has_read_loses_no_byte() {
    let (mut total, mut say) = std::io::pipe().unwrap();
    both(
        |server, mut is_alone| {
            wait_for(&mut is_alone);
            assert_eq!(receive_to_end(&server, 0), total_of(&mut total));
        },
        |client, folder| {
            say.write_all(&fill(&client).to_le_bytes()).unwrap();
            kept(folder).end();
        },
    );
}

#[test]
fn connection_that_is_handed_on_before_a_slow_reader_has_read_goes_on() {
    let (mut total, mut say) = std::io::pipe().unwrap();
    let (mut is_read, mut read) = std::io::pipe().unwrap();
    both(
        |server, _| {
            let sent = total_of(&mut total);
            assert_eq!(receive_to_end(&server, 0), sent);
            tell(&mut read);
        },
        |client, _| {
            let sent = fill(&client);
            let until = Instant::now() + HANGS;
            assert!(client.sockets().hand_over(client.socket.as_fd(), Why::Passed, until));
            say.write_all(&(sent + 1).to_le_bytes()).unwrap();
            // As whoever has it now, who knows nothing of windows.
            (&client.socket).write_all(&[byte(sent)]).unwrap();
            client.socket.shutdown(std::net::Shutdown::Write).unwrap();
            wait_for(&mut is_read);
        },
    );
}

#[test]
fn window_that_is_lost_behind_a_sender_that_has_no_copy_any_more_is_a_reset() {
    let (mut is_full, mut full) = std::io::pipe().unwrap();
    let (mut is_over, mut over) = std::io::pipe().unwrap();
    both(
        |server, _| {
            wait_for(&mut is_full);
            Windows::of("self").unwrap().spoil(0);
            let mut out = vec![0; 50_000];
            let failed = loop {
                match server.receive(&mut out) {
                    Ok(bytes) => assert!(bytes > 0),
                    Err(errno) => break errno,
                }
            };
            assert_eq!(failed, Errno::CONNRESET);
            tell(&mut over);
        },
        |client, _| {
            fill(&client);
            let until = Instant::now() + HANGS;
            assert!(client.sockets().hand_over(client.socket.as_fd(), Why::Passed, until));
            tell(&mut full);
            wait_for(&mut is_over);
        },
    );
}

#[test]
fn child_of_fork_does_not_hold_what_its_parent_owes() {
    let (mut total, mut say) = std::io::pipe().unwrap();
    let (mut is_over, mut over) = std::io::pipe().unwrap();
    both(
        |server, _| {
            let sent = total_of(&mut total);
            assert_eq!(receive_to_end(&server, 0), sent);
            tell(&mut over);
            tell(&mut over);
        },
        |client, _| {
            let (sent, sockets) = (fill(&client), client.sockets());
            client.close();
            assert!(!sockets.settle(), "the socket has no room");
            let child = in_fork(sockets, || wait_for(&mut is_over));
            say.write_all(&sent.to_le_bytes()).unwrap();
            assert_eq!(exit_of(child), Some(0));
            wait_for(&mut is_over);
        },
    );
}

#[test]
fn process_that_starts_another_program_leaves_no_window() {
    both(
        |server, _| server.receive_all(&mut vec![0; UNREAD.len()]),
        |client, _| {
            client.sockets().settle();
            send_by_window(&client, UNREAD);
            assert_eq!(client.why(), None);
            assert!(client.sockets().leave_for_program());
            assert_eq!(client.why(), Some(Why::Executed));
        },
    );
}

#[test]
fn process_without_descriptors_sends_anew_once_it_has_some() {
    let (mut has_sent, mut sent) = std::io::pipe().unwrap();
    let (mut has_asked, mut asked) = std::io::pipe().unwrap();
    let (mut is_over, mut over) = std::io::pipe().unwrap();
    both(
        |server, _| {
            wait_for(&mut has_sent);
            Windows::of("self").unwrap().spoil(0);
            let mut out = vec![0; UNREAD.len()];
            assert_eq!(server.receive_with(&mut out, RecvFlags::DONTWAIT), Err(Errno::AGAIN));
            // The other process's thread has heard of it by then.
            std::thread::sleep(Duration::from_millis(200));
            tell(&mut asked);
            server.receive_all(&mut out);
            assert_eq!(out, UNREAD);
            tell(&mut over);
        },
        |client, _| {
            send_by_window(&client, UNREAD);
            let limits = getrlimit(Resource::Nofile);
            setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..limits }).unwrap();
            tell(&mut sent);
            wait_for(&mut has_asked);
            setrlimit(Resource::Nofile, limits).unwrap();
            wait_for(&mut is_over);
        },
    );
}

#[test]
fn process_that_ends_leaves_windows_too_of_a_connection_that_is_the_kernel_s_already() {
    let (mut has_sent, mut sent) = std::io::pipe().unwrap();
    let (mut is_spoiled, mut spoiled) = std::io::pipe().unwrap();
    both(
        |server, mut is_alone| {
            server.send_all(UNREAD);
            wait_for(&mut has_sent);
            Windows::of("self").unwrap().spoil(0);
            tell(&mut spoiled);
            wait_for(&mut is_alone);
            let mut out = vec![0; UNREAD.len()];
            server.receive_all(&mut out);
            assert_eq!(out, UNREAD);
        },
        |client, folder| {
            send_by_window(&client, UNREAD);
            tell(&mut sent);
            wait_for(&mut is_spoiled);
            let found = client.receive_with(&mut [0; 8], RecvFlags::DONTWAIT);
            assert_eq!((found, client.why()), (Err(Errno::AGAIN), Some(Why::Broken)));
            kept(folder).end();
        },
    );
}

#[test]
fn unread_bytes_in_front_of_the_window_are_in_the_socket_of_who_gets_it() {
    use beeline_socket_rules::Windows;

    let (mut has_sent, mut sent) = std::io::pipe().unwrap();
    let (mut has_read, mut read) = std::io::pipe().unwrap();
    let (mut total, mut say) = std::io::pipe().unwrap();
    let (mut is_over, mut over) = std::io::pipe().unwrap();
    both(
        |server, _| {
            wait_for(&mut has_sent);
            // It has come to the socket then, so that the client may go up.
            server.receive_all(&mut [0; 10]);
            tell(&mut read);
            let end = total_of(&mut total);
            let until = Instant::now() + HANGS;
            assert!(server.sockets().hand_over(server.socket.as_fd(), Why::Passed, until));
            let mut out = vec![0; end as usize - 10];
            (&server.socket).read_exact(&mut out).unwrap();
            assert!(out.iter().zip(10..).all(|(found, at)| *found == byte(at)));
            tell(&mut over);
        },
        |client, folder| {
            let send = |from: u64| client.send_all(&(from..from + 1000).map(byte).collect::<Vec<_>>());
            let order = |to| switch(&folder.join("d"), &[], to, HANGS).unwrap();
            order(Windows::Down);
            send(0);
            tell(&mut sent);
            wait_for(&mut has_read);
            order(Windows::Up);
            let (ups, mut end) = (client.traffic().ups, 1000);
            while client.traffic().ups == ups {
                send(end);
                end += 1000;
            }
            say.write_all(&end.to_le_bytes()).unwrap();
            wait_for(&mut is_over);
        },
    );
}

#[test]
fn child_of_a_process_that_has_ended_gets_what_was_in_a_window_that_is_lost() {
    let (mut has_sent, mut sent) = std::io::pipe().unwrap();
    let (mut has_begun, mut begun) = std::io::pipe().unwrap();
    let (mut total, mut say) = std::io::pipe().unwrap();
    let (is_over, mut over) = std::io::pipe().unwrap();
    both(
        |server, _| {
            wait_for(&mut has_sent);
            in_fork(server.sockets(), || {
                tell(&mut begun);
                let mut out = vec![0; total_of(&mut total) as usize];
                Windows::of("self").unwrap().spoil(0);
                server.receive_all(&mut out);
                assert!(out.iter().zip(0..).all(|(found, at)| *found == byte(at)));
                tell(&mut over);
            });
            wait_for(&mut has_begun);
        },
        |client, _| {
            send_by_window(&client, &(0..100).map(byte).collect::<Vec<_>>());
            tell(&mut sent);
            let (mut end, mut by_window, started) = (100, 0, Instant::now());
            // Until it finds that the other process has ended.
            while client.traffic().sent_by_window_bytes > by_window {
                by_window = client.traffic().sent_by_window_bytes;
                std::thread::sleep(Duration::from_millis(5));
                client.send_all(&[byte(end)]);
                end += 1;
                assert!(started.elapsed() < HANGS);
            }
            say.write_all(&end.to_le_bytes()).unwrap();
            let mut watched = [PollFd::new(&is_over, PollFlags::IN)];
            let seconds = Timespec { tv_sec: 20, tv_nsec: 0 };
            assert_eq!(poll(&mut watched, Some(&seconds)), Ok(1), "nobody sends it anew");
        },
    );
}
