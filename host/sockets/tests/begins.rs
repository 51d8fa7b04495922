//! How a connection begins to leave the kernel: nothing waits for the kernel meanwhile.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use beeline_socket_rules::Rules;
use rustix::process::{Resource, getrlimit};
use support::*;

/// Slots of the kernel's table of descriptors of this process, by its own word.
fn table_slots() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
    line.trim().parse().unwrap()
}

/// A process whose table gets longer while it has several threads waits in the kernel until none of them may look into the old one.
#[test]
fn table_of_descriptors_is_long_enough_before_there_is_a_second_thread() {
    let folder = tempfile::tempdir().unwrap();
    let child = in_child(|| {
        let before = table_slots();
        sockets(folder.path(), Rules::default());
        let wanted = getrlimit(Resource::Nofile).current.map_or(8192, |limit| (limit / 4 * 3).min(8192));
        assert!(before <= wanted, "{before} slots show nothing");
        assert!(table_slots() > wanted);
    });
    assert_eq!(exit_of(child), Some(0));
}

#[test]
fn table_of_a_process_with_threads_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let child = in_child(|| {
        let before = table_slots();
        std::thread::scope(|threads| {
            threads.spawn(|| sockets(folder.path(), Rules::default()));
        });
        assert_eq!(table_slots(), before);
    });
    assert_eq!(exit_of(child), Some(0));
}

/// The kernel holds an acknowledgement back for an answer that takes it along, which one by a window does not, and a small message until the one before it is acknowledged.
#[test]
fn what_goes_by_the_socket_is_acknowledged_where_the_answer_goes_by_a_window() {
    /// An eighth of what the kernel waits at least.
    const AT_ONCE: Duration = Duration::from_millis(5);
    const LEAST: usize = 8;
    /// What a client's exit says that came to its end, beside what it has seen.
    const SEEN: i32 = 16;
    let (mut mixed, mut late) = (0, 0);
    let started = Instant::now();
    while mixed < LEAST {
        assert!(started.elapsed() < HANGS, "{mixed} connections had one direction in a window alone");
        let (folder, listener) = (tempfile::tempdir().unwrap(), TcpListener::bind(("127.0.0.1", 0)).unwrap());
        let server = in_child(|| {
            let server = Connection::accepted(sockets(folder.path(), Rules::default()), &listener);
            let mut number = [0; 8];
            while u64::from_le_bytes(number) != u64::MAX {
                server.receive_all(&mut number);
                // The first may be on its way before the library has had the kernel acknowledge what came.
                server.send_all(&number);
                server.send_all(&number);
            }
        });
        let client = in_child(|| {
            let client = Connection::connected(sockets(folder.path(), Rules::default()), &listener);
            let (mut was_mixed, mut was_late) = (false, false);
            for number in 0.. {
                let before = client.traffic();
                assert!(started.elapsed() < HANGS, "{before:?}");
                client.send_all(&u64::to_le_bytes(number));
                client.receive_all(&mut [0; 16]);
                let after = client.traffic();
                let answered_by_window =
                    after.received_by_window_bytes == before.received_by_window_bytes + 16;
                if after.sent_by_window_bytes > 0 {
                    break;
                }
                if answered_by_window {
                    was_mixed = true;
                    let asked = Instant::now();
                    while beeline_tcp_sys::unacknowledged(&client.socket).unwrap() > 0 {
                        was_late |= asked.elapsed() > AT_ONCE;
                    }
                }
            }
            client.send_all(&u64::MAX.to_le_bytes());
            client.receive_all(&mut [0; 16]);
            beeline_mmio::end_child(SEEN + i32::from(was_mixed) * 2 + i32::from(was_late));
        });
        let seen = exit_of(client).unwrap();
        assert!(seen & SEEN != 0, "the client failed");
        assert_eq!(exit_of(server), Some(0));
        (mixed, late) = (mixed + usize::from(seen & 2 != 0), late + usize::from(seen & 1 != 0));
    }
    // On a busy machine some are late whatever is done for them.
    assert!(late <= mixed / 2, "{late} of {mixed} were not acknowledged");
}
