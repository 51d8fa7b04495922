//! What a connection had is given back when both ends are closed.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::net::TcpListener;
use std::time::Instant;

use beeline_socket_rules::Rules;
use support::*;

/// KiB of addresses that this process has mapped.
fn mapped_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn memory_of_connections_within_a_process_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = sockets(folder.path(), Rules::default());
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let use_one = || {
        let (client, server) =
            (Connection::connected(sockets, &listener), Connection::accepted(sockets, &listener));
        let started = Instant::now();
        while !(client.is_carried() && server.is_carried()) {
            assert!(started.elapsed() < HANGS);
            for (from, to) in [(&client, &server), (&server, &client)] {
                from.send_all(b"x");
                to.receive_all(&mut [0]);
            }
        }
        client.close();
        server.close();
    };
    (0..50).for_each(|_| use_one());
    let before = mapped_kib();
    (0..200).for_each(|_| use_one());
    // Each has 385 KiB.
    assert!(mapped_kib() < before + 50 * 385, "{before} KiB before, {} KiB behind 200 more", mapped_kib());
}
