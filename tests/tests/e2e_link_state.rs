//! Two processes that share a mapped file and nothing else: each in a pid, user and network namespace of its own, so that no kernel
//! object tells one of the other. What is killed or stopped is down after the bound, both sides know, and nothing else is down.
//!
//! The seed is printed and taken back from `BEELINE_SEED`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod link_support;

use std::io::BufRead;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use beeline_contract_link::{Evidence, Heartbeat, LinkKind};
use beeline_heartbeat::{
    Acceptance, Counters, Down, HeartbeatLink, MappedFile, MappedState, Session, Side, Status,
};
use beeline_tests::Random;
use link_support::e2e_support::{argument, own_role, say, seed};
use link_support::{NAMESPACES, Role, folder, has_namespaces, introduce, map};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;

/// A bound for machines that are overloaded on purpose.
struct Patient;

impl LinkKind for Patient {
    const EVIDENCE: Evidence = Evidence::Heartbeat(Heartbeat::from_millis(20, 10_000));
}

#[test]
#[ignore = "a role of the other tests, not a test"]
fn role() {
    match own_role().as_deref() {
        Some("mapped-file") => run_side::<MappedFile>(),
        Some("patient") => run_side::<Patient>(),
        Some("hostile") => run_hostile(),
        other => panic!("no role {other:?}"),
    }
}

fn own_side() -> Side {
    if argument("SIDE").unwrap() == "first" { Side::First } else { Side::Second }
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
    let seed = seed();
    eprintln!("run again with BEELINE_SEED={seed}");
    let (map, mut random) = (map(), Random::new(seed));
    for _ in 0..argument("ROUNDS").unwrap().parse().unwrap() {
        for word in 0..8 {
            let theirs = map.word(word * 8).load();
            let value =
                [random.word(), theirs, theirs ^ (random.word() % 7), theirs ^ (1 << random.below(64))]
                    [random.below(4)];
            map.word(128 + word * 8).store(value);
        }
        if random.below(100) == 0 {
            std::thread::yield_now();
        }
    }
    say("done");
}

fn pair(kind: &'static str, folder: &Path) -> [Role; 2] {
    let mut sides = ["first", "second"].map(|side| Role::start(kind, side, folder, &[]));
    if has_namespaces() {
        for (at, kind) in NAMESPACES.iter().enumerate() {
            let own = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap().display().to_string();
            let [first, second] = sides.each_ref().map(|side| side.namespaces[at].clone());
            assert!(first != second && first != own && second != own, "a common {kind} namespace");
        }
    }
    let [first, second] = sides.each_mut().map(Role::up);
    assert_eq!(first, second, "both are in one session");
    sides
}

/// Times up, times down, of these silent and declared down, longest silence and longest pause in microseconds.
fn counters(side: &mut Role) -> [u64; 6] {
    side.order("counters");
    let line = side.line();
    let numbers = line.strip_prefix("counted ").unwrap_or_else(|| panic!("asked, and heard {line}"));
    let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
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
    let mut second = Role::start("mapped-file", "second", folder.path(), &[]);
    assert_eq!(first.up(), second.up());
    let [times_up, times_down, silent, declared_down, ..] = counters(&mut first);
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
        let [.., pause_us] = counters(&mut second);
        assert!(pause_us >= 900_000, "it did not look for {pause_us} us");
        let [up, down, silent, declared_down, ..] = counters(&mut first);
        assert_eq!((up, down, silent, declared_down), (times + 1, times, times, 0));
        let [up, down, silent, declared_down, silence_us, _] = counters(&mut second);
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
    let seed = seed();
    println!("run again with BEELINE_SEED={seed}");
    let (stop, mut random) = (AtomicBool::new(false), Random::new(seed));
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
            let side = &sides[random.below(2)];
            side.signal(Signal::STOP);
            std::thread::sleep(Duration::from_micros(random.below(4000) as u64));
            side.signal(Signal::CONT);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let [first, second] = sides.each_mut().map(counters);
    println!("first {first:?}, second {second:?}");
    assert_eq!((first[0], first[1], second[0], second[1]), (1, 0, 1, 0));
    assert!(first[4] >= 300_000, "the stop was a silence of {} us", first[4]);
    assert!(second[5] >= 300_000, "the stop was a pause of {} us", second[5]);
}

#[test]
fn hostile_side_harms_nothing_but_its_own_link() {
    let folder = folder();
    let mut first = Role::start("patient", "first", folder.path(), &[]);
    let mut hostile = Role::start("hostile", "second", folder.path(), &[("ROUNDS", "200000")]);
    assert_eq!(hostile.line(), "done");
    let mut second = Role::start("patient", "second", folder.path(), &[]);
    let session = second.up();
    let mut heard = first.line();
    // What it could do is bring the link up and down.
    while heard != format!("up {session}") {
        println!("meanwhile: {heard}");
        assert!(heard.starts_with("up ") || heard.starts_with("down "), "{heard}");
        heard = first.line();
    }
}
