//! Two processes that share a mapped file and nothing else: each in a pid, user and network namespace of its own, so that no kernel
//! object tells one of the other. What is killed or stopped is down after the bound, both sides know, and nothing else is down.
//!
//! A side talks in lines that begin with `@` and obeys lines on its standard input. Where the kernel refuses namespaces, the
//! sides run without, and a line of the output says so. The seed is printed and taken back from `BEELINE_SEED`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use beeline_contract_link::{Evidence, Heartbeat, LinkKind};
use beeline_heartbeat::{
    Acceptance, Counters, Down, HeartbeatLink, MappedFile, MappedState, Session, Side, Status,
};
use beeline_mmio::{MappedSegment, OnLoss, Region, SegmentOptions};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};

const WATCHDOG: Duration = Duration::from_secs(60);
const NAMESPACES: [&str; 3] = ["pid", "user", "net"];

/// A bound for machines that are overloaded on purpose.
struct Patient;

impl LinkKind for Patient {
    const EVIDENCE: Evidence = Evidence::Heartbeat(Heartbeat::from_millis(20, 10_000));
}

#[test]
#[ignore = "a role of the other tests, not a test"]
fn role() {
    match argument("KIND").as_str() {
        "mapped-file" => run_side::<MappedFile>(),
        "patient" => run_side::<Patient>(),
        "hostile" => run_hostile(),
        other => panic!("no kind {other}"),
    }
}

fn argument(name: &str) -> String {
    std::env::var(format!("BEELINE_E2E_{name}")).expect("a role is given its arguments")
}

fn say(line: &str) {
    println!("@{line}");
}

fn map() -> Region {
    let file = File::options().read(true).write(true).open(argument("FILE")).unwrap();
    let options = SegmentOptions { on_loss: OnLoss::Fatal, ..SegmentOptions::default() };
    MappedSegment::file(file.as_fd(), &options).unwrap().region().unwrap()
}

fn own_side() -> Side {
    if argument("SIDE") == "first" { Side::First } else { Side::Second }
}

fn introduce() {
    // The process id as the test program knows it: that of the /proc of before.
    let pid = std::fs::read_link("/proc/self").unwrap();
    let of = |kind: &&str| std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
    let namespaces: Vec<_> = NAMESPACES.iter().map(|kind| of(kind).display().to_string()).collect();
    say(&format!("pid {} {}", pid.display(), namespaces.join(" ")));
}

fn run_side<K: LinkKind>() {
    introduce();
    let state = MappedState::new(&map(), 0, own_side());
    let link = HeartbeatLink::open::<K>(state, Acceptance::AtOnce).unwrap();
    let stdin = std::io::stdin();
    loop {
        let mut fds = [PollFd::new(&link, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
        poll(&mut fds, None).unwrap();
        let is_asked = fds[1].revents().intersects(PollFlags::IN | PollFlags::HUP);
        match link.take_change() {
            Some(Status::Up { session, .. }) => say(&format!("up {:016x}", Session::number(session))),
            Some(Status::Down { reason: Down::Silent { silence }, .. }) => {
                say(&format!("down Silent {}", silence.as_micros()));
            }
            Some(Status::Down { reason, .. }) => say(&format!("down {reason:?}")),
            Some(Status::NeverUp) | None => {}
        }
        let mut order = String::new();
        if is_asked {
            match stdin.lock().read_line(&mut order) {
                Ok(read) if read > 0 => say(&counted(&link.counters())),
                _ => return,
            }
        }
    }
}

fn counted(counters: &Counters) -> String {
    let Counters { times_up, times_down, silent, declared_down, .. } = counters;
    let (silence_us, pause_us) = (counters.longest_silence.as_micros(), counters.longest_pause.as_micros());
    format!("counted {times_up} {times_down} {silent} {declared_down} {silence_us} {pause_us}")
}

/// Stores whatever it likes where the second side stores: noise, and lines of a side with some words wrong.
fn run_hostile() {
    introduce();
    let (map, mut random) = (map(), Random(seed()));
    for _ in 0..argument("ROUNDS").parse().unwrap() {
        for word in 0..8 {
            let theirs = map.word(word * 8).load();
            let value =
                [random.next(), theirs, theirs ^ (random.next() % 7), theirs ^ (1 << random.below(64))]
                    [random.below(4) as usize];
            map.word(128 + word * 8).store(value);
        }
        if random.below(100) == 0 {
            std::thread::yield_now();
        }
    }
    say("done");
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

fn seed() -> u64 {
    std::env::var("BEELINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x9e37_79b9)
}

/// Whether a process may have namespaces of its own here, without privileges.
fn has_namespaces() -> bool {
    let status = Command::new("unshare").args(APART).arg("true").stderr(Stdio::null()).status();
    let can = status.is_ok_and(|status| status.success());
    if !can {
        println!("this kernel, or the lack of `unshare`, gives no namespaces: the sides run without");
    }
    can
}

const APART: [&str; 5] = ["--user", "--map-root-user", "--pid", "--net", "--fork"];

/// A process in a role, in namespaces of its own.
struct Role {
    child: Child,
    stdin: ChildStdin,
    pid: Pid,
    namespaces: Vec<String>,
    lines: Receiver<String>,
}

impl Role {
    fn start(kind: &str, side: &str, folder: &Path, more: &[(&str, &str)]) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut command = if has_namespaces() {
            let mut command = Command::new("unshare");
            command.args(APART).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.args(["--exact", "role", "--ignored", "--nocapture", "--test-threads=1"]);
        let file = folder.join("shared");
        command.env("BEELINE_E2E_KIND", kind).env("BEELINE_E2E_SIDE", side).env("BEELINE_E2E_FILE", file);
        command.envs(more.iter().map(|(name, value)| (format!("BEELINE_E2E_{name}"), value)));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // Libtest writes the test's name before the first line.
                let Some(at) = line.find('@') else { continue };
                if sender.send(line[at + 1..].to_owned()).is_err() {
                    return;
                }
            }
        });
        let first = lines.recv_timeout(WATCHDOG).expect("a role says who it is");
        let mut words = first.split(' ').skip(1);
        let pid = Pid::from_raw(words.next().unwrap().parse().unwrap()).unwrap();
        let namespaces = words.map(str::to_owned).collect();
        Role { stdin: child.stdin.take().unwrap(), child, pid, namespaces, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(WATCHDOG).expect("a side says something in time")
    }

    /// The session, once it is up.
    fn up(&self) -> String {
        let line = self.line();
        line.strip_prefix("up ").unwrap_or_else(|| panic!("not up: {line}")).to_owned()
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Times up, times down, of these silent and declared down, longest silence and longest pause in microseconds.
    fn counters(&mut self) -> [u64; 6] {
        self.stdin.write_all(b"counters\n").unwrap();
        let line = self.line();
        let numbers = line.strip_prefix("counted ").unwrap_or_else(|| panic!("asked, and heard {line}"));
        let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = kill_process(self.pid, Signal::KILL);
        let _ = self.child.wait();
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    File::create(folder.path().join("shared")).unwrap().set_len(4096).unwrap();
    folder
}

fn pair(kind: &str, folder: &Path) -> [Role; 2] {
    let sides = ["first", "second"].map(|side| Role::start(kind, side, folder, &[]));
    if has_namespaces() {
        for (at, kind) in NAMESPACES.iter().enumerate() {
            let own = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap().display().to_string();
            let [first, second] = sides.each_ref().map(|side| side.namespaces[at].clone());
            assert!(first != second && first != own && second != own, "a common {kind} namespace");
        }
    }
    let [first, second] = sides.each_ref().map(Role::up);
    assert_eq!(first, second, "both are in one session");
    sides
}

#[test]
fn killed_side_is_down_after_the_bound_and_its_successor_comes_up() {
    let folder = folder();
    let [mut first, second] = pair("mapped-file", folder.path());
    let declared = Heartbeat::of::<MappedFile>();
    second.signal(Signal::KILL);
    let killed_at = Instant::now();
    let line = first.line();
    let silence_us = line.strip_prefix("down Silent ").unwrap_or_else(|| panic!("killed, and heard {line}"));
    println!("down {:?} after the kill, bound {:?}", killed_at.elapsed(), declared.bound());
    let silence = Duration::from_micros(silence_us.parse().unwrap());
    assert!(silence >= declared.bound() && silence <= declared.bound() + declared.period(), "{silence:?}");
    drop(second);
    let second = Role::start("mapped-file", "second", folder.path(), &[]);
    assert_eq!(first.up(), second.up());
    let [times_up, times_down, silent, declared_down, ..] = first.counters();
    assert_eq!((times_up, times_down, silent, declared_down), (2, 1, 1, 0));
}

#[test]
fn stopped_side_is_down_and_when_it_goes_on_both_know_and_come_up_anew() {
    let folder = folder();
    let [mut first, mut second] = pair("mapped-file", folder.path());
    for times in 1..=2 {
        second.signal(Signal::STOP);
        let line = first.line();
        assert!(line.starts_with("down Silent "), "stopped, and heard {line}");
        second.signal(Signal::CONT);
        assert_eq!(second.line(), "down DeclaredDown");
        assert_eq!(first.up(), second.up());
        let [.., pause_us] = second.counters();
        assert!(pause_us >= 900_000, "it did not look for {pause_us} us");
        let [up, down, silent, declared_down, ..] = first.counters();
        assert_eq!((up, down, silent, declared_down), (times + 1, times, times, 0));
        let [up, down, silent, declared_down, silence_us, _] = second.counters();
        assert_eq!((up, down, silent, declared_down), (times + 1, times, 0, times));
        assert!(silence_us < 900_000, "its own stop is no silence of the other: {silence_us} us");
    }
}

#[test]
fn neither_a_stop_below_the_bound_nor_a_thousand_delays_on_a_loaded_machine_are_a_death() {
    let folder = folder();
    let mut sides = pair("patient", folder.path());
    sides[1].signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(600));
    sides[1].signal(Signal::CONT);
    let (stop, mut random) = (AtomicBool::new(false), Random(seed()));
    println!("BEELINE_SEED={}", random.0);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..4 * cores {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        for _ in 0..1000 {
            let side = &sides[random.below(2) as usize];
            side.signal(Signal::STOP);
            std::thread::sleep(Duration::from_micros(random.below(4000)));
            side.signal(Signal::CONT);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let [first, second] = sides.each_mut().map(Role::counters);
    println!("first {first:?}, second {second:?}");
    assert_eq!((first[0], first[1], second[0], second[1]), (1, 0, 1, 0));
    assert!(first[4] >= 300_000, "the stop was a silence of {} us", first[4]);
    assert!(second[5] >= 300_000, "the stop was a pause of {} us", second[5]);
}

#[test]
fn hostile_side_harms_nothing_but_its_own_link() {
    let folder = folder();
    let first = Role::start("patient", "first", folder.path(), &[]);
    let hostile = Role::start("hostile", "second", folder.path(), &[("ROUNDS", "200000")]);
    assert_eq!(hostile.line(), "done");
    let second = Role::start("patient", "second", folder.path(), &[]);
    let session = second.up();
    let mut heard = first.line();
    // What it could do is bring the link up and down.
    while heard != format!("up {session}") {
        println!("meanwhile: {heard}");
        assert!(heard.starts_with("up ") || heard.starts_with("down "), "{heard}");
        heard = first.line();
    }
}
