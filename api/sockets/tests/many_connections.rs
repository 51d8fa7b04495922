//! Many connections at the same time between two processes with the library: all carried, each byte checked, nothing left behind them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "each test uses a part of it")]
mod ground;

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use ground::{Ground, Run};

/// Descriptors of the library in a process, whatever number of connections it has.
const OWN_DESCRIPTORS: u64 = 30;
/// What the heap of a process may grow by from one round to the next.
const GROWN_KIB: u64 = 1024;

/// What one of the two processes had.
#[derive(Debug)]
struct Had {
    descriptors: u64,
    threads: u64,
    private_kib: u64,
    mappings: u64,
    shared_kib: u64,
}

/// Runs both programs to their end; what they said.
fn both(ground: &Ground, asks: &str, set: impl Fn(&mut Command)) -> String {
    let program = ground.compile("many.c", &[]);
    let start = |arguments: &str| {
        let mut command = ground.at_once(&program);
        command.args(arguments.split_whitespace());
        set(&mut command);
        command
    };
    let mut server = start("").stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(server.stdout.take().unwrap());
    let mut port = String::new();
    said.read_line(&mut port).unwrap();
    let client = Run::of(&mut start(&format!("{} {asks}", port.trim_start_matches("port ").trim())));
    let mut all = client.out.clone();
    said.read_to_string(&mut all).unwrap();
    let status = server.wait().unwrap();
    assert!(client.ended_well() && status.success(), "{client:?}\n{status}\n{all}");
    all
}

/// What a process had in each round, `open` or `closed`.
fn had(said: &str, who: &str, when: &str) -> Vec<Had> {
    let lines = said.lines().filter_map(|line| line.strip_prefix(&format!("{who} {when} ")));
    let read = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let value = |name| -> u64 {
            words[words.iter().position(|word| *word == name).unwrap() + 1].parse().unwrap()
        };
        Had {
            descriptors: value("descriptors"),
            threads: value("threads"),
            private_kib: value("private"),
            mappings: value("mappings"),
            shared_kib: value("shared"),
        }
    };
    lines.map(read).collect()
}

/// Opens so many connections in each round, and checks that what they used is there again.
fn open_and_close(connections: u64, rounds: u64, window_kib: u64) {
    let ground = Ground::new();
    let asks = format!("{connections} {rounds} 2 1");
    let said = both(&ground, &asks, |command| {
        command.env("BEELINE_SOCKETS_WINDOW_BYTES", format!("{window_kib}KiB"));
    });
    let carried = said.matches(&format!("{connections} of {connections} carried")).count() as u64;
    assert_eq!(carried, rounds, "{said}");
    for who in ["client", "server"] {
        let (open, closed) = (had(&said, who, "open"), had(&said, who, "closed"));
        assert_eq!((open.len() as u64, closed.len() as u64), (rounds, rounds), "{said}");
        for (open, closed) in open.iter().zip(&closed) {
            assert!(open.descriptors <= connections + OWN_DESCRIPTORS, "{who}\n{said}");
            // What both windows of each hold has gone back, but for some that the next connections get.
            assert!(closed.shared_kib <= connections + 5120, "{who}\n{said}");
            assert!(closed.mappings == open.mappings && closed.threads <= open.threads, "{who}\n{said}");
            assert!(closed.descriptors <= OWN_DESCRIPTORS, "{who}\n{said}");
        }
        let (first, last) = (&closed[0], &closed[closed.len() - 1]);
        assert!(last.descriptors <= first.descriptors && last.threads <= first.threads, "{who}\n{said}");
        assert!(last.private_kib <= first.private_kib + GROWN_KIB, "{who}\n{said}");
    }
    idle_costs_nothing(&said, rounds);
}

/// Each process slept in one call, and no other thread of it woke, but for what begins or ends beside it.
fn idle_costs_nothing(said: &str, rounds: u64) {
    let idle: Vec<u64> = said
        .lines()
        .filter_map(|line| line.split_once(" idle sleeps "))
        .map(|(_, rest)| rest.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(idle.len() as u64, 2 * rounds, "{said}");
    assert!(idle.iter().all(|sleeps| *sleeps <= 3), "{said}");
}

#[test]
fn thousand_connections_are_carried_cost_nothing_while_idle_and_leave_nothing_behind() {
    open_and_close(1000, 3, 64);
}

#[test]
#[ignore = "takes a minute, and needs a hard limit of 10,100 descriptors"]
fn ten_thousand_connections_are_carried_and_leave_nothing_behind() {
    open_and_close(10_000, 3, 16);
}
