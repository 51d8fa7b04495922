//! Two processes whose connections leave the kernel: every byte once and in order, and the kernel's answers where it is the kernel's.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;

use beeline_socket_rules::{BoardView, Rules, Spin, Why, boards};
use rustix::io::Errno;
use rustix::net::SendFlags;
use support::*;

fn listener() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).unwrap()
}

/// A server in a child, and a client here, each with the engine.
fn both(rules: &Rules, serve: impl FnOnce(Connection), ask: impl FnOnce(Connection)) {
    let (folder, listener) = (tempfile::tempdir().unwrap(), listener());
    let child = in_child(|| {
        serve(Connection::accepted(sockets(folder.path(), rules.clone()), &listener));
    });
    // Each client is a process of its own too: the engine is one for a process.
    let client = in_child(|| {
        ask(Connection::connected(sockets(folder.path(), rules.clone()), &listener));
    });
    assert_eq!((exit_of(client), exit_of(child)), (Some(0), Some(0)));
}

#[test]
fn connection_leaves_the_kernel_and_ends_as_one_of_the_kernel_does() {
    both(
        &Rules::default(),
        |server| {
            answer(&server);
            server.close();
        },
        |client| {
            warm_up(&client);
            client.shut_down();
            assert_eq!(client.receive(&mut [0; 8]), Ok(0));
        },
    );
}

#[test]
fn sleepers_are_woken() {
    let rules = Rules { spin: Spin::For(std::time::Duration::ZERO), ..Rules::default() };
    both(
        &rules,
        |server| answer(&server),
        |client| {
            warm_up(&client);
            let (started, mut number) = (std::time::Instant::now(), 0);
            // Whether a thread sleeps before it is answered, the kernel says.
            while number < 20_000 || client.traffic().sleeps < 300 || client.traffic().rings < 300 {
                exchange(&client, number..number + 100);
                number += 100;
                assert!(started.elapsed() < HANGS, "{:?}", client.traffic());
            }
        },
    );
}

#[test]
fn streams_are_byte_exact_both_ways() {
    const BYTES: u64 = 40_000_000;
    both(
        &Rules::default(),
        |server| answer(&server),
        |client| {
            warm_up(&client);
            let mut random = 7_u64;
            let mut next = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                random >> 33
            };
            let (mut sent, mut received) = (0, 0);
            while received < BYTES {
                let most = [64, 4096, 300_000][next() as usize % 3];
                let bytes: Vec<u8> = (sent..BYTES.min(sent + 1 + next() % most)).map(byte).collect();
                // The server answers as it goes; what it cannot send waits in it, so not too much is on the way.
                client.send_all(&bytes);
                sent += bytes.len() as u64;
                while received < sent {
                    let mut out = vec![0; 1 + (next() % 100_000) as usize];
                    let found = client.receive(&mut out).unwrap();
                    assert!(found > 0, "it ended at {received}");
                    let wrong =
                        out[..found].iter().zip(received..).position(|(found, at)| *found != byte(at));
                    assert_eq!(wrong, None, "behind {received}: {:?}", client.traffic());
                    received += found as u64;
                }
            }
            let traffic = client.traffic();
            assert!(traffic.sent_by_window_bytes > BYTES / 20, "{traffic:?}");
        },
    );
}

#[test]
fn stream_whose_sender_is_faster_than_its_receiver_does_not_stay_in_the_socket() {
    const BYTES: u64 = 16 << 20;
    /// Less than a socket has room for though nobody reads it.
    const BEHIND: u64 = 32 << 10;
    const BEGIN: u64 = 1 << 20;
    /// Of a sender that has a core for itself, in the second or two that it takes.
    const FEW_SWITCHES: u64 = 100;
    both(
        &Rules::default(),
        |server| {
            answer_to_the_last(&server);
            while rustix::io::ioctl_fionread(&server.socket).unwrap() < BEHIND {
                std::thread::yield_now();
            }
            let (mut at, mut out) = (0, [0; 64]);
            while at < BYTES {
                let found = server.receive(&mut out).unwrap();
                // What a program does with them, in more time than it takes to send them.
                (0..500).for_each(|_| std::hint::spin_loop());
                assert!(out[..found].iter().zip(at..).all(|(found, at)| *found == byte(at)), "behind {at}");
                at += found as u64;
            }
            server.send_all(&u64::MAX.to_le_bytes());
        },
        |client| {
            warm_up(&client);
            client.send_all(&u64::MAX.to_le_bytes());
            client.receive_all(&mut [0; 8]);
            let (mut at, mut by_window, switches) = (0, None, switches_for_others());
            while at < BYTES {
                let bytes: [u8; 64] = std::array::from_fn(|index| byte(at + index as u64));
                match client.send_with(&bytes, SendFlags::DONTWAIT) {
                    Ok(sent) => at += sent as u64,
                    Err(Errno::AGAIN) => std::thread::yield_now(),
                    Err(errno) => panic!("{errno}"),
                }
                if at >= BEGIN {
                    by_window.get_or_insert_with(|| client.traffic().sent_by_window_bytes);
                }
            }
            let by_window = client.traffic().sent_by_window_bytes - by_window.unwrap();
            // Where both have cores it is nearly all; of a stream that stays in the socket it is a hundredth. A receiver that others keep from its core catches up
            // when it has it.
            let is_busy = switches_for_others() - switches > FEW_SWITCHES;
            let least = if is_busy { 0 } else { (BYTES - BEGIN) / 8 };
            assert!(by_window > least, "{:?}", client.traffic());
            client.receive_all(&mut [0; 8]);
        },
    );
}

/// How often another program got this thread's core while it would have gone on.
fn switches_for_others() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}

/// Sends and receives a few messages.
fn exchange(client: &Connection, numbers: std::ops::Range<u64>) {
    for number in numbers {
        client.send_all(&number.to_le_bytes());
        let mut answer = [0; 8];
        client.receive_all(&mut answer);
        assert_eq!(u64::from_le_bytes(answer), number);
    }
}

#[test]
fn child_goes_on_with_its_parent_s_connection() {
    let use_in_child = |connection: Connection, part: fn(&Connection)| {
        let child = in_fork(connection.sockets(), || part(&connection));
        // The parent has done with it.
        connection.close();
        assert_eq!(exit_of(child), Some(0));
    };
    both(
        &Rules::default(),
        |server| {
            let mut bytes = [0; 8];
            while u64::from_le_bytes(bytes) != 999 {
                server.receive_all(&mut bytes);
                server.send_all(&bytes);
            }
            assert!(server.is_carried());
            use_in_child(server, answer);
        },
        |client| {
            let mut number = 1_000;
            while !client.is_carried() {
                exchange(&client, number..number + 1);
                number += 1;
            }
            exchange(&client, 0..1_000);
            use_in_child(client, |client| exchange(client, 1_000..2_000));
        },
    );
}

#[test]
fn child_that_uses_nothing_leaves_its_parent_s_connection_as_it_is() {
    both(
        &Rules::default(),
        |server| answer(&server),
        |client| {
            warm_up(&client);
            for round in 0..20 {
                let child = in_fork(client.sockets(), || {});
                exchange(&client, round * 100..round * 100 + 100);
                assert_eq!(exit_of(child), Some(0));
            }
            let traffic = client.traffic();
            assert_eq!((traffic.ups, traffic.downs), (1, 0));
        },
    );
}

#[test]
fn connection_that_parent_and_child_both_use_is_reset() {
    both(
        &Rules::default(),
        |server| {
            let mut bytes = [0; 8];
            while server.receive(&mut bytes).is_ok_and(|received| received > 0) {
                if server.send(&bytes).is_err() {
                    break;
                }
            }
        },
        |client| {
            warm_up(&client);
            let (mut parent_has_used_it, mut tell) = std::io::pipe().unwrap();
            let child = in_fork(client.sockets(), || {
                parent_has_used_it.read_exact(&mut [0]).unwrap();
                assert_eq!(client.receive(&mut [0; 8]), Err(rustix::io::Errno::CONNRESET));
            });
            exchange(&client, 0..1);
            tell.write_all(&[0]).unwrap();
            assert_eq!(exit_of(child), Some(0));
        },
    );
}

#[test]
fn killed_process_is_an_end_where_it_had_read_all_and_a_reset_where_it_had_not() {
    for leaves_unread in [false, true] {
        let (folder, listener) = (tempfile::tempdir().unwrap(), listener());
        let server = in_child(|| {
            let server = Connection::accepted(sockets(folder.path(), Rules::default()), &listener);
            let mut bytes = [0; 8];
            loop {
                server.receive_all(&mut bytes);
                server.send_all(&bytes);
            }
        });
        let client = in_child(|| {
            let client = Connection::connected(sockets(folder.path(), Rules::default()), &listener);
            warm_up(&client);
            exchange(&client, 0..100);
            let expected = if leaves_unread {
                rustix::process::kill_process(server, rustix::process::Signal::STOP).unwrap();
                client.send_all(b"unread");
                Err(rustix::io::Errno::CONNRESET)
            } else {
                Ok(0)
            };
            rustix::process::kill_process(server, rustix::process::Signal::KILL).unwrap();
            assert_eq!(client.receive(&mut [0; 8]), expected);
            assert_eq!(client.receive(&mut [0; 8]), Ok(0));
        });
        assert_eq!(exit_of(client), Some(0), "{leaves_unread}");
        assert_eq!(exit_of(server), None, "it was killed");
    }
}

#[test]
fn killed_process_s_last_bytes_are_received() {
    for _ in 0..20 {
        let (folder, listener) = (tempfile::tempdir().unwrap(), listener());
        let server = in_child(|| {
            let server = Connection::accepted(sockets(folder.path(), Rules::default()), &listener);
            answer_to_the_last(&server);
            (0..1_000_u64).for_each(|number| server.send_all(&number.to_le_bytes()));
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
        });
        let client = in_child(|| {
            let client = Connection::connected(sockets(folder.path(), Rules::default()), &listener);
            warm_up(&client);
            client.send_all(&u64::MAX.to_le_bytes());
            let mut bytes = [0; 8];
            client.receive_all(&mut bytes);
            for number in 0..1_000 {
                client.receive_all(&mut bytes);
                assert_eq!(u64::from_le_bytes(bytes), number);
            }
            assert_eq!(client.receive(&mut bytes), Ok(0));
        });
        assert_eq!(exit_of(client), Some(0));
        assert_eq!(exit_of(server), None, "it was killed");
    }
}

#[test]
fn stopped_process_holds_nobody_up() {
    const BYTES: u64 = 300_000;
    let (folder, listener) = (tempfile::tempdir().unwrap(), listener());
    let server = in_child(|| {
        let server = Connection::accepted(sockets(folder.path(), Rules::default()), &listener);
        answer(&server);
    });
    let client = in_child(|| {
        let client = Connection::connected(sockets(folder.path(), Rules::default()), &listener);
        warm_up(&client);
        for _ in 0..20 {
            rustix::process::kill_process(server, rustix::process::Signal::STOP).unwrap();
            // More than the window, so it goes on in the socket, whose buffers have room for it.
            client.send_all(&(0..BYTES).map(byte).collect::<Vec<u8>>());
            rustix::process::kill_process(server, rustix::process::Signal::CONT).unwrap();
            let mut out = vec![0; BYTES as usize];
            client.receive_all(&mut out);
            assert!(out.iter().zip(0..).all(|(found, at)| *found == byte(at)));
        }
        assert!(client.traffic().downs > 0, "{:?}", client.traffic());
        client.shut_down();
        assert_eq!(client.receive(&mut [0]), Ok(0));
    });
    assert_eq!((exit_of(client), exit_of(server)), (Some(0), Some(0)));
}

fn boards_of(folder: &std::path::Path) -> Vec<BoardView> {
    boards(&folder.join("d")).unwrap().map(Result::unwrap).collect()
}

#[test]
fn connections_are_listed_with_what_went_over_them() {
    let (folder, listener) = (tempfile::tempdir().unwrap(), listener());
    let port = listener.local_addr().unwrap().port();
    let server = in_child(|| {
        let server = Connection::accepted(sockets(folder.path(), Rules::default()), &listener);
        answer(&server);
    });
    let client = in_child(|| {
        let client = Connection::connected(sockets(folder.path(), Rules::default()), &listener);
        warm_up(&client);
        exchange(&client, 0..1_000);
        let own = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
        let board = boards_of(folder.path()).into_iter().find(|board| board.pid() == own).unwrap();
        let [row] = &*board.rows else { panic!("{board:?}") };
        assert_eq!(row.peer.port(), port);
        let traffic = client.traffic();
        assert_eq!(row.sending.window.bytes, traffic.sent_by_window_bytes);
        assert_eq!(row.receiving.window.bytes, traffic.received_by_window_bytes);
        assert_eq!(row.why, None);
        client.sockets().forbid(client.socket.as_fd(), Why::Option);
        let board = boards_of(folder.path()).into_iter().find(|board| board.pid() == own).unwrap();
        assert_eq!(board.rows[0].why, Some(Why::Option));
    });
    assert_eq!((exit_of(client), exit_of(server)), (Some(0), Some(0)));
}
