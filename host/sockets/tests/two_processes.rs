//! Two processes whose connections leave the kernel: every byte once and in order, and the kernel's answers where it is the kernel's.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::net::TcpListener;

use beeline_socket_rules::{Rules, Spin};
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
            for number in 0..20_000_u64 {
                client.send_all(&number.to_le_bytes());
                let mut answer = [0; 8];
                client.receive_all(&mut answer);
                assert_eq!(u64::from_le_bytes(answer), number);
            }
            let traffic = client.traffic();
            assert!(traffic.sleeps > 1_000 && traffic.rings > 1_000, "{traffic:?}");
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
