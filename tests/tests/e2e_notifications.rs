//! A program with two kinds of processes: an owner that offers a counter, and watchers that it notifies of every change.
//! A watcher sleeps in epoll until there is something, also when the owner is killed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod e2e_support;

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex};

use beeline_domain::{
    Answer, Connection, Notifications, NotificationsEnded, Notified, Peer, Refusal, Reply, Service,
};
use e2e_support::{Role, WATCHDOG, domain_at, domain_config, own_role, say};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};

/// How often the owner changes the counter.
const CHANGES: u64 = 20_000;
const WATCHERS: usize = 3;

/// The counter, and who watches it.
#[derive(Default)]
struct Counter {
    watchers: Mutex<Vec<Peer>>,
    has_room: Condvar,
}

impl Counter {
    /// Tells every watcher the new value; waits for one that has no room, which a program of another kind would leave behind.
    fn change_to(&self, value: u64) {
        let mut watchers = self.watchers.lock().unwrap();
        let mut told = 0;
        while let Some(watcher) = watchers.get(told).cloned() {
            match watcher.notify(&value.to_le_bytes(), &[]) {
                Ok(Notified::Accepted) => told += 1,
                Ok(Notified::WouldBlock) => {
                    let (again, waited) = self.has_room.wait_timeout(watchers, WATCHDOG).unwrap();
                    assert!(!waited.timed_out(), "nobody says that there is room");
                    watchers = again;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

struct CounterService(Arc<Counter>);

impl Service for CounterService {
    fn connected(&mut self, peer: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        self.0.watchers.lock().unwrap().push(peer.clone());
        Ok(Reply::default().into())
    }

    fn requested(&mut self, _: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::new(request).into())
    }

    fn departed(&mut self, peer: &Peer) {
        self.0.watchers.lock().unwrap().retain(|watcher| watcher.id() != peer.id());
        self.0.has_room.notify_all();
    }

    fn has_room(&mut self, _: &Peer) {
        // With the lock, so that nobody is between its question and its wait.
        let _watchers = self.0.watchers.lock().unwrap();
        self.0.has_room.notify_all();
    }
}

#[test]
#[ignore = "a role of the other tests, not a test"]
fn role() {
    assert_eq!(own_role().as_deref(), Some("owner"));
    let domain = beeline_domain::Domain::open(&domain_config()).unwrap();
    let counter = Arc::new(Counter::default());
    let _offer = domain.offer("counter", Box::new(CounterService(Arc::clone(&counter)))).unwrap();
    say("ready");
    let begun = std::time::Instant::now();
    while counter.watchers.lock().unwrap().len() < WATCHERS {
        assert!(begun.elapsed() < WATCHDOG);
        std::thread::yield_now();
    }
    (1..=CHANGES).for_each(|value| counter.change_to(value));
    say("changed");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Takes what there is until it would have to wait; the end, if it has come.
fn take_all(notifications: &Notifications, value: &mut u64) -> Result<(), NotificationsEnded> {
    while let Some(notification) = notifications.try_next()? {
        let told = u64::from_le_bytes(notification.payload.try_into().unwrap());
        assert_eq!(told, *value + 1, "a change is missing, or came twice");
        *value = told;
    }
    Ok(())
}

/// Watches until the owner ends; the last value.
fn watch(connection: &Connection) -> (u64, NotificationsEnded) {
    let notifications = connection.notifications().unwrap();
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    epoll::add(&set, &notifications, EventData::new_u64(0), EventFlags::IN).unwrap();
    let (mut value, mut called) = (0, 0_u64);
    loop {
        if let Err(ended) = take_all(&notifications, &mut value) {
            return (value, ended);
        }
        // A watcher calls as well: an answer waits for nothing that was not taken.
        if value < CHANGES && value > called * 1000 {
            called += 1;
            assert_eq!(connection.call(&called.to_le_bytes(), &[]).unwrap().payload, called.to_le_bytes());
            continue;
        }
        let mut events = Vec::with_capacity(1);
        let limit = Timespec { tv_sec: WATCHDOG.as_secs().cast_signed(), tv_nsec: 0 };
        epoll::wait(set.as_fd(), spare_capacity(&mut events), Some(&limit)).unwrap();
        assert!(!events.is_empty(), "nobody wakes a watcher at {value}");
    }
}

#[test]
fn every_watcher_sees_every_change_and_the_death_of_the_owner() {
    let folder = tempfile::tempdir().unwrap();
    let mut owner = Role::start("owner", folder.path(), &[]);
    owner.expect("ready");
    std::thread::scope(|scope| {
        let watchers = [(); WATCHERS].map(|()| {
            scope.spawn(|| {
                let (connection, _) = domain_at(folder.path()).connect("counter", b"", &[]).unwrap();
                watch(&connection)
            })
        });
        owner.expect("changed");
        owner.kill();
        for watcher in watchers {
            assert_eq!(watcher.join().unwrap(), (CHANGES, NotificationsEnded::OwnerDied));
        }
    });
}
