//! Pins against removers. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p beeline-ffi --test loom_pinned --release --target-dir target/loom`.
//!
//! Loom has no `membarrier`: here users fence, as they do where the kernel refuses it. What the kernel promises makes of the users'
//! compiler fence the same.
#![cfg(loom)]
#![expect(unsafe_code, reason = "slots are part of the crate that has the unsafe code")]

mod sync {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
}
/// A futex without a bound, so that loom finds a remover that nobody wakes; with one where `IS_BOUNDED`.
mod barrier {
    use std::cell::Cell;

    use loom::sync::{Condvar, Mutex};

    use crate::sync::{AtomicU32, Ordering};

    loom::lazy_static! {
        static ref QUEUE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
    }

    std::thread_local! {
        /// Whether sleeps end by themselves. Loom runs all threads of a model on the thread of its test.
        pub(super) static IS_BOUNDED: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn on_all_cores() -> bool {
        panic!("users fence in these models");
    }

    pub(super) fn sleep(word: &AtomicU32, seen: u32) {
        if IS_BOUNDED.get() {
            return loom::thread::yield_now();
        }
        let lock = QUEUE.0.lock().unwrap();
        if word.load(Ordering::Relaxed) == seen {
            drop(QUEUE.1.wait(lock).unwrap());
        }
    }

    pub(super) fn wake(_word: &AtomicU32) {
        let _lock = QUEUE.0.lock().unwrap();
        QUEUE.1.notify_all();
    }
}
#[path = "../src/pinned/free.rs"]
mod free;
#[path = "../src/pinned/pins.rs"]
#[expect(dead_code, reason = "no model forks, and threads that do not fence are none of loom's")]
mod pins;
#[path = "../src/pinned/slot.rs"]
#[expect(dead_code, reason = "the models have one slot")]
mod slot;

use std::ptr;

use free::Free;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use pins::Pins;
use slot::{Slot, WithdrawError};
use sync::{AtomicPtr, AtomicU32, AtomicU64};

const HANDLE: u64 = 1 << 32 | 0x41;
/// The next handle of the same slot.
const NEXT: u64 = 2 << 32 | 0x41;

/// What is read by users and written by whoever took it out: loom finds the two at the same time.
struct Thing(UnsafeCell<u32>);

/// With as many preemptions as `LOOM_MAX_PREEMPTIONS` says, otherwise with four: this many models do not end without a bound.
fn model_bounded(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(4));
    builder.check(body);
}

struct Model {
    pins: Pins,
    slot: Slot<Thing>,
}

impl Model {
    fn new() -> Arc<Self> {
        let pins = Pins::of(AtomicPtr::new(ptr::null_mut()), AtomicU32::new(0), AtomicU32::new(0));
        let slot = Slot::of(AtomicU64::new(0), AtomicPtr::new(ptr::null_mut()));
        let model = Model { pins, slot };
        model.publish(HANDLE, 7);
        Arc::new(model)
    }

    fn publish(&self, handle: u64, number: u32) {
        self.slot.publish(handle, Box::new(Thing(UnsafeCell::new(number))));
    }

    /// What a user sees, with a record of its own.
    fn used(&self, owner: usize, handle: u64) -> Option<u32> {
        let record = self.pins.record_of(owner, true);
        let found = {
            let pin = record.pin(&self.pins, handle).unwrap();
            self.slot.look(&pin).map(|thing| {
                // SAFETY: loom checks that nobody writes meanwhile.
                thing.0.with(|number| unsafe { *number })
            })
        };
        record.give_up(&self.pins);
        found
    }

    fn removed(&self, handle: u64) -> Result<u32, WithdrawError> {
        let thing = self.slot.remove(&self.pins, handle, true, |_| ())?;
        // Written: a user that is still reading would be found.
        // SAFETY: loom checks that nobody reads meanwhile.
        Ok(thing.0.with_mut(|number| unsafe { number.replace(0) }))
    }
}

#[test]
fn object_that_a_thread_has_pinned_is_not_taken_out() {
    loom::model(|| {
        let model = Model::new();
        let user = model.clone();
        let using = thread::spawn(move || user.used(1, HANDLE));
        assert_eq!(model.removed(HANDLE), Ok(7));
        assert!([None, Some(7)].contains(&using.join().unwrap()));
        assert_eq!(model.used(1, HANDLE), None);
    });
}

#[test]
fn object_of_a_short_look_is_not_taken_out() {
    barrier::IS_BOUNDED.set(true);
    loom::model(|| {
        let model = Model::new();
        let user = model.clone();
        let using = thread::spawn(move || {
            let record = user.pins.record_of(1, true);
            let pin = record.pin_shortly(HANDLE).unwrap();
            user.slot.look(&pin).map(|thing| {
                // SAFETY: loom checks that nobody writes meanwhile.
                thing.0.with(|number| unsafe { *number })
            })
        });
        assert_eq!(model.removed(HANDLE), Ok(7));
        assert!([None, Some(7)].contains(&using.join().unwrap()));
    });
}

#[test]
fn user_of_a_closed_handle_does_not_see_the_next_object_of_the_slot() {
    model_bounded(|| {
        let model = Model::new();
        let user = model.clone();
        let using = thread::spawn(move || (user.used(1, HANDLE), user.used(1, NEXT)));
        assert_eq!(model.removed(HANDLE), Ok(7));
        model.publish(NEXT, 8);
        let (old, new) = using.join().unwrap();
        assert!([None, Some(7)].contains(&old) && [None, Some(8)].contains(&new), "{old:?} {new:?}");
    });
}

#[test]
fn one_of_two_removers_takes_the_object() {
    model_bounded(|| {
        let model = Model::new();
        let (user, other) = (model.clone(), model.clone());
        let using = thread::spawn(move || user.used(1, HANDLE));
        let removing = thread::spawn(move || other.removed(HANDLE));
        let both = [model.removed(HANDLE), removing.join().unwrap()];
        assert!(both.contains(&Ok(7)) && both.contains(&Err(WithdrawError::NotOpen)), "{both:?}");
        assert!([None, Some(7)].contains(&using.join().unwrap()));
    });
}

#[test]
fn pin_of_a_thread_that_ends_inside_a_function_is_not_waited_for() {
    loom::model(|| {
        let model = Model::new();
        let user = model.clone();
        let ending = thread::spawn(move || {
            let record = user.pins.record_of(1, true);
            let pin = record.pin(&user.pins, HANDLE).unwrap();
            let seen = user.slot.look(&pin).map(|thing| {
                // SAFETY: loom checks that nobody writes meanwhile.
                thing.0.with(|number| unsafe { *number })
            });
            // It leaves its function by no return.
            core::mem::forget(pin);
            record.give_up(&user.pins);
            seen
        });
        assert_eq!(model.removed(HANDLE), Ok(7));
        assert!([None, Some(7)].contains(&ending.join().unwrap()));
    });
}

#[test]
fn record_that_was_given_up_is_taken_by_one_thread() {
    loom::model(|| {
        let model = Model::new();
        model.pins.record_of(1, true).give_up(&model.pins);
        let takers = [1, 2].map(|owner| {
            let taker = model.clone();
            thread::spawn(move || ptr::from_ref(taker.pins.record_of(owner, true)).addr())
        });
        let [first, second] = takers.map(|taker| taker.join().unwrap());
        assert_ne!(first, second, "two threads pin in one record");
    });
}

#[test]
fn users_leave_nothing_behind() {
    loom::model(|| {
        let model = Model::new();
        let users = [1, 2].map(|owner| {
            let user = model.clone();
            thread::spawn(move || user.used(owner, HANDLE))
        });
        for user in users {
            assert_eq!(user.join().unwrap(), Some(7));
        }
        assert!(!model.pins.has_pins(1) && !model.pins.has_pins(2));
        assert_eq!(model.removed(HANDLE), Ok(7));
    });
}

fn free<const COUNT: usize>() -> Free<COUNT> {
    Free::of(AtomicU64::new(0), core::array::from_fn(|_| AtomicU32::new(0)), AtomicU32::new(0))
}

#[test]
fn index_is_one_threads_and_comes_with_what_the_last_one_did() {
    loom::model(|| {
        // Each index with what belongs to it.
        let shared = Arc::new((free::<2>(), [(); 2].map(|()| UnsafeCell::new(0))));
        let use_one = |shared: &(Free<2>, [UnsafeCell<u32>; 2])| {
            let index = shared.0.take().expect("two threads, two indices");
            // SAFETY: loom checks that nobody else is here.
            shared.1[index as usize].with_mut(|count| unsafe { *count += 1 });
            shared.0.give_back(index);
        };
        let other = shared.clone();
        let using = thread::spawn(move || (0..2).for_each(|_| use_one(&other)));
        (0..2).for_each(|_| use_one(&shared));
        using.join().unwrap();
        // SAFETY: as above.
        let counts = [0, 1].map(|at: usize| shared.1[at].with(|count| unsafe { *count }));
        assert_eq!(counts.iter().sum::<u32>(), 4);
        let mut left = [shared.0.take(), shared.0.take(), shared.0.take()];
        left.sort_unstable();
        assert_eq!(left, [None, Some(0), Some(1)]);
    });
}

#[test]
fn head_that_comes_back_between_a_look_and_a_change_is_another_one() {
    loom::model(|| {
        let shared = Arc::new(free::<2>());
        let [first, second] = [(); 2].map(|()| shared.take().unwrap());
        shared.give_back(second);
        shared.give_back(first);
        let other = shared.clone();
        // It takes both and returns the first alone, which is the head again, with nothing before it.
        let taking = thread::spawn(move || {
            let both = [other.take(), other.take()];
            if let [Some(head), Some(kept)] = both {
                other.give_back(head);
                return Some(kept);
            }
            both.into_iter().flatten().next()
        });
        let own = shared.take();
        let others = taking.join().unwrap();
        let mut all = [own, others, shared.take(), shared.take()];
        all.sort_unstable();
        assert_eq!(all, [None, None, Some(0), Some(1)]);
    });
}
