//! Clients that write at the same time, and clients that are killed while they do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use beeline_kv::{Key, KvClient, KvOptions};
use support::*;

const ROLE: &str = "BEELINE_KV_TEST_FOLDER";

/// A value that says whose it is and which one, over and over, so that a torn one is seen.
fn value(writer: u64, turn: u64) -> Vec<u8> {
    let words = [writer, turn].into_iter().cycle().take(2 + (turn % 40) as usize * 2);
    words.flat_map(u64::to_le_bytes).collect()
}

/// Who wrote a value, and at which turn; panics at a torn one.
fn parse(bytes: &[u8]) -> (u64, u64) {
    let word = |place: usize| u64::from_le_bytes(*bytes[place * 8..].first_chunk().unwrap());
    let (writer, turn) = (word(0), word(1));
    assert_eq!(bytes, value(writer, turn), "a torn value");
    (writer, turn)
}

fn key(number: u64) -> Key {
    Key::from_text(&format!("key {number}")).unwrap()
}

fn turns() -> u64 {
    std::env::var("BEELINE_KV_TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(3000)
}

/// Writes its own key and reads the others': each writer's turns only go up, whoever reads them.
fn write_and_read(mut client: KvClient, writer: u64, writers: u64) {
    let mut seen = vec![0; writers as usize];
    let mut bytes = Vec::new();
    for turn in 1..=turns() {
        client.set(key(writer), &value(writer, turn), watchdog()).unwrap();
        for other in 0..writers {
            if client.get(key(other), &mut bytes, watchdog()).unwrap() {
                let (found, at) = parse(&bytes);
                assert_eq!(found, other);
                let last = std::mem::replace(&mut seen[other as usize], at);
                assert!(at >= last, "{other} went back from {last} to {at}");
            }
        }
        assert_eq!(seen[writer as usize], turn, "its own last value is read");
        if turn % 64 == 0 {
            assert!(client.delete(key(writer), watchdog()).unwrap());
            client.set(key(writer), &value(writer, turn), watchdog()).unwrap();
        }
    }
}

#[test]
fn clients_at_the_same_time_see_whole_values_in_order() {
    for workers in [1, 2, 4] {
        let store = Store::serve(workers, KvOptions { max_memory_bytes: 1 << 16, ..KvOptions::default() });
        let writers = 3;
        std::thread::scope(|scope| {
            for writer in 0..writers {
                let client = store.client();
                scope.spawn(move || write_and_read(client, writer, writers));
            }
        });
        let stats = store.client().stats(watchdog()).unwrap();
        assert_eq!(stats.items, writers);
        assert_eq!(stats.sets, writers * (turns() + turns() / 64));
    }
}

/// Not a test of its own: what another process does until it is killed.
#[test]
fn a_client_that_writes_for_ever() {
    let Some(folder) = std::env::var_os(ROLE).map(PathBuf::from) else { return };
    let mut client = connect(&folder);
    println!("writing");
    for turn in 1.. {
        client.set(key(turn % 8), &value(turn % 8, turn), watchdog()).unwrap();
    }
}

fn start_writer(folder: &std::path::Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_client_that_writes_for_ever", "--nocapture"])
        .env(ROLE, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut out, mut said) = (child.stdout.take().unwrap(), Vec::new());
    while !said.ends_with(b"writing\n") {
        let mut byte = [0];
        out.read_exact(&mut byte).expect("the client connects");
        said.push(byte[0]);
    }
    child
}

#[test]
fn a_client_that_is_killed_costs_the_others_nothing() {
    for workers in [1, 2] {
        let store = Store::serve(workers, KvOptions::default());
        let mut client = store.client();
        let mine = Key::from_text("mine").unwrap();
        let mut bytes = Vec::new();
        for round in 0..6u64 {
            let mut child = start_writer(store.folder.path());
            let before = client.stats(watchdog()).unwrap().sets;
            // It is killed while it writes: after some of its values, whichever.
            while client.stats(watchdog()).unwrap().sets < before + 50 + round * 7 {}
            child.kill().unwrap();
            child.wait().unwrap();
            client.set(mine, &value(99, round), watchdog()).unwrap();
            assert!(client.get(mine, &mut bytes, watchdog()).unwrap());
            assert_eq!(parse(&bytes), (99, round));
            for number in 0..8 {
                if client.get(key(number), &mut bytes, watchdog()).unwrap() {
                    assert_eq!(parse(&bytes).0, number);
                }
            }
        }
    }
}
