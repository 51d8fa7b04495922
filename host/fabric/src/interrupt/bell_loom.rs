//! Triggers against threads that fall asleep, in all orders. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p beeline-fabric --release --target-dir target/loom --lib loom`. A lost wake-up shows as a
//! deadlock, because a sleep of the model has no bound.

use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::sync::{Arc, Mutex};
use loom::thread::{self, Thread};

use crate::interrupt::bell::{Bell, Sleepers, ring, rouse};

/// Which of the two fences are there.
#[derive(Clone, Copy)]
struct Fences {
    light: bool,
    heavy: bool,
}

const BOTH: Fences = Fences { light: true, heavy: true };

/// The flag: as in the kernel, the comparison and the enqueueing are one step under a lock that wakers take too.
struct ModelBell {
    flag: AtomicU32,
    asleep: Mutex<Vec<Thread>>,
    fences: Fences,
    /// What who waits for one of several sleeps on.
    watchers: Option<Arc<ModelBell>>,
}

impl ModelBell {
    fn new(fences: Fences, watchers: Option<Arc<ModelBell>>) -> Self {
        ModelBell { flag: AtomicU32::new(0), asleep: Mutex::new(Vec::new()), fences, watchers }
    }
}

impl Bell for ModelBell {
    fn load(&self) -> u32 {
        self.flag.load(Ordering::Relaxed)
    }

    fn swap(&self, value: u32) -> u32 {
        self.flag.swap(value, Ordering::AcqRel)
    }

    fn sleep(&self, expected: u32) {
        let mut asleep = self.asleep.lock().unwrap();
        if self.flag.load(Ordering::Relaxed) == expected {
            asleep.push(thread::current());
            drop(asleep);
            thread::park();
        }
    }

    fn wake(&self) {
        let asleep = core::mem::take(&mut *self.asleep.lock().unwrap());
        asleep.iter().for_each(Thread::unpark);
    }

    fn wake_watchers(&self) {
        if let Some(watchers) = &self.watchers
            && watchers.load() != 0
        {
            rouse(&**watchers);
        }
    }

    fn light(&self) {
        if self.fences.light {
            fence(Ordering::SeqCst);
        }
    }

    fn heavy(&self) {
        if self.fences.heavy {
            fence(Ordering::SeqCst);
        }
    }
}

/// An interrupt that counts, with the lock of those that take.
struct Interrupt {
    count: AtomicU64,
    bell: ModelBell,
    taking: Mutex<(u64, Sleepers)>,
}

impl Interrupt {
    fn new(fences: Fences) -> Arc<Self> {
        Self::with(ModelBell::new(fences, None))
    }

    fn with(bell: ModelBell) -> Arc<Self> {
        Arc::new(Interrupt { count: AtomicU64::new(0), bell, taking: Mutex::new((0, Sleepers::default())) })
    }

    fn trigger(&self) {
        // Relaxed: the barriers order it, and nothing else here.
        self.count.fetch_add(1, Ordering::Relaxed);
        ring(&self.bell);
    }

    fn take(&self, taken: &mut u64) -> bool {
        let has_come = self.count.load(Ordering::Relaxed) > *taken;
        *taken += u64::from(has_come);
        has_come
    }

    /// Waits for one trigger, or gives up before the first sleep.
    fn wait(&self, is_patient: bool) -> bool {
        loop {
            let mut taking = self.taking.lock().unwrap();
            if self.take(&mut taking.0) {
                return true;
            }
            let announced = taking.1.announce(&self.bell);
            drop(taking);
            announced.order(&self.bell);
            let mut taking = self.taking.lock().unwrap();
            let has_come = self.take(&mut taking.0);
            if !has_come && is_patient {
                drop(taking);
                announced.park(&self.bell);
                taking = self.taking.lock().unwrap();
            }
            taking.1.withdraw(announced, &self.bell);
            if has_come || !is_patient {
                return has_come;
            }
        }
    }
}

fn trigger_wakes_who_sleeps(fences: Fences) {
    loom::model(move || {
        let interrupt = Interrupt::new(fences);
        let own = Arc::clone(&interrupt);
        let triggerer = thread::spawn(move || own.trigger());
        assert!(interrupt.wait(true));
        triggerer.join().unwrap();
    });
}

#[test]
fn trigger_is_not_slept_through() {
    trigger_wakes_who_sleeps(BOTH);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_sleepers_barrier_a_wake_up_is_lost() {
    trigger_wakes_who_sleeps(Fences { heavy: false, ..BOTH });
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_triggerers_barrier_a_wake_up_is_lost() {
    trigger_wakes_who_sleeps(Fences { light: false, ..BOTH });
}

#[test]
fn sleeper_is_woken_although_another_one_gives_up() {
    loom::model(|| {
        let interrupt = Interrupt::new(BOTH);
        let (own, other) = (Arc::clone(&interrupt), Arc::clone(&interrupt));
        let triggerer = thread::spawn(move || own.trigger());
        let impatient = thread::spawn(move || other.wait(false));
        // Whoever takes the one trigger, the other one's announcement stays until it is taken back.
        if impatient.join().unwrap() {
            interrupt.trigger();
        }
        assert!(interrupt.wait(true));
        triggerer.join().unwrap();
    });
}

#[test]
fn two_sleepers_are_woken_by_two_triggers() {
    // Four exchanges of a flag in each thread: without a bound it does not end in an hour.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let interrupt = Interrupt::new(BOTH);
        let (own, other) = (Arc::clone(&interrupt), Arc::clone(&interrupt));
        let triggerer = thread::spawn(move || {
            own.trigger();
            own.trigger();
        });
        let second = thread::spawn(move || other.wait(true));
        assert!(interrupt.wait(true));
        assert!(second.join().unwrap());
        triggerer.join().unwrap();
    });
}

/// Waits for triggers of an interrupt as of one of several, on the flag of those who do.
fn wait_for_several(interrupt: &Interrupt, several: &ModelBell, triggers: u32) {
    let mut sleepers = Sleepers::default();
    interrupt.taking.lock().unwrap().1.watch();
    for _ in 0..triggers {
        loop {
            let announced = sleepers.announce(several);
            interrupt.taking.lock().unwrap().1.arm(&interrupt.bell);
            announced.order(several);
            let has_come = interrupt.take(&mut interrupt.taking.lock().unwrap().0);
            if !has_come {
                announced.park(several);
            }
            sleepers.withdraw(announced, several);
            if has_come {
                break;
            }
        }
    }
}

fn trigger_wakes_who_waits_for_several(fences: Fences) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let several = Arc::new(ModelBell::new(fences, None));
        let interrupt = Interrupt::with(ModelBell::new(fences, Some(Arc::clone(&several))));
        let own = Arc::clone(&interrupt);
        let triggerer = thread::spawn(move || {
            own.trigger();
            // The mark may be up from before the first sleep.
            own.trigger();
        });
        wait_for_several(&interrupt, &several, 2);
        triggerer.join().unwrap();
    });
}

#[test]
fn trigger_of_a_watched_interrupt_is_not_slept_through() {
    trigger_wakes_who_waits_for_several(BOTH);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_triggerers_barrier_who_waits_for_several_is_not_woken() {
    trigger_wakes_who_waits_for_several(Fences { light: false, ..BOTH });
}

/// The bell of a member, on which each thread waits for an outcome of its own. Outcomes and sleepers have one lock.
struct Waiting {
    bell: ModelBell,
    state: Mutex<([bool; 2], Sleepers)>,
}

impl Waiting {
    /// As a thread that carries something out for another one.
    fn put_outcome(&self, of: usize) {
        self.state.lock().unwrap().0[of] = true;
        ring(&self.bell);
    }

    fn wait(&self, of: usize) {
        let mut state = self.state.lock().unwrap();
        while !state.0[of] {
            let announced = state.1.announce(&self.bell);
            drop(state);
            announced.order(&self.bell);
            state = self.state.lock().unwrap();
            if !state.0[of] {
                drop(state);
                announced.park(&self.bell);
                state = self.state.lock().unwrap();
            }
            state.1.withdraw(announced, &self.bell);
        }
    }
}

#[test]
fn outcome_is_not_slept_through_where_the_next_thread_begins_to_wait() {
    let mut model = loom::model::Builder::new();
    // The wake-up that is lost by a flag of one value takes fewer.
    model.preemption_bound = Some(3);
    model.check(|| {
        let bell = ModelBell::new(BOTH, None);
        let waiting = Arc::new(Waiting { bell, state: Mutex::new(([false; 2], Sleepers::default())) });
        let (own, other) = (Arc::clone(&waiting), Arc::clone(&waiting));
        let first = thread::spawn(move || {
            own.wait(0);
            // The other thread's comes after this one's, so nobody wakes this one by it.
            own.put_outcome(1);
        });
        let second = thread::spawn(move || other.wait(1));
        waiting.put_outcome(0);
        first.join().unwrap();
        second.join().unwrap();
    });
}
