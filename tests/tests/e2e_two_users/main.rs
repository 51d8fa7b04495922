//! `kill -9` and SIGSTOP across two users: an owner of one uid, clients of another that its offers list. Whoever is killed, wherever
//! it is (connecting, in a window, in a byte stream, between notifications, in a segment, closing): every death is seen as one, no
//! item is lost in the middle, comes twice or is wrong, the next process is served, and nothing is left.
//!
//! 200 kills; `BEELINE_KILLS` asks for another number. The seed is printed and taken back from `BEELINE_SEED`. Only root can
//! start processes of two users; anybody else skips this, and says so.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../e2e_support/mod.rs"]
mod e2e_support;

mod client;
mod owner;
mod refusals;

use std::time::Instant;

use beeline_tests::Random;
use e2e_support::held::Held;
use e2e_support::users::{ALLOWED, OWNER, Process, Users, is_within, wait};
use e2e_support::{PAUSE, WATCHDOG, number, own_role, seed};
use rustix::process::Signal;

#[test]
#[ignore = "a role of the other tests, not a test"]
fn role() {
    match own_role().as_deref() {
        Some("owner") => owner::run(),
        Some("client") => client::run(),
        other => panic!("no role {other:?}"),
    }
}

fn start_owner(users: &Users) -> Process {
    users.start(OWNER, "owner", &[("ALLOWED", &ALLOWED.to_string())])
}

fn start_client(users: &Users, arguments: &[(&str, &str)]) -> Process {
    let owner = OWNER.to_string();
    users.start(ALLOWED, "client", &[arguments, &[("OWNER", owner.as_str())]].concat())
}

/// The processes of a run.
struct Run {
    users: Users,
    random: Random,
    owner: Process,
    client: Process,
    /// Lives through all, and sees every death of an owner.
    beside: Process,
    /// Whether the client closes and connects again by itself.
    closes: bool,
    /// Whether the client has been heard to connect to this owner.
    is_connected: bool,
    /// What the owner held when its two clients were first connected.
    held: Option<Held>,
}

impl Run {
    fn new(users: Users, seed: u64) -> Self {
        let mut owner = start_owner(&users);
        owner.expect("ready");
        let mut beside = start_client(&users, &[("BESIDE", "yes")]);
        beside.expect("connected");
        let client = start_client(&users, &[]);
        Run {
            users,
            random: Random::new(seed),
            owner,
            client,
            beside,
            closes: false,
            is_connected: false,
            held: None,
        }
    }

    /// A client that stays, or one that closes and connects again after some steps.
    fn start_client(&mut self) {
        let steps = [None, None, Some("1"), Some("20"), Some("500")][self.random.below(5)];
        let arguments: Vec<(&str, &str)> = steps.map(|steps| ("STEPS", steps)).into_iter().collect();
        self.closes = steps.is_some();
        self.client = start_client(&self.users, &arguments);
        self.is_connected = false;
    }

    /// The client is connected, things flow, and the owner is no larger than when it first had both clients.
    fn settle(&mut self) {
        if !self.is_connected {
            self.client.expect("connected");
            self.is_connected = true;
        }
        for process in [&mut self.client, &mut self.beside] {
            process.forget("flows");
            process.expect("flows");
        }
        if self.closes {
            return;
        }
        let begun = Instant::now();
        let held = *self.held.get_or_insert_with(|| self.owner.held());
        // What is closed by a thread of its own takes a moment.
        while !is_within(self.owner.held(), held) {
            assert!(begun.elapsed() < WATCHDOG, "{:?}, and {held:?} before", self.owner.held());
            std::thread::sleep(PAUSE);
        }
    }

    fn kill_client(&mut self) {
        let pid = self.client.kill();
        let departed = self.owner.departures_of(pid, usize::from(self.is_connected));
        if self.is_connected && !self.closes {
            // Before it, only connections that the client gave up itself, as one that was not answered in time.
            let died = departed.iter().filter(|how| *how == "died").count();
            assert_eq!(died, 1, "the owner saw {departed:?}");
        }
        self.start_client();
    }

    fn kill_owner(&mut self) {
        let pid = self.owner.kill();
        self.beside.expect(&format!("lost {pid}"));
        if !self.closes {
            self.client.expect(&format!("lost {pid}"));
        }
        self.owner = start_owner(&self.users);
        self.owner.expect("ready");
        self.beside.expect("connected");
        (self.held, self.is_connected) = (None, false);
        if self.closes {
            // It says only once that it is connected.
            self.client.kill();
            self.start_client();
        }
    }

    /// One side is stopped for a while: nobody takes it for dead, and who does not need it goes on.
    fn stop_one(&mut self) {
        let is_owner = self.random.below(2) == 0;
        let stopped = if is_owner { &self.owner } else { &self.client };
        stopped.signal(Signal::STOP);
        if is_owner {
            wait(&mut self.random, 20_000);
        } else {
            self.beside.forget("flows");
            for _ in 0..3 {
                self.beside.expect("flows");
            }
        }
        let stopped = if is_owner { &self.owner } else { &self.client };
        stopped.signal(Signal::CONT);
        for process in [&mut self.client, &mut self.beside] {
            process.forget("flows");
            process.expect("flows");
            process.has_not_said("lost");
            self.owner.has_not_said(&format!("died {}", process.pid()));
        }
    }

    fn round(&mut self) {
        // Now and then before anything is settled: in a start, in a connect.
        if self.random.below(3) == 0 {
            wait(&mut self.random, 25_000);
            return self.kill_client();
        }
        self.settle();
        match self.random.below(10) {
            0 => self.stop_one(),
            1 => {
                wait(&mut self.random, 3_000);
                return self.kill_owner();
            }
            _ => {}
        }
        wait(&mut self.random, 3_000);
        self.kill_client();
    }
}

#[test]
fn whoever_is_killed_is_seen_to_die_and_leaves_nothing() {
    let Some(users) = Users::new() else { return };
    let kills = number("BEELINE_KILLS").unwrap_or(200);
    let seed = seed();
    println!("{kills} kills with BEELINE_SEED={seed}");
    let mut run = Run::new(users, seed);
    run.settle();
    let (files, beside) = (run.users.files(), run.beside.held());
    for kill in 0..kills {
        if kill % 100 == 99 {
            println!("{} kills", kill + 1);
        }
        run.round();
    }
    run.settle();
    assert_eq!(run.users.files(), files, "names in the folder of the domain");
    assert!(is_within(run.beside.held(), beside), "{:?}, and {beside:?} before", run.beside.held());
    let Run { users, owner, client, beside, .. } = run;
    client.end();
    beside.end();
    owner.end();
    assert_eq!(users.files(), Vec::<String>::new(), "what an owner leaves that ends in good order");
}
