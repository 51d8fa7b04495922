//! Notifications between processes and threads: their order with answers, how many may wait, and what they carry.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;
mod teller;

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use beeline_domain::{
    MAX_NOTIFICATION_BYTES, MAX_NOTIFICATION_FDS, MAX_UNTAKEN_NOTIFICATIONS, MisuseError, NotificationsEnded,
    Notified, NotifyError,
};
use harness::{Role, TestFolder, WATCHDOG, is_readable};
use teller::{Order, Pair, connect, counter, fill};

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    assert_eq!(role.name, "counter");
    counter(&role.open(), role.argument.parse().unwrap());
}

#[test]
fn notifications_of_threads_keep_their_order_with_answers() {
    let folder = TestFolder::new();
    // Long ones, so that the socket is full now and then and packets wait for room.
    let mut owner = folder.helper("counter", "4000");
    owner.expect("ready");
    let domain = folder.open();
    let (connection, notifications) = connect(&domain);
    let (told, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    let order = std::thread::scope(|scope| {
        let taking = scope.spawn(|| {
            let mut order = Order::default();
            while !is_done.load(Ordering::SeqCst) || order.calls < told.load(Ordering::SeqCst) {
                let next = notifications.next_within(Duration::from_millis(1)).unwrap();
                next.iter().for_each(|notification| order.check(notification));
            }
            assert_eq!(order.calls, told.load(Ordering::SeqCst), "each accepted one came once");
            order
        });
        while told.load(Ordering::SeqCst) < 1000 {
            // While all that may be untaken is, the owner is told so.
            match &*connection.call(b"tell", &[]).unwrap().payload {
                b"told" => told.fetch_add(1, Ordering::SeqCst),
                _ => 0,
            };
        }
        is_done.store(true, Ordering::SeqCst);
        taking.join().unwrap()
    });
    assert!(order.counted > 1000, "only {} notifications came: no load", order.counted);
}

#[test]
fn notification_is_there_when_the_call_it_was_sent_in_returns() {
    let pair = Pair::new();
    let notifications = pair.connection.notifications().unwrap();
    let mut order = Order::default();
    for _ in 0..2000 {
        assert_eq!(pair.connection.call(b"tell", &[]).unwrap().payload, b"told");
        order.check(&notifications.try_next().unwrap().expect("it came before the answer"));
        assert!(notifications.try_next().unwrap().is_none());
    }
}

#[test]
fn client_that_does_not_take_is_bounded_and_still_answered() {
    let pair = Pair::new();
    assert_eq!(fill(&pair.peer, &[7; MAX_NOTIFICATION_BYTES]), MAX_UNTAKEN_NOTIFICATIONS);
    // Answers do not wait behind what is not taken.
    assert_eq!(pair.connection.call(b"ab", &[]).unwrap().payload, b"ab");
    assert_eq!(pair.connection.call(b"tell", &[]).unwrap().payload, b"full");
    let notifications = pair.connection.notifications().unwrap();
    let waiting = std::thread::spawn(move || pair.told.tell(&pair.peer, b"last"));
    let mut taken = 0;
    loop {
        let next = notifications.next_within(WATCHDOG).unwrap().unwrap();
        if next.payload == b"last" {
            break;
        }
        assert_eq!(next.payload.len(), MAX_NOTIFICATION_BYTES);
        taken += 1;
    }
    assert_eq!(taken, MAX_UNTAKEN_NOTIFICATIONS);
    assert!(waiting.join().unwrap());
}

#[test]
fn descriptors_travel_and_the_wait_is_by_descriptor() {
    let pair = Pair::new();
    let notifications = pair.connection.notifications().unwrap();
    assert!(!is_readable(&notifications, Duration::ZERO));
    assert!(notifications.next_within(Duration::from_millis(1)).unwrap().is_none());
    for round in 0..100_u8 {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let fds: [BorrowedFd<'_>; MAX_NOTIFICATION_FDS] = [writer.as_fd(); MAX_NOTIFICATION_FDS];
        let started = Instant::now();
        // Those taken make room once the owner's thread has heard of them.
        while pair.peer.notify(&[round], &fds) != Ok(Notified::Accepted) {
            assert!(started.elapsed() < WATCHDOG, "those taken make room");
        }
        drop(writer);
        assert!(is_readable(&notifications, WATCHDOG));
        let next = notifications.try_next().unwrap().unwrap();
        assert_eq!((next.payload[0], next.fds.len()), (round, MAX_NOTIFICATION_FDS));
        assert!(!is_readable(&notifications, Duration::ZERO));
        std::fs::File::from(next.fds.into_iter().next().unwrap()).write_all(b"x").unwrap();
        // The pipe ends only when no copy of its writing end is left on either side.
        let mut text = Vec::new();
        reader.read_to_end(&mut text).unwrap();
        assert_eq!(text, b"x");
    }
    drop(pair.connection);
    assert!(is_readable(&notifications, WATCHDOG), "the end is something");
    assert_eq!(notifications.try_next().err(), Some(NotificationsEnded::ClosedHere));
}

#[test]
fn what_cannot_be_notified_is_said_so() {
    let Pair { peer, connection, .. } = &Pair::new();
    assert_eq!(connection.peer().notify(b"", &[]), Err(NotifyError::Misuse(MisuseError::NotClient)));
    let bytes = MAX_NOTIFICATION_BYTES + 1;
    assert_eq!(peer.notify(&vec![0; bytes], &[]), Err(NotifyError::TooLarge { bytes, fds: 0 }));
    let stdin = std::io::stdin();
    let fds = [stdin.as_fd(); MAX_NOTIFICATION_FDS + 1];
    assert_eq!(peer.notify(b"", &fds), Err(NotifyError::TooLarge { bytes: 0, fds: fds.len() }));
    connection.call(b"bye", &[]).unwrap_err();
    assert_eq!(peer.notify(b"", &[]), Err(NotifyError::Gone));
    let ended = connection.notifications().unwrap().next_within(WATCHDOG);
    assert_eq!(ended.err(), Some(NotificationsEnded::Closed));
}
