//! Many senders and one receiving thread, over windows of two domains in this process.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::HashMap;
use std::time::{Duration, Instant};

use beeline::{
    Armed, Domain, Flushed, MemberId, Polled, ReceiverOptions, ReceiverSet, RecvError, Sent, WaitPolicy,
};

/// More than anything here takes on the busiest machine.
const WATCHDOG: Duration = Duration::from_secs(60);

struct Bench {
    _folder: tempfile::TempDir,
    domain: Domain,
    set: ReceiverSet,
}

impl Bench {
    fn new(set: ReceiverSet) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let domain = Domain::open_in(folder.path(), "test").unwrap();
        Bench { _folder: folder, domain, set }
    }

    fn insert(&mut self, name: &str) -> MemberId {
        let options = ReceiverOptions::new().lines(64);
        self.set.insert(self.domain.receiver_with(name, options).unwrap())
    }

    /// What comes next: its member and its first word.
    fn next(&mut self) -> (MemberId, u64) {
        let mut found = None;
        let taken = self.set.drain_timeout(1, WATCHDOG, |member, message| {
            found = Some((member, message.word(0)));
        });
        assert_eq!(taken.unwrap(), 1);
        found.unwrap()
    }
}

#[test]
fn members_receive_from_one_sender_after_the_other() {
    let mut bench = Bench::new(ReceiverSet::new());
    let (red, blue) = (bench.insert("red"), bench.insert("blue"));
    assert_eq!(bench.set.drain(10, |_, _| panic!("nobody has sent")).unwrap(), 0);
    for turn in 0..3u64 {
        let mut sender = bench.domain.sender("red").unwrap();
        let mut other = bench.domain.sender("blue").unwrap();
        sender.send(&turn.to_le_bytes()).unwrap();
        assert_eq!(bench.next(), (red, turn));
        other.send(&(turn + 7).to_le_bytes()).unwrap();
        assert_eq!(bench.next(), (blue, turn + 7));
        sender.send(&99u64.to_le_bytes()).unwrap();
        drop(sender);
        // What it completed is given first.
        assert_eq!(bench.next(), (red, 99));
        let ended = bench.set.drain_timeout(10, WATCHDOG, |_, _| panic!("nothing is left")).unwrap_err();
        assert_eq!((ended.member, ended.taken), (red, 0));
        assert!(matches!(ended.error, RecvError::SenderGone));
        drop(other);
        let ended = bench.set.drain_timeout(10, WATCHDOG, |_, _| panic!("nothing is left")).unwrap_err();
        assert_eq!(ended.member, blue);
    }
    assert_eq!(bench.set.len(), 2, "members stay when their senders end");
}

#[test]
fn member_is_found_by_its_number_until_it_is_taken_out() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    let mut set = ReceiverSet::new();
    let first = set.insert(domain.receiver("first").unwrap());
    let second = set.insert(domain.receiver("second").unwrap());
    assert_eq!((set.member(first.number()), set.member(second.number())), (Some(first), Some(second)));
    for none in [0, 3, 1 << 32, second.number() + (1 << 32), u64::MAX] {
        assert_eq!(set.member(none), None, "{none:#x}");
    }
    set.remove(first).unwrap();
    assert_eq!(set.member(first.number()), None);
    assert_eq!(set.member(first.number() + (1 << 32)), None, "what comes into the place is not there yet");
    let again = set.insert(domain.receiver("again").unwrap());
    assert_eq!((set.member(first.number()), set.member(again.number())), (None, Some(again)));
}

#[test]
fn receiver_that_is_taken_out_goes_on_where_the_set_was() {
    let mut bench = Bench::new(ReceiverSet::new());
    let (red, blue) = (bench.insert("red"), bench.insert("blue"));
    let mut sender = bench.domain.sender("red").unwrap();
    sender.send(&1u64.to_le_bytes()).unwrap();
    sender.send(&2u64.to_le_bytes()).unwrap();
    assert_eq!(bench.next(), (red, 1));
    let mut alone = bench.set.remove(red).unwrap();
    assert!(bench.set.remove(red).is_none() && bench.set.len() == 1);
    assert_eq!(alone.recv().unwrap().word(0), 2);
    sender.send(&3u64.to_le_bytes()).unwrap();
    let again = bench.set.insert(alone);
    assert_ne!(again, red, "no later member has the same id");
    assert_eq!(bench.next(), (again, 3));
    drop(bench.set.remove(blue));
    bench.domain.receiver("blue").expect("the name is free when its receiver is dropped");
}

#[test]
fn sleeping_set_is_woken_by_every_sender_and_by_one_that_comes() {
    const MEMBERS: u64 = 300;
    let policy = WaitPolicy::new().spins(0).yields(0).sleep(Some(WATCHDOG));
    let mut bench = Bench::new(ReceiverSet::new().wait(policy));
    let members: HashMap<MemberId, u64> =
        (0..MEMBERS).map(|number| (bench.insert(&format!("m{number}")), number)).collect();
    let (domain, started) = (bench.domain.clone(), Instant::now());
    let senders = std::thread::spawn(move || {
        let mut senders = Vec::new();
        for number in 0..MEMBERS {
            // It comes while the set sleeps, and each time it sends again.
            let mut sender = domain.sender(&format!("m{number}")).unwrap();
            for message in 0..3u64 {
                sender.send(&(number * 10 + message).to_le_bytes()).unwrap();
                assert_eq!(sender.flush(WATCHDOG).unwrap(), Flushed::All);
            }
            senders.push(sender);
        }
        senders
    });
    let mut next = vec![0; MEMBERS as usize];
    for _ in 0..3 * MEMBERS {
        assert!(started.elapsed() < WATCHDOG, "wake-ups are lost, and found by looks that were due anyway");
        let (member, word) = bench.next();
        let number = members[&member];
        assert_eq!(word, number * 10 + next[number as usize]);
        next[number as usize] += 1;
    }
    // The last flush ends when the set looks for more.
    while !senders.is_finished() {
        assert_eq!(bench.set.drain(1, |_, _| panic!("nobody sends more")).unwrap(), 0);
    }
    drop(senders.join().unwrap());
}

#[test]
fn fast_sender_keeps_no_other_out_and_hides_no_end() {
    let mut bench = Bench::new(ReceiverSet::with_burst(4));
    let (fast, slow, ends) = (bench.insert("fast"), bench.insert("slow"), bench.insert("ends"));
    let mut fast_sender = bench.domain.sender("fast").unwrap();
    let mut slow_sender = bench.domain.sender("slow").unwrap();
    let ends_sender = bench.domain.sender("ends").unwrap();
    // So that the set knows all three senders.
    assert_eq!(bench.set.drain(4, |_, _| ()).unwrap(), 0);
    drop(ends_sender);
    let (started, mut answered, mut has_ended) = (Instant::now(), 0, false);
    let mut is_asked = false;
    while answered < 50 || !has_ended {
        assert!(started.elapsed() < WATCHDOG, "{answered} messages of the slow sender, ended: {has_ended}");
        // As many as a pass takes are always there: no pass finds nothing.
        while fast_sender.try_send(b"message").unwrap() == Sent::Sent {}
        if !is_asked {
            slow_sender.send(b"message").unwrap();
            is_asked = true;
        }
        match bench.set.drain(4, |member, _| {
            assert!(member == fast || member == slow);
            answered += u64::from(member == slow);
            is_asked &= member != slow;
        }) {
            Ok(taken) => assert!(taken > 0),
            Err(error) => {
                assert_eq!(error.member, ends);
                has_ended = true;
            }
        }
    }
}

#[test]
fn set_stands_in_a_poll_set() {
    let mut bench = Bench::new(ReceiverSet::new());
    let red = bench.insert("red");
    let domain = bench.domain.clone();
    let mut polled = Polled::new(bench.set).unwrap();
    let is_readable = |polled: &Polled<ReceiverSet>, limit_s| {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let limit = Timespec { tv_sec: limit_s, tv_nsec: 0 };
        poll(&mut [PollFd::new(polled, PollFlags::IN)], Some(&limit)).unwrap() == 1
    };
    assert_eq!(polled.arm(), Armed::Wait);
    assert!(!is_readable(&polled, 0));
    let mut sender = domain.sender("red").unwrap();
    assert!(is_readable(&polled, 60), "a sender has come");
    assert_eq!(polled.drain(10, |_, _| ()).unwrap(), 0);
    assert_eq!(polled.arm(), Armed::Wait);
    sender.send(b"message").unwrap();
    assert!(is_readable(&polled, 60));
    assert_eq!(polled.drain(10, |member, _| assert_eq!(member, red)).unwrap(), 1);
    assert_eq!(polled.arm(), Armed::Wait);
    drop(sender);
    assert!(is_readable(&polled, 60), "its end is told");
    assert_eq!(polled.drain(10, |_, _| ()).unwrap_err().member, red);
}

#[test]
fn passes_of_open_windows_allocate_nothing() {
    let mut bench = Bench::new(ReceiverSet::new());
    for name in ["red", "blue"] {
        bench.insert(name);
    }
    let mut senders = ["red", "blue"].map(|name| bench.domain.sender(name).unwrap());
    let mut turn = |set: &mut ReceiverSet| {
        for sender in &mut senders {
            sender.send(b"message").unwrap();
        }
        let mut taken = 0;
        while taken < 2 {
            taken += set.drain_timeout(64, WATCHDOG, |_, message| assert_eq!(message.len(), 7)).unwrap();
        }
    };
    turn(&mut bench.set);
    let counted = allocation_counter::measure(|| (0..100).for_each(|_| turn(&mut bench.set)));
    assert_eq!(counted.count_total, 0);
}
