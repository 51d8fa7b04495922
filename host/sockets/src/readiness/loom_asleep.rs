//! Two threads of one set and a sender, under every order that memory allows: each thread takes one of two messages, and none sleeps for ever.

#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

use std::os::fd::BorrowedFd;

use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::asleep::Asleep;
use super::watched::Sleeper;

/// A sleeper as the engine has it, with a bell that is a flag.
#[derive(Default)]
struct Ringing {
    is_rung: Mutex<bool>,
    rung: Condvar,
    /// How many sleep, and the number of the last announcement.
    standing: Mutex<(u32, u32)>,
    announcement: AtomicU32,
}

impl Sleeper for Ringing {
    fn bell(&self) -> BorrowedFd<'_> {
        unreachable!("the bell is a flag")
    }

    fn announce(&self) {
        let mut standing = self.standing.lock().unwrap();
        *standing = (standing.0 + 1, standing.1 + 1);
        self.announcement.store(standing.1, Ordering::Relaxed);
        drop(standing);
        // Stands for the membarrier; pairs with the fence in `send`.
        fence(Ordering::SeqCst);
    }

    fn withdraw(&self) {
        let mut standing = self.standing.lock().unwrap();
        standing.0 -= 1;
        if standing.0 == 0 {
            self.announcement.store(0, Ordering::Relaxed);
        }
    }

    fn is_whole(&self) -> bool {
        true
    }

    fn clear(&self) -> bool {
        *self.is_rung.lock().unwrap() = false;
        true
    }

    fn ring(&self) {
        *self.is_rung.lock().unwrap() = true;
        self.rung.notify_all();
    }
}

struct Set {
    sleeper: Ringing,
    asleep: Asleep,
    arrived: AtomicU32,
    taken: Mutex<u32>,
}

impl Set {
    fn has_news(&self) -> bool {
        let taken = self.taken.lock().unwrap();
        self.arrived.load(Ordering::Acquire) > *taken
    }

    fn take(&self) -> bool {
        let mut taken = self.taken.lock().unwrap();
        let is_there = self.arrived.load(Ordering::Acquire) > *taken;
        *taken += u32::from(is_there);
        is_there
    }

    /// As a wait does it that never spins.
    fn wait(&self) {
        while !self.take() {
            let announced = self.asleep.enter(&self.sleeper);
            if !self.has_news() {
                let mut is_rung = self.sleeper.is_rung.lock().unwrap();
                while !*is_rung {
                    is_rung = self.sleeper.rung.wait(is_rung).unwrap();
                }
            }
            drop(announced);
            self.sleeper.clear();
        }
        self.asleep.pass_on(&self.sleeper, || self.has_news());
    }

    fn send(&self, rung: &mut u32) {
        self.arrived.fetch_add(1, Ordering::Release);
        // Stands for nothing but the order that the sleeper's membarrier gives.
        fence(Ordering::SeqCst);
        let announcement = self.sleeper.announcement.load(Ordering::Relaxed);
        if announcement != 0 && announcement != *rung {
            *rung = announcement;
            self.sleeper.ring();
        }
    }
}

#[test]
fn loom_no_thread_of_a_set_sleeps_beside_a_message() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let set = Arc::new(Set {
            sleeper: Ringing::default(),
            asleep: Asleep::new(),
            arrived: AtomicU32::new(0),
            taken: Mutex::new(0),
        });
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let set = Arc::clone(&set);
                thread::spawn(move || set.wait())
            })
            .collect();
        let mut rung = 0;
        set.send(&mut rung);
        set.send(&mut rung);
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
}
