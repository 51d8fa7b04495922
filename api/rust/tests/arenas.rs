//! Arenas: many windows of two programs, received from one by one or by a set.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use beeline::{
    ArenaOptions, Armed, ByteRead, ConnectError, Domain, Flushed, MemberError, OfferError, Polled,
    ReceiverArena, ReceiverSet, RecvError, SenderArena, SenderOptions, WaitPolicy,
};
use rustix::event::{PollFd, PollFlags, Timespec};

const WATCHDOG: Duration = Duration::from_secs(60);
const LINES: u32 = 8;

fn pair(folder: &tempfile::TempDir, options: ArenaOptions) -> (ReceiverArena, SenderArena) {
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    let receivers = domain.receiver_arena_with("arena", options).unwrap();
    (receivers, domain.sender_arena("arena", LINES).unwrap())
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn set_receives_from_thousands_of_windows_in_few_descriptors_and_forgets_those_that_ended() {
    const WINDOWS: u64 = 3000;
    let folder = tempfile::tempdir().unwrap();
    let (receivers, arena) = pair(&folder, ArenaOptions::new());
    let mut set = ReceiverSet::new();
    assert!(set.set_arena(Some(receivers)).is_none());
    let before = open_descriptors();
    let mut senders: Vec<_> = (0..WINDOWS).map(|_| arena.open().unwrap()).collect();
    let (mut seen, mut members) = (HashSet::new(), HashSet::new());
    for round in 0..2 {
        for (number, sender) in (0u64..).zip(&mut senders) {
            sender.send(&(round * WINDOWS + number).to_le_bytes()).unwrap();
        }
        while (seen.len() as u64) < (round + 1) * WINDOWS {
            let taken = set.drain_timeout(1000, WATCHDOG, |member, message| {
                assert!(seen.insert(message.word(0)));
                members.insert(member);
            });
            assert_ne!(taken.unwrap(), 0, "nothing came for a minute");
        }
    }
    assert_eq!((members.len() as u64, set.len() as u64), (WINDOWS, WINDOWS));
    // Other tests of this process open some at the same time.
    let after = open_descriptors();
    assert!(after < before + 200, "{before} descriptors before, {after} after");
    drop(senders);
    let mut ended = HashSet::new();
    while !set.is_empty() {
        match set.drain_timeout(1000, WATCHDOG, |_, _| panic!("nobody sends")) {
            Err(MemberError { member, error: RecvError::SenderGone, .. }) => assert!(ended.insert(member)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ended, members);
    // The places of members are used again, under other ids.
    let mut sender = arena.open().unwrap();
    sender.send(b"again").unwrap();
    let again = set.drain_timeout(1, WATCHDOG, |member, _| assert!(members.insert(member)));
    assert_eq!(again.unwrap(), 1);
}

#[test]
fn set_in_which_one_member_never_pauses_takes_in_all_windows_that_are_opened() {
    const FIRST: usize = 8;
    const LATER: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let (receivers, arena) = pair(&folder, ArenaOptions::new());
    let mut set = ReceiverSet::new();
    set.set_arena(Some(receivers));
    let mut first: Vec<_> = (0..FIRST).map(|_| arena.open().unwrap()).collect();
    while set.len() < FIRST {
        assert_eq!(set.drain_timeout(1, Duration::from_millis(1), |_, _| ()).unwrap(), 0);
    }
    let _later: Vec<_> = (0..LATER).map(|_| arena.open().unwrap()).collect();
    // The receiver is asked for this one, so it has heard of the others when it answers.
    let _last = arena.open_sized(16).unwrap();
    let mut passes = 0;
    while set.len() < FIRST + LATER {
        assert!(passes < 1000, "{} members after {passes} passes", set.len());
        first[0].send(b"no pause").unwrap();
        assert_eq!(set.drain(16, |_, _| ()).unwrap(), 1);
        passes += 1;
    }
}

#[test]
fn set_that_sleeps_is_woken_by_a_window_that_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (receivers, arena) = pair(&folder, ArenaOptions::new());
    let sleepy = WaitPolicy::new().spins(0).yields(0).sleep(Some(WATCHDOG));
    let mut set = ReceiverSet::new().wait(sleepy);
    set.set_arena(Some(receivers));
    let started = Instant::now();
    std::thread::scope(|scope| {
        let received = scope.spawn(|| {
            let mut numbers = Vec::new();
            while numbers.len() < 300 {
                assert!(
                    started.elapsed() < WATCHDOG,
                    "wake-ups are lost, and found by looks that were due anyway"
                );
                let taken = set.drain_timeout(64, WATCHDOG, |_, message| numbers.push(message.word(0)));
                match taken {
                    Ok(0) => panic!("nothing came for a minute"),
                    Ok(_) | Err(MemberError { error: RecvError::SenderGone, .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            numbers.sort_unstable();
            numbers
        });
        for number in 0..300u64 {
            let mut sender = arena.open().unwrap();
            sender.send(&number.to_le_bytes()).unwrap();
            // The set takes the message, finds no other and sleeps, until the next window is opened.
            assert_eq!(sender.flush(WATCHDOG).unwrap(), Flushed::All);
        }
        assert_eq!(received.join().unwrap(), (0..300).collect::<Vec<_>>());
    });
}

#[test]
fn window_of_an_arena_has_one_sender_and_every_call_after_its_end_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (receivers, arena) = pair(&folder, ArenaOptions::new());
    let mut sender = arena.open().unwrap();
    let mut receiver = receivers.accept_timeout(WATCHDOG).unwrap();
    assert!(receivers.try_accept().is_none() && receiver.try_recv().unwrap().is_none());
    sender.send(b"left behind").unwrap();
    drop(sender);
    assert_eq!(receiver.recv_timeout(WATCHDOG).unwrap().unwrap().to_vec(), b"left behind");
    for _ in 0..2 {
        assert!(matches!(receiver.recv(), Err(RecvError::SenderGone)));
        assert!(matches!(receiver.try_recv(), Err(RecvError::SenderGone)));
        assert!(matches!(receiver.drain(1, |_| ()), Err(RecvError::SenderGone)));
        assert!(matches!(receiver.recv_timeout(Duration::ZERO), Err(RecvError::SenderGone)));
        assert!(!receiver.has_sender());
    }
    let mut set = ReceiverSet::new();
    let member = set.insert(receiver);
    assert!(set.is_empty() && set.remove(member).is_none());
    // One that waits by descriptor is not left waiting.
    drop(arena.open().unwrap());
    let mut polled = Polled::new(receivers.accept_timeout(WATCHDOG).unwrap()).unwrap();
    assert!(matches!(polled.recv(), Err(RecvError::SenderGone)));
    assert_eq!(polled.arm(), Armed::Ready);
}

#[test]
fn byte_stream_of_an_arena_ends_and_none_follows() {
    let folder = tempfile::tempdir().unwrap();
    let (receivers, arena) = pair(&folder, ArenaOptions::new());
    let mut sender = arena.open().unwrap().into_bytes();
    let mut bytes = receivers.accept_timeout(WATCHDOG).unwrap().into_bytes();
    sender.write_all(b"stream").unwrap();
    drop(sender);
    let mut found = [0; 6];
    assert_eq!(bytes.read_full(&mut found).unwrap(), 6);
    assert_eq!(&found, b"stream");
    assert_eq!(bytes.read_timeout(&mut found, WATCHDOG).unwrap(), ByteRead::End);
    bytes.next_stream();
    assert!(matches!(bytes.read(&mut found), Err(RecvError::SenderGone)));
    assert!(matches!(bytes.try_read(&mut found), Err(RecvError::SenderGone)));
    assert!(matches!(bytes.read_full(&mut found), Err(RecvError::SenderGone)));
    assert_eq!(Polled::new(bytes).unwrap().arm(), Armed::Ready);
}

fn is_ready(polled: &impl AsFd, time: Duration) -> bool {
    let mut fds = [PollFd::new(polled, PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&Timespec::try_from(time).unwrap())).unwrap() > 0
}

#[test]
fn arena_and_set_in_poll_are_ready_when_a_window_is_opened() {
    const SHORT: Duration = Duration::from_millis(20);
    let folder = tempfile::tempdir().unwrap();
    let (receivers, arena) = pair(&folder, ArenaOptions::new());
    let mut receivers = Polled::new(receivers).unwrap();
    assert_eq!(receivers.arm(), Armed::Wait);
    assert!(!is_ready(&receivers, SHORT));
    let _sender = arena.open().unwrap();
    assert!(is_ready(&receivers, WATCHDOG));
    assert_eq!(receivers.arm(), Armed::Ready);
    assert!(receivers.has_opened() && receivers.try_accept().is_some());
    assert_eq!(receivers.arm(), Armed::Wait);
    drop(receivers);
    let (receivers, arena) = pair(&folder, ArenaOptions::new());
    let mut set = Polled::new(ReceiverSet::new()).unwrap();
    set.set_arena(Some(receivers));
    assert_eq!(set.arm(), Armed::Wait);
    assert!(!is_ready(&set, SHORT));
    let mut sender = arena.open().unwrap();
    assert!(is_ready(&set, WATCHDOG));
    assert_eq!(set.drain(8, |_, _| ()).unwrap(), 0);
    assert_eq!((set.arm(), set.len()), (Armed::Wait, 1));
    assert!(!is_ready(&set, SHORT));
    sender.send(b"wake up").unwrap();
    assert!(is_ready(&set, WATCHDOG));
    assert_eq!(set.drain(8, |_, _| ()).unwrap(), 1);
    // More than it takes in at once.
    let _senders: Vec<_> = (0..40).map(|_| arena.open().unwrap()).collect();
    // It is asked for, so the receiver has heard of the others when this returns.
    let _last = arena.open_sized(16).unwrap();
    assert_eq!(set.arm(), Armed::Ready);
    assert_eq!(set.drain(8, |_, _| ()).unwrap(), 0);
    while set.len() < 42 {
        assert!(set.arm() == Armed::Ready || is_ready(&set, WATCHDOG));
        assert_eq!(set.drain(8, |_, _| ()).unwrap(), 0);
    }
}

#[test]
fn what_cannot_be_is_refused_and_what_is_given_back_is_lent_again() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    for options in
        [ArenaOptions::new().lines(3), ArenaOptions::new().windows(0), ArenaOptions::new().bytes(5)]
    {
        let refused = domain.receiver_arena_with("arena", options).unwrap_err();
        assert!(matches!(refused, OfferError::Options { .. }), "{refused}");
    }
    let receivers = domain.receiver_arena_with("arena", ArenaOptions::new().lines(64).windows(2)).unwrap();
    let huge = SenderOptions::new().huge_pages(true);
    for refused in [
        domain.sender_arena("arena", 3).unwrap_err(),
        domain.sender_arena_with("arena", LINES, huge).unwrap_err(),
    ] {
        assert!(matches!(refused, ConnectError::Options { .. }), "{refused}");
    }
    assert!(domain.sender_arena("arena", 128).is_err(), "more lines than are offered");
    assert!(domain.sender("arena").is_err(), "an arena is no window");
    let arena = domain.sender_arena("arena", LINES).unwrap();
    let large = arena.open_sized(64).unwrap();
    assert!(matches!(arena.open_sized(128), Err(ConnectError::Options { .. })));
    let first = arena.open().unwrap();
    assert!(large.max_message_bytes() > first.max_message_bytes());
    let refused = arena.open().unwrap_err();
    assert!(matches!(refused, ConnectError::Refused { .. }), "{refused}");
    assert!(refused.remedy().contains("ArenaOptions"), "{}", refused.remedy());
    drop((large, first));
    // The receiver's side of each has to go as well.
    for _ in 0..2 {
        drop(receivers.accept_timeout(WATCHDOG).unwrap());
    }
    let again = (arena.open().unwrap(), arena.open().unwrap());
    drop((receivers, again));
    assert!(arena.open().is_err() && arena.is_receiver_gone());
}
