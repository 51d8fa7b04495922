//! Connections that are ordered off their windows and back while bytes go both ways: every byte once and in order.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use beeline_socket_engine::{Switched, switch};
use beeline_socket_rules::{Carrier, Direction, Rules, Why, Windows, boards};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use support::*;

/// Bytes of the stream in one call at most.
const PIECE: u64 = 3_000;
/// Bytes that a process has sent more than it has received, so that the window is not full by itself.
const AHEAD: u64 = 20_000;

/// A process that sends a stream and checks the one that comes. It ends its stream when `ends` becomes readable, or the other one has ended.
fn both_ways(connection: &Connection, ends: &std::io::PipeReader) {
    let (mut sent, mut received, mut random, mut has_ended) = (0, 0, 1_u64, false);
    let mut out = vec![0; PIECE as usize];
    let mut receive = |received: &mut u64, most: usize| {
        let bytes = connection.receive(&mut out[..most]).unwrap();
        let wrong = out[..bytes].iter().zip(*received..).position(|(found, at)| *found != byte(at));
        assert_eq!(wrong, None, "behind {received}: {:?}", connection.traffic());
        *received += bytes as u64;
        bytes > 0
    };
    while !has_ended && !is_readable(ends) {
        for _ in 0..50 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bytes: Vec<u8> = (sent..sent + 1 + (random >> 33) % PIECE).map(byte).collect();
            connection.send_all(&bytes);
            sent += bytes.len() as u64;
            while !has_ended && received + AHEAD < sent {
                has_ended = !receive(&mut received, 1 + (random >> 40) as usize % PIECE as usize);
            }
        }
    }
    connection.shut_down();
    while receive(&mut received, PIECE as usize) {}
}

fn is_readable(pipe: &std::io::PipeReader) -> bool {
    let mut watched = [rustix::event::PollFd::new(pipe, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut watched, Some(&rustix::event::Timespec::default())).unwrap() > 0
}

fn order(folder: &Path, pids: &[u32], to: Windows) -> Switched {
    switch(&folder.join("d"), pids, to, HANGS).unwrap()
}

/// Stops a child, and waits until it stands.
fn stop(child: Pid) {
    kill_process(child, Signal::STOP).unwrap();
    let told = waitpid(Some(child), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(told.1.stopped(), "{told:?}");
}

fn number(process: Pid) -> u32 {
    process.as_raw_nonzero().get().unsigned_abs()
}

/// The connections of both processes, as boards have them, when `is_so` of each.
fn wait_until(folder: &Path, is_so: impl Fn(&beeline_socket_rules::RowView) -> bool) {
    let started = std::time::Instant::now();
    loop {
        // One may be in the making.
        let seen: Vec<_> = boards(&folder.join("d")).unwrap().filter_map(Result::ok).collect();
        let rows: Vec<_> = seen.iter().flat_map(|board| &board.rows).collect();
        if rows.len() == 2 && rows.iter().all(|row| is_so(row)) {
            return;
        }
        assert!(started.elapsed() < HANGS, "{rows:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn sending(folder: &Path) -> Vec<Direction> {
    let folder = folder.join("d");
    boards(&folder).unwrap().map(|board| board.unwrap().rows[0].sending).collect()
}

/// Runs two processes whose streams go both ways, while `part` is run here; `part` has the domain's folder and both processes.
fn while_both_stream(rules: &Rules, part: impl FnOnce(&Path, [Pid; 2])) {
    let (folder, listener) = (tempfile::tempdir().unwrap(), TcpListener::bind(("127.0.0.1", 0)).unwrap());
    let (ends, mut tell) = std::io::pipe().unwrap();
    let start = |accepts: bool| {
        in_child(|| {
            let sockets = sockets(folder.path(), rules.clone());
            let connection = match accepts {
                true => Connection::accepted(sockets, &listener),
                false => Connection::connected(sockets, &listener),
            };
            both_ways(&connection, &ends);
            assert!(connection.is_carried(), "{:?}", connection.traffic());
            connection.close();
        })
    };
    let processes = [start(true), start(false)];
    wait_until(folder.path(), |row| row.sending.carrier == Carrier::Window);
    part(folder.path(), processes);
    // Neither takes it.
    tell.write_all(&[0]).unwrap();
    assert_eq!(processes.map(exit_of), [Some(0), Some(0)]);
}

fn streams_are_whole_while_windows_go(times: u32) {
    while_both_stream(&Rules::default(), |folder, processes| {
        let mut both = processes.map(number);
        both.sort_unstable();
        for time in 0..times {
            for (to, carrier) in [(Windows::Down, Carrier::Socket), (Windows::Up, Carrier::Window)] {
                let mut switched = order(folder, &[], to);
                switched.done.sort_unstable();
                assert_eq!(switched, Switched { done: both.to_vec(), not_yet: vec![] }, "{time}");
                wait_until(folder, |row| row.sending.carrier == carrier);
            }
        }
        wait_until(folder, |row| row.sending.downs >= times.into());
    });
}

#[test]
fn streams_are_whole_while_windows_go_down_and_up() {
    streams_are_whole_while_windows_go(60);
}

#[test]
#[ignore = "long"]
fn streams_are_whole_while_windows_go_down_and_up_a_thousand_times() {
    streams_are_whole_while_windows_go(1_000);
}

fn streams_are_whole_while_one_side_is_stopped(times: u32) {
    while_both_stream(&Rules::default(), |folder, processes| {
        for time in 0..times {
            let stopped = processes[time as usize % 2];
            for (to, carrier) in [(Windows::Down, Carrier::Socket), (Windows::Up, Carrier::Window)] {
                let domain = folder.join("d");
                if time % 4 < 2 {
                    // Before the order, so that it cannot be carried out.
                    stop(stopped);
                    let switched = switch(&domain, &[], to, Duration::from_millis(20)).unwrap();
                    assert!(switched.not_yet.contains(&number(stopped)), "{time}: {switched:?}");
                } else {
                    // Behind it, wherever the process is.
                    switch(&domain, &[], to, Duration::ZERO).unwrap();
                    stop(stopped);
                    std::thread::sleep(Duration::from_millis(5));
                }
                kill_process(stopped, Signal::CONT).unwrap();
                wait_until(folder, |row| row.sending.carrier == carrier);
            }
        }
    });
}

#[test]
fn streams_are_whole_while_one_side_is_stopped_in_the_middle_of_a_switch() {
    streams_are_whole_while_one_side_is_stopped(10);
}

#[test]
#[ignore = "long"]
fn streams_are_whole_while_one_side_is_stopped_in_the_middle_of_many_switches() {
    streams_are_whole_while_one_side_is_stopped(300);
}

#[test]
fn order_to_one_process_takes_down_both_directions_of_its_connections() {
    while_both_stream(&Rules::default(), |folder, [one, _]| {
        let switched = order(folder, &[number(one)], Windows::Down);
        assert_eq!(switched, Switched { done: vec![number(one)], not_yet: vec![] });
        wait_until(folder, |row| row.sending.carrier == Carrier::Socket && row.why == Some(Why::Down));
        // They stay there.
        let before = sending(folder);
        wait_until(folder, |row| row.sending.socket.messages > 1_000);
        for (before, later) in before.iter().zip(sending(folder)) {
            assert_eq!((before.window, before.ups), (later.window, later.ups));
        }
        order(folder, &[number(one)], Windows::Up);
        wait_until(folder, |row| row.sending.carrier == Carrier::Window && row.why.is_none());
    });
}

#[test]
fn process_that_begins_while_windows_are_down_begins_without() {
    let (folder, listener) = (tempfile::tempdir().unwrap(), TcpListener::bind(("127.0.0.1", 0)).unwrap());
    std::fs::DirBuilder::new().mode(0o700).create(folder.path().join("d")).unwrap();
    assert_eq!(order(folder.path(), &[], Windows::Down), Switched::default());
    let server = in_child(|| {
        let server = Connection::accepted(sockets(folder.path(), Rules::default()), &listener);
        answer(&server);
    });
    let client = in_child(|| {
        let client = Connection::connected(sockets(folder.path(), Rules::default()), &listener);
        let exchange = || {
            client.send_all(b"12345678");
            client.receive_all(&mut [0; 8]);
        };
        // They have agreed, and still stay down.
        let is_held = |row: &beeline_socket_rules::RowView| row.why == Some(Why::Down);
        (0..100).for_each(|_| exchange());
        wait_until(folder.path(), is_held);
        (0..1_000).for_each(|_| exchange());
        assert_eq!(client.traffic().ups, 0);
        order(folder.path(), &[], Windows::Up);
        warm_up(&client);
        client.shut_down();
        assert_eq!(client.receive(&mut [0]), Ok(0));
    });
    assert_eq!((exit_of(client), exit_of(server)), (Some(0), Some(0)));
}
