//! Members of two users are killed at random moments of all that a member does: nothing is left of them.
//!
//! `BEELINE_CRASHES` asks for another number of crashes: 10,000 in the long lane. The seed is printed and taken back from `BEELINE_SEED`.
//! Only root can start processes of two users; for anybody else both are one user, who has two domains.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use support::crashing::{CRASHES, FIRST, FIRSTS, OTHER, PART, STAYS};
use support::random::{Random, number};
use support::{Fabric, Process};

/// Users who own nothing.
const USERS: [u32; 2] = [65_531, 65_532];
const NODES: [u16; 2] = [8, 12];
/// Crashes before what is held is counted for the first time: each member has met each other's registry and group then.
const FIRST_CRASHES: u64 = 60;
/// How much more a member may have afterwards of threads, which come and go with its work, of blocks of its bank, and of kilobytes of its
/// own, some of which an allocator keeps.
const GROWTH: [u64; 3] = [8, 512, 2048];

#[test]
fn role() {
    support::crashing::play();
}

/// The program of this test where any user may execute it, and a root for each user.
struct Users {
    folder: tempfile::TempDir,
    uids: [u32; 2],
    _watchdog: Fabric,
}

impl Users {
    fn new(longest: Duration) -> Self {
        let (own, is_root) = (rustix::process::geteuid().as_raw(), rustix::process::geteuid().is_root());
        let uids = if is_root { USERS } else { [own, own] };
        if !is_root {
            eprintln!("only root can start processes of two users: both are user {own}");
        }
        let users = Users { folder: tempfile::tempdir().unwrap(), uids, _watchdog: Fabric::lasting(longest) };
        let all = || PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(users.folder.path(), all()).unwrap();
        // By a process of its own: a program that somebody has open for writing is not executed.
        let mut copy = Command::new("cp");
        copy.arg(std::env::current_exe().unwrap()).arg(users.program());
        assert!(copy.status().unwrap().success());
        std::fs::set_permissions(users.program(), all()).unwrap();
        for (side, uid) in uids.into_iter().enumerate() {
            std::fs::create_dir(users.root(side)).unwrap();
            std::fs::set_permissions(users.root(side), all()).unwrap();
            chown(users.root(side), Some(uid), Some(uid)).unwrap();
        }
        users
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("program")
    }

    fn root(&self, side: usize) -> PathBuf {
        self.folder.path().join(side.to_string())
    }

    fn start(&self, side: usize, part: &str, first: u32) -> Process {
        let other = 1 - side;
        let of_other = format!("{} {} {}", NODES[other], self.uids[other], self.root(other).display());
        let mut program = Command::new(self.program());
        if self.uids[0] != self.uids[1] {
            program.uid(self.uids[side]).gid(self.uids[side]);
        }
        program.current_dir("/").env(PART, part).env(OTHER, of_other).env(FIRST, first.to_string());
        Process::start_as(program, &self.root(side), NODES[side], &[])
    }
}

/// Members that crash, one of each user and first number, and what they did last.
struct Crashing<'a> {
    users: &'a Users,
    random: Random,
    last_steps: BTreeMap<String, u64>,
}

impl Crashing<'_> {
    fn start(&self, which: usize) -> Process {
        self.users.start(which % 2, CRASHES, FIRSTS[which / 2])
    }

    /// Kills members one after the other, each in some step of its first rounds, and all of them in the end.
    fn crash(&mut self, crashes: u64) {
        let mut processes: Vec<_> = (0..2 * FIRSTS.len()).map(|which| self.start(which)).collect();
        for _ in 0..crashes.saturating_sub(processes.len() as u64) {
            let which = self.random.below(processes.len() as u64) as usize;
            let process = processes.swap_remove(which);
            self.kill(process);
            // The one that was last has its place.
            processes.push(self.start(which));
            processes.swap(which, 2 * FIRSTS.len() - 1);
        }
        processes.into_iter().for_each(|process| self.kill(process));
    }

    fn kill(&mut self, mut process: Process) {
        /// A round has so many steps, and no step takes much longer than this.
        const STEPS: u64 = 9;
        const LONGEST_MICROS: u64 = 400;
        let mut step = "start".to_owned();
        for _ in 0..self.random.below(2 * STEPS) {
            step = process.hear();
        }
        let (started, micros) = (Instant::now(), self.random.below(LONGEST_MICROS));
        while started.elapsed() < Duration::from_micros(micros) {
            std::hint::spin_loop();
        }
        let last = process.last_words().pop().unwrap_or(step);
        *self.last_steps.entry(last).or_default() += 1;
    }
}

/// What those who stay say of what they hold, and how much each has of what varies.
type Counts = ([String; 2], [[u64; 3]; 2]);

fn counts(staying: &mut [Process; 2]) -> Counts {
    let said = [0, 1].map(|side| staying[side].call("count"));
    let [held, varying] =
        [0, 1].map(|part| [0, 1].map(|side: usize| said[side].split('|').nth(part).unwrap().to_owned()));
    let numbers = |text: &String| text.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<_>>();
    (held, varying.map(|text| numbers(&text).try_into().unwrap()))
}

/// What they say when nothing changes any more: what dead members had is closed by threads that drop things.
fn settled(staying: &mut [Process; 2]) -> Counts {
    const SAME: u32 = 20;
    let (mut last, mut same) = (counts(staying), 0);
    while same < SAME {
        let now = counts(staying);
        same = if now.0 == last.0 { same + 1 } else { 0 };
        last = now;
    }
    last
}

#[test]
fn nothing_is_left_of_members_of_two_users_that_were_killed_at_random_moments() {
    let crashes = number("BEELINE_CRASHES").unwrap_or(200);
    let users = Users::new(Duration::from_secs(120) + Duration::from_millis(400) * crashes as u32);
    let mut staying = [0, 1].map(|side| users.start(side, STAYS, 0));
    staying.iter_mut().for_each(|process| assert_eq!(process.hear(), "joined"));
    let mut crashing = Crashing { users: &users, random: Random::new(), last_steps: BTreeMap::new() };
    let mut round = |staying: &mut [Process; 2], crashes| {
        staying.iter_mut().for_each(|process| process.expect("work", "works"));
        crashing.crash(crashes);
        staying.iter_mut().for_each(|process| process.begin("rest"));
    };
    round(&mut staying, FIRST_CRASHES);
    let (before, less) = settled(&mut staying);
    let started = Instant::now();
    round(&mut staying, crashes);
    let (after, more) = settled(&mut staying);
    let seconds = started.elapsed().as_secs_f64();
    println!("{crashes} crashes in {seconds:.1} s, by the last step: {:?}", crashing.last_steps);
    println!("held before and after: {after:#?}; threads, blocks, kB: {less:?}, then {more:?}");
    assert_eq!(after, before);
    for (side, at) in [0, 1].into_iter().flat_map(|side| [0, 1, 2].map(|at| (side, at))) {
        assert!(more[side][at] <= less[side][at] + GROWTH[at], "{less:?} became {more:?}");
    }
    staying.into_iter().for_each(Process::finish);
}
