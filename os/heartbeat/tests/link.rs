//! Both sides of links in one process, over a plain file that each maps for itself.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::File;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use beeline_contract_link::{Evidence, Heartbeat, LinkKind, StatePort};
use beeline_contract_memory::Line;
use beeline_heartbeat::{
    Acceptance, Down, Gone, HeartbeatLink, MappedState, PeerEvidence, Session, Side, Status,
};
use beeline_mmio::{MappedSegment, OnLoss, Region, SegmentOptions};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const WATCHDOG: Duration = Duration::from_secs(60);

/// A bound that no machine misses, however loaded.
struct Patient;

impl LinkKind for Patient {
    const EVIDENCE: Evidence = Evidence::Heartbeat(Heartbeat::from_millis(2, 20_000));
}

/// For peers that are to be declared down.
struct Quick;

impl LinkKind for Quick {
    const EVIDENCE: Evidence = Evidence::Heartbeat(Heartbeat::from_millis(2, 300));
}

fn file() -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(4096).unwrap();
    file
}

/// The file as one side maps it: it can shrink, as any file.
fn map(file: &File) -> Region {
    let options = SegmentOptions { on_loss: OnLoss::Fatal, ..SegmentOptions::default() };
    MappedSegment::file(file.as_fd(), &options).unwrap().region().unwrap()
}

fn open<K: LinkKind>(file: &File, side: Side) -> HeartbeatLink {
    HeartbeatLink::open::<K>(MappedState::new(&map(file), 0, side), Acceptance::AtOnce).unwrap()
}

fn await_change(link: &HeartbeatLink) {
    let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(link, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ready, 1, "nothing told of a change since {:?}", link.status());
}

/// Waits by descriptor until the status is wanted.
fn wait(link: &HeartbeatLink, wanted: impl Fn(&Status) -> bool) -> Status {
    let begun = Instant::now();
    loop {
        let status = link.status();
        if wanted(&status) {
            return status;
        }
        assert!(begun.elapsed() < WATCHDOG, "still {status:?}, {:?}", link.counters());
        await_change(link);
        link.take_change();
    }
}

fn is_down(reason: Down) -> impl Fn(&Status) -> bool {
    move |status| matches!(status, Status::Down { reason: found, .. } if *found == reason)
}

fn both_up(links: [&HeartbeatLink; 2]) -> u64 {
    let begun = Instant::now();
    loop {
        let numbers = links.map(|link| wait(link, Status::is_up).session().map(Session::number));
        if let [Some(ours), Some(theirs)] = numbers
            && ours == theirs
        {
            return ours;
        }
        assert!(begun.elapsed() < WATCHDOG, "{numbers:?}");
    }
}

/// Waits until ten beats more were heard of the peer.
fn await_beats(link: &HeartbeatLink) {
    let (begun, heard) = (Instant::now(), link.counters().beats_heard);
    while link.counters().beats_heard < heard + 10 {
        assert!(begun.elapsed() < WATCHDOG, "nothing beats: {:?}", link.counters());
        std::thread::yield_now();
    }
}

#[test]
fn sides_come_up_and_learn_how_the_other_went() {
    let file = file();
    let first = open::<Patient>(&file, Side::First);
    assert_eq!((first.status(), first.is_up(), first.take_change()), (Status::NeverUp, false, None));
    let second = open::<Patient>(&file, Side::Second);
    let session = both_up([&first, &second]);
    assert!(first.is_up() && second.is_up());
    drop(second);
    wait(&first, is_down(Down::Left));
    assert!(!first.is_up());
    let second = open::<Patient>(&file, Side::Second);
    let next = both_up([&first, &second]);
    assert_ne!(session, next);
    // Another process with this side, as far as the first one knows; the one of before stores nothing more.
    let third = open::<Patient>(&file, Side::Second);
    wait(&second, is_down(Down::Displaced));
    drop(second);
    assert_ne!(both_up([&first, &third]), next);
    let counters = first.counters();
    assert_eq!((counters.times_up, counters.times_down), (3, 2));
    assert!(counters.beats_heard > 0 && counters.longest_silence < Duration::from_secs(20));
}

#[test]
fn link_that_is_taken_down_says_so_on_both_sides_and_comes_back() {
    let file = file();
    let first = open::<Patient>(&file, Side::First);
    let second = open::<Patient>(&file, Side::Second);
    let session = both_up([&first, &second]);
    first.take_change();
    first.disable();
    assert!(!first.is_up() && first.is_disabled(), "at once where it was asked for");
    assert!(first.take_change().is_some_and(|status| is_down(Down::Disabled)(&status)));
    wait(&second, is_down(Down::PeerDisabled));
    await_beats(&second);
    assert!(second.is_peer_disabled() && !second.is_up() && !second.is_disabled(), "it is there, and beats");
    first.enable();
    assert_ne!(both_up([&first, &second]), session);
    assert!(!second.is_peer_disabled());
}

#[test]
fn session_waits_for_who_prepares_it() {
    let file = file();
    let state = MappedState::new(&map(&file), 0, Side::First);
    let first = HeartbeatLink::open::<Patient>(state, Acceptance::WhenTold).unwrap();
    let second = open::<Patient>(&file, Side::Second);
    let begun = Instant::now();
    let offered = loop {
        if let Some(session) = first.offered() {
            break session;
        }
        assert!(begun.elapsed() < WATCHDOG);
        await_change(&first);
        assert_eq!(first.take_change(), None, "an offer is no change");
    };
    assert!(!first.is_up() && !second.is_up());
    assert!(first.accept(offered));
    assert_eq!(both_up([&first, &second]), offered.number());
}

#[test]
fn peer_that_stores_anything_at_all_takes_the_link_up_or_down_and_nothing_else() {
    let file = file();
    let first = open::<Quick>(&file, Side::First);
    let theirs = map(&file);
    let (mut random, mut counters) = (0x9e37_79b9_7f4a_7c15u64, first.counters());
    let begun = Instant::now();
    while counters.unreadable < 100 {
        assert!(begun.elapsed() < WATCHDOG, "it looks no longer: {counters:?}");
        for word in 0..8 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // Mostly the words of a peer, with some of them wrong.
            let mine = theirs.word(word * 8).load();
            let value = [random, mine, mine ^ (random % 7), mine ^ (1 << (random % 64))][random as usize % 4];
            theirs.word(128 + word * 8).store(value);
        }
        counters = first.counters();
    }
    println!("{:?} {counters:?}", first.status());
    let second = open::<Quick>(&file, Side::Second);
    both_up([&first, &second]);
}

#[test]
fn evidence_is_of_one_kind_and_says_how_the_peer_went() {
    let file = file();
    let first = PeerEvidence::Heartbeat(open::<Patient>(&file, Side::First));
    assert_eq!((first.is_there(), first.gone()), (false, None), "it has not come");
    let PeerEvidence::Heartbeat(link) = &first else { unreachable!() };
    let second = open::<Patient>(&file, Side::Second);
    both_up([link, &second]);
    assert_eq!((first.is_there(), first.gone()), (true, None));
    drop(second);
    wait(link, is_down(Down::Left));
    assert_eq!((first.is_there(), first.gone()), (false, Some(Gone::Down(Down::Left))));
}

#[test]
fn forked_child_neither_beats_nor_leaves_for_its_parent() {
    let file = file();
    let first = open::<Patient>(&file, Side::First);
    let second = open::<Patient>(&file, Side::Second);
    let session = both_up([&first, &second]);
    let child = match fork::fork().unwrap() {
        fork::Fork::Child => {
            let forked = Status::Down { reason: Down::Forked, since: Duration::ZERO };
            first.disable();
            let says_so = first.status() == forked && first.take_change().is_none();
            drop(first);
            // It has links of its own.
            let other = self::file();
            let links = [Side::First, Side::Second].map(|side| open::<Patient>(&other, side));
            both_up(links.each_ref());
            beeline_mmio::end_child(if says_so { 0 } else { 1 });
        }
        fork::Fork::Parent(pid) => rustix::process::Pid::from_raw(pid),
    };
    let (_, status) =
        rustix::process::waitpid(child, rustix::process::WaitOptions::empty()).unwrap().unwrap();
    assert_eq!(status.exit_status(), Some(0));
    await_beats(&second);
    assert_eq!(both_up([&first, &second]), session, "nobody left");
    assert_eq!(first.counters().times_down, 0);
}

/// Memory that fails when it was looked at so often.
struct Failing(u32);

impl StatePort for Failing {
    fn push(&mut self, _: &Line) {}

    fn look(&mut self) -> Line {
        self.0 = self.0.checked_sub(1).expect("looks that do not fail");
        [0; 8]
    }
}

#[test]
fn port_that_panics_ends_its_own_link_and_no_other() {
    let file = file();
    let links = [Side::First, Side::Second].map(|side| open::<Patient>(&file, side));
    let session = both_up(links.each_ref());
    let failing = HeartbeatLink::open::<Patient>(Failing(10), Acceptance::AtOnce).unwrap();
    wait(&failing, is_down(Down::Failed));
    await_beats(&links[0]);
    assert_eq!(both_up(links.each_ref()), session);
    assert_eq!(links.each_ref().map(|link| link.counters().times_down), [0; 2]);
}
