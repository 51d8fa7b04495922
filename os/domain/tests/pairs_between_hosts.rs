//! Pairs of processes whose kernels do not know each other's sockets: they agree where what each says of its own fits to what the other one has.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::time::{Duration, Instant};

use beeline_domain::{ConnectionEnds, Domain, Met, Pairs, PairsOptions};
use beeline_tcp::Progress;
use harness::pairs::{MEMORY_BYTES, cookie, counts, ends};
use harness::{Helper, Role, TestFolder, say, wait_until};

const PORTS: std::ops::Range<u16> = 1..20;
/// How long two processes are watched that never agree; those that do take some milliseconds.
const LONG: Duration = Duration::from_millis(300);

fn pairs(domain: &Domain, progress: Option<Progress>) -> Pairs {
    domain
        .pairs_with(PairsOptions {
            memory_bytes: MEMORY_BYTES,
            socket_of: Box::new(|_| None),
            other_users: None,
            progress_of: progress.map(|progress| Box::new(move |_| Some(progress)) as _),
        })
        .unwrap()
}

fn progress(text: &str) -> Option<Progress> {
    let numbers: Vec<u64> = text.split(' ').filter_map(|number| number.parse().ok()).collect();
    let [given, acknowledged, received, taken] = numbers[..] else { return None };
    Some(Progress { given, acknowledged, received, taken })
}

fn meet(pairs: &Pairs, is_server: bool, port: u16, is_between_hosts: bool) -> Met {
    let ends = ends(is_server, port);
    let asked: ConnectionEnds = if is_between_hosts { ends.between_hosts() } else { ends };
    pairs.meet(cookie(&ends), &asked).unwrap()
}

/// A client, which has made progress or says nothing of it, and asks for connections between hosts or of this one.
#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let (kind, numbers) = role.argument.split_once(' ').unwrap();
    let pairs = pairs(&role.open(), progress(numbers));
    say("ready");
    loop {
        for port in PORTS {
            if let Met::Agreed(agreed) = meet(&pairs, false, port, kind == "hosts") {
                assert_eq!(agreed.other_cookie, cookie(&ends(true, port)));
                assert!(agreed.ringer.is_none(), "both are in one network namespace");
            }
        }
        pairs.turn();
        std::thread::yield_now();
    }
}

fn client(folder: &TestFolder, argument: &str) -> Helper {
    let mut client = folder.helper("pairs_between_hosts", argument);
    client.expect("ready");
    client
}

fn are_agreed_on(pairs: &Pairs, is_between_hosts: bool) -> bool {
    pairs.turn();
    PORTS.filter(|port| matches!(meet(pairs, true, *port, is_between_hosts), Met::Agreed(_))).count()
        == PORTS.count()
}

fn are_ever_agreed_on(pairs: &Pairs, is_between_hosts: bool) -> bool {
    let until = Instant::now() + LONG;
    while Instant::now() < until {
        pairs.turn();
        if PORTS.into_iter().any(|port| matches!(meet(pairs, true, port, is_between_hosts), Met::Agreed(_))) {
            return true;
        }
    }
    false
}

#[test]
fn connections_are_agreed_on_where_what_both_say_fits() {
    let folder = TestFolder::new();
    let ours = pairs(&folder.open(), progress("100 100 50 45"));
    for theirs in ["50 45 100 90", "50 50 100 100", "60 45 120 90"] {
        let mut client = client(&folder, &format!("hosts {theirs}"));
        wait_until(|| are_agreed_on(&ours, true));
        assert_eq!((ours.counts().open, ours.counts().without_memory), (1, 0));
        client.kill();
        wait_until(|| {
            ours.turn();
            ours.counts() == counts(0, 0)
        });
    }
}

#[test]
fn connection_is_not_agreed_on_where_either_side_has_what_the_other_one_never_gave() {
    for (ours, theirs) in [
        // The client has taken, and the server has had acknowledged, more than there was; then the other way round.
        ("100 100 50 45", "50 45 101 101"),
        ("100 100 50 45", "51 51 100 90"),
        ("100 100 51 51", "50 45 100 90"),
        ("101 101 50 45", "50 45 100 90"),
    ] {
        let folder = TestFolder::new();
        let pairs = pairs(&folder.open(), progress(ours));
        let _client = client(&folder, &format!("hosts {theirs}"));
        assert!(!are_ever_agreed_on(&pairs, true), "{ours}, {theirs}");
    }
}

#[test]
fn nothing_is_agreed_on_with_who_says_nothing_or_asks_for_another_connection() {
    for (theirs, is_between_hosts) in [
        ("hosts -", true),
        ("here 50 45 100 90", true),
        ("hosts 50 45 100 90", false),
        ("here 50 45 100 90", false),
    ] {
        let folder = TestFolder::new();
        let pairs = pairs(&folder.open(), progress("100 100 50 45"));
        let _client = client(&folder, theirs);
        assert!(!are_ever_agreed_on(&pairs, is_between_hosts), "{theirs}, {is_between_hosts}");
    }
}
