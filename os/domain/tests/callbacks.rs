//! Threads that call back for each notification: what a callback may do, how such a thread ends, and what signals it takes.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;
mod teller;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use beeline_domain::NotificationsEnded;
use harness::{WATCHDOG, wait_until};
use rustix::process::Signal;
use teller::{Pair, teller};

#[test]
fn callbacks_call_connect_and_close() {
    let pair = Pair::new();
    let notifications = pair.connection.notifications().unwrap();
    let (results, heard) = channel();
    let connection = Mutex::new(Some(pair.connection));
    let callbacks = notifications.deliver_to({
        let domain = pair.domain.clone();
        move |given| {
            let mut connection = connection.lock().unwrap();
            match given.map(|notification| notification.payload) {
                Ok(payload) if payload == b"panic" => {
                    drop(connection);
                    panic!("a callback that panics, on purpose")
                }
                Ok(payload) if payload == b"close" => *connection = None,
                Ok(payload) => {
                    let answer = connection.as_ref().unwrap().call(&payload, &[]).unwrap();
                    let (other, _) = domain.connect("name", b"", &[]).unwrap();
                    assert_eq!(other.call(b"other", &[]).unwrap().payload, b"other");
                    let _other = domain.offer("from-a-callback", teller().0).unwrap();
                    results.send(Ok(answer.payload)).unwrap();
                }
                Err(ended) => results.send(Err(ended)).unwrap(),
            }
        }
    });
    for payload in [&b"one"[..], b"panic", b"two", b"close"] {
        assert!(pair.told.tell(&pair.peer, payload));
    }
    let next = || heard.recv_timeout(WATCHDOG).unwrap();
    assert_eq!((next(), next()), (Ok(b"one".to_vec()), Ok(b"two".to_vec())));
    assert_eq!(next(), Err(NotificationsEnded::ClosedHere));
    drop(callbacks);
}

#[test]
fn callback_thread_that_is_dropped_gives_nothing_more() {
    let Pair { peer, connection, told, .. } = &Pair::new();
    let count = Arc::new(AtomicU64::new(0));
    for is_own in [false, true] {
        let (given, own) = channel();
        let counted = Arc::clone(&count);
        let thread = connection.notifications().unwrap().deliver_to(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            if is_own {
                // The handle of this very thread.
                drop(own.recv_timeout(WATCHDOG).unwrap());
            }
        });
        let before = count.load(Ordering::SeqCst);
        assert!(told.tell(peer, b"given"));
        if is_own {
            given.send(thread.unwrap()).unwrap();
            wait_until(|| count.load(Ordering::SeqCst) == before + 1);
            // The thread ends by itself after its callback.
            wait_until(|| threads_named("beeline-notify") == 0);
        } else {
            wait_until(|| count.load(Ordering::SeqCst) == before + 1);
            drop(thread);
        }
        assert!(told.tell(peer, b"kept"));
        let kept = connection.notifications().unwrap().next_within(WATCHDOG).unwrap().unwrap();
        assert_eq!(kept.payload, b"kept");
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[test]
fn stop_does_not_wait_for_the_callback_that_runs_and_none_begins_after_it() {
    let Pair { peer, connection, told, .. } = &Pair::new();
    let (begin, begun) = channel();
    let (leave, may_leave) = channel();
    let thread = connection.notifications().unwrap().deliver_to(move |given| {
        begin.send(given.unwrap().payload).unwrap();
        may_leave.recv_timeout(WATCHDOG).unwrap();
    });
    let thread = thread.unwrap();
    assert!(told.tell(peer, b"given"));
    assert_eq!(begun.recv_timeout(WATCHDOG).unwrap(), b"given");
    thread.stop();
    assert!(told.tell(peer, b"kept"));
    leave.send(()).unwrap();
    // The thread ends, and what it was called with.
    assert!(begun.recv_timeout(WATCHDOG).is_err());
    let kept = connection.notifications().unwrap().next_within(WATCHDOG).unwrap().unwrap();
    assert_eq!(kept.payload, b"kept");
    drop(thread);
}

fn status_of_threads() -> Vec<(String, String)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let read = |task: std::io::Result<std::fs::DirEntry>| {
        let folder = task.ok()?.path();
        let name = std::fs::read_to_string(folder.join("comm")).ok()?;
        Some((name.trim().to_owned(), std::fs::read_to_string(folder.join("status")).ok()?))
    };
    tasks.filter_map(read).collect()
}

fn threads_named(name: &str) -> usize {
    status_of_threads().iter().filter(|(found, _)| found == name).count()
}

#[test]
fn signals_are_blocked_on_every_thread_of_ours() {
    let pair = Pair::new();
    let _callbacks = pair.connection.notifications().unwrap().deliver_to(|_| {}).unwrap();
    // A thread has its name some moments after it was started.
    for name in ["beeline-domain", "beeline-notify"] {
        wait_until(|| threads_named(name) > 0);
    }
    for (name, status) in status_of_threads().into_iter().filter(|(name, _)| name.starts_with("beeline-")) {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap().trim().to_owned();
        let mask = u64::from_str_radix(&mask, 16).unwrap();
        for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::ALARM, Signal::CHILD, Signal::USR1] {
            assert_ne!(mask & 1 << (signal.as_raw() - 1), 0, "{signal:?} is not blocked on {name}");
        }
    }
}
