//! Two users, end to end, by what a program has of the library: a list of users, a connection of TCP that both share, tokens that
//! they exchange in one and in a pair of sockets. A third user is refused; whoever is killed is seen to die, the next process is
//! let in, and nothing is left.
//!
//! The seed is printed and taken back from `BEELINE_SEED`. Only root can start processes of several users; anybody else skips
//! this, and says so.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../e2e_support/mod.rs"]
mod e2e_support;

mod admission;
mod client;
mod owner;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use admission::{Admission, bequeath};
use beeline_tests::Random;
use e2e_support::held::Held;
use e2e_support::users::{ALLOWED, OTHER, OWNER, Process, Users, is_within, wait};
use e2e_support::{PAUSE, WATCHDOG, own_role, seed};

/// Clients that are killed at one owner.
const KILLS: usize = 8;
/// Pairs of sockets that an owner is given: one for each client.
const PAIRS: usize = KILLS + 3;

#[test]
#[ignore = "a role of the other tests, not a test"]
fn role() {
    match own_role().as_deref() {
        Some("owner") => owner::run(),
        Some("client") => client::run(),
        Some("unproved") => client::run_unproved(),
        other => panic!("no role {other:?}"),
    }
}

/// An owner, and what its clients need to reach it.
struct Run {
    users: Users,
    admission: Admission,
    /// The domain's name in the network namespace.
    name: String,
    owner: Process,
    port: String,
    /// The other ends of the owner's pairs, in the order in which the owner waits at them.
    ends: VecDeque<OwnedFd>,
}

static STARTING: Mutex<()> = Mutex::new(());

/// A domain of a run's own: every process of the machine that is in this network namespace sees its name.
fn domain_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("e2e-uids-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Run {
    fn new(users: Users, admission: Admission) -> Self {
        let name = domain_name();
        let (owner, port, ends) = Self::start_owner(&users, (admission, &name));
        Run { users, admission, name, owner, port, ends }
    }

    fn start_owner(
        users: &Users,
        (admission, name): (Admission, &str),
    ) -> (Process, String, VecDeque<OwnedFd>) {
        let pairs = if admission == Admission::TokenOverPair { PAIRS } else { 0 };
        let (ends, theirs): (VecDeque<OwnedFd>, Vec<OwnedFd>) = (0..pairs)
            .map(|_| UnixStream::pair().map(|(one, other)| (one.into(), other.into())).unwrap())
            .unzip();
        let mut owner = start(users, (admission, name), (OWNER, "owner"), "", theirs);
        let port = owner.expect("ready").split_once(' ').unwrap().1.to_owned();
        (owner, port, ends)
    }

    fn client(&mut self) -> Process {
        let end = self.ends.pop_front().into_iter().collect();
        start(&self.users, (self.admission, &self.name), (ALLOWED, "client"), &self.port, end)
    }

    /// Another owner after the death of this one.
    fn start_again(&mut self) {
        (self.owner, self.port, self.ends) = Self::start_owner(&self.users, (self.admission, &self.name));
    }

    /// The owner holds no more than before.
    fn settle(&mut self, before: Held) {
        let begun = Instant::now();
        while !is_within(self.owner.held(), before)
            || self.owner.held().mappings_of_memfds > before.mappings_of_memfds
        {
            assert!(begun.elapsed() < WATCHDOG, "{:?}, and {before:?} before", self.owner.held());
            std::thread::sleep(PAUSE);
        }
    }

    /// Ends the owner in good order: no name of it is left.
    fn end(self) {
        drop(self.ends);
        self.owner.end();
        assert_eq!(self.users.files(), Vec::<String>::new(), "names in the folder");
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        let names: Vec<_> = sockets.lines().filter(|line| line.contains(&self.name)).collect();
        assert_eq!(names, Vec::<&str>::new(), "names in the network namespace");
    }
}

/// What the process inherits, no other one does: one at a time is started.
fn start(
    users: &Users,
    (admission, name): (Admission, &str),
    (uid, role): (u32, &'static str),
    port: &str,
    sockets: Vec<OwnedFd>,
) -> Process {
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    let inherited: Vec<_> = sockets.iter().map(bequeath).collect();
    let (admission, inherited) = (admission.name(), inherited.join(" "));
    let arguments =
        [("ADMISSION", admission.as_str()), ("NAME", name), ("PORT", port), ("INHERITED", &inherited)];
    let process = users.start(uid, role, &arguments);
    // Before another one may be started: who keeps a copy keeps the connection.
    drop(sockets);
    process
}

#[test]
fn every_admission_lets_in_its_user_and_no_third_one() {
    for admission in Admission::ALL {
        let Some(users) = Users::new() else { return };
        println!("{admission:?}");
        let mut run = Run::new(users, admission);
        let mut client = run.client();
        client.expect("connected");
        let mut third = start(&run.users, (admission, &run.name), (OTHER, "unproved"), "", Vec::new());
        for _ in ["window", "told", "sessions"] {
            let refused = third.expect("refused");
            assert!(refused.contains(&format!("uid {OTHER} is not on the offer's list")), "{refused}");
        }
        third.end();
        client.forget("flows");
        client.expect("flows");
        client.end();
        run.end();
    }
}

/// Kills clients: in their start, while they prove themselves, connect, send and are told.
fn kill_clients(run: &mut Run, random: &mut Random) {
    let mut first = run.client();
    first.expect("flows");
    let pid = first.kill();
    run.owner.departures_of(pid, 1);
    let before = run.owner.held();
    for kill in 0..KILLS {
        let mut client = run.client();
        let is_settled = kill % 2 == 1;
        if is_settled {
            client.expect("flows");
        }
        wait(random, if is_settled { 3_000 } else { 25_000 });
        let pid = client.kill();
        run.owner.departures_of(pid, usize::from(is_settled));
        run.settle(before);
    }
}

#[test]
fn whoever_is_killed_is_seen_to_die_and_the_next_one_is_let_in() {
    let seed = seed();
    println!("BEELINE_SEED={seed}");
    let mut random = Random::new(seed);
    for admission in Admission::ALL {
        let Some(users) = Users::new() else { return };
        println!("{admission:?}");
        let mut run = Run::new(users, admission);
        kill_clients(&mut run, &mut random);
        for is_settled in [true, false] {
            let mut client = run.client();
            if is_settled {
                client.expect("flows");
            }
            wait(&mut random, if is_settled { 3_000 } else { 25_000 });
            run.owner.kill();
            client.expect("lost");
            client.end();
            run.start_again();
        }
        let mut client = run.client();
        client.expect("flows");
        client.end();
        run.end();
    }
}
