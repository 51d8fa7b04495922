//! Hosts that leave while frames are on their way: what was sent arrives, or is counted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::time::{Duration, Instant};

use beeline_driver::{Sent, Transmit};
use beeline_nic_process::{NicProcessConfig, StatisticsFeed};
use support::{Running, Station, WATCHDOG, config, domain};

/// Sends until everything on the way is full: the ring, the frame that is held, the pool and the window. How many were
/// sent.
fn fill(sender: &mut Station, feed: &StatisticsFeed) -> u16 {
    let (mut sent, begun) = (0, Instant::now());
    loop {
        let frame = sender.frame(2, sent, 1000);
        if sender.tx.try_send(&frame).unwrap() == Sent::Sent {
            sent += 1;
            continue;
        }
        sender.tx.progress().unwrap();
        let is_held = feed.next().unwrap().ports.iter().any(|port| port.is_held);
        if is_held && sender.tx.try_send(&sender.frame(2, sent, 1000)).unwrap() == Sent::Full {
            return sent;
        }
        sent += u16::from(is_held);
        assert!(begun.elapsed() < WATCHDOG, "it never fills");
    }
}

/// Waits until so many ports are there and none leaves.
fn settle(feed: &StatisticsFeed, ports: usize) {
    let begun = Instant::now();
    loop {
        let now = feed.next().unwrap();
        if (now.ports.len(), now.leaving) == (ports, 0) {
            return;
        }
        assert!(begun.elapsed() < WATCHDOG, "{} ports, {} leave", now.ports.len(), now.leaving);
    }
}

#[test]
fn what_a_host_sent_before_it_left_arrives_although_its_receiver_was_full() {
    let folder = tempfile::tempdir().unwrap();
    let departure_limit = Duration::from_secs(60);
    let nic = Running::start(NicProcessConfig { departure_limit, ..config(folder.path()) });
    let mut receiver = Station::connect(folder.path(), 2, false, 512);
    let mut sender = Station::connect(folder.path(), 1, false, 512);
    let (feed, _) = StatisticsFeed::open(&domain(folder.path()), "nic").unwrap();
    let sent = fill(&mut sender, &feed);
    let expected: Vec<Vec<u8>> = (0..sent).map(|number| sender.frame(2, number, 1000)).collect();
    drop(sender);
    let begun = Instant::now();
    while feed.next().unwrap().leaving == 0 {
        assert!(begun.elapsed() < WATCHDOG, "nobody leaves");
    }
    for (number, frame) in expected.iter().enumerate() {
        assert_eq!(&receiver.receive(), frame, "frame {number}");
    }
    settle(&feed, 1);
    let last = nic.stop();
    assert_eq!((last.rounds.ports_departed, last.rounds.torn_messages), (1, 0));
    assert_eq!((last.switch.dropped_sender_left, last.switch.dropped_full), (0, 0));
}

#[test]
fn port_of_a_receiver_that_never_reads_is_freed_and_frames_counted() {
    let folder = tempfile::tempdir().unwrap();
    let departure_limit = Duration::from_millis(50);
    let nic = Running::start(NicProcessConfig { departure_limit, max_ports: 2, ..config(folder.path()) });
    let mut receiver = Station::connect(folder.path(), 2, false, 512);
    let mut sender = Station::connect(folder.path(), 1, false, 512);
    let (feed, _) = StatisticsFeed::open(&domain(folder.path()), "nic").unwrap();
    let sent = fill(&mut sender, &feed);
    drop(sender);
    settle(&feed, 1);
    let dropped = feed.next().unwrap().switch.dropped_sender_left;
    assert!(dropped > 0);
    for _ in 0..u64::from(sent) - dropped {
        receiver.receive();
    }
    assert!(receiver.try_receive().is_none(), "{sent} sent, {dropped} counted as dropped, and one more came");
    // The number is free again.
    let again = Station::connect(folder.path(), 3, false, 512);
    drop(again);
    assert_eq!(nic.stop().switch.dropped_sender_left, dropped);
}

#[test]
fn frames_that_waited_for_a_receiver_that_left_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let nic = Running::start(config(folder.path()));
    let receiver = Station::connect(folder.path(), 2, false, 512);
    let mut sender = Station::connect(folder.path(), 1, false, 512);
    let (feed, _) = StatisticsFeed::open(&domain(folder.path()), "nic").unwrap();
    fill(&mut sender, &feed);
    drop(receiver);
    settle(&feed, 1);
    sender.drain();
    let last = nic.stop();
    assert_eq!(last.switch.dropped_receiver_left, 1, "the one that was held");
}
