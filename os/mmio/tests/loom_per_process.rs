//! What each process keeps for itself, and by which number processes are told apart, made by several threads at once. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p beeline-mmio --test loom_per_process --release --target-dir target/loom`.
#![cfg(loom)]
#![expect(unsafe_code, reason = "the list is part of the crate that has the unsafe code")]

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
}
/// Processes of the model: a thread is in the one that it says.
mod process {
    use std::cell::Cell;

    loom::thread_local! {
        static NUMBER: Cell<u32> = Cell::new(0);
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) struct ThisProcess(u32);

    impl ThisProcess {
        pub(crate) fn get() -> Self {
            ThisProcess(NUMBER.with(Cell::get))
        }

        pub(crate) fn is_this(self) -> bool {
            self == Self::get()
        }

        /// Puts the calling thread into another process.
        pub(crate) fn enter(number: u32) {
            NUMBER.with(|own| own.set(number));
        }
    }
}
#[path = "../src/generation.rs"]
mod generation;
#[path = "../src/per_process/list.rs"]
mod list;

use std::ptr;

use list::PerProcess;
use loom::sync::Arc;
use loom::thread;
use process::ThisProcess;
use sync::{AtomicPtr, AtomicU64, Ordering};

fn empty<T>() -> Arc<PerProcess<T>> {
    // SAFETY: null.
    Arc::new(unsafe { PerProcess::of(AtomicPtr::new(ptr::null_mut())) })
}

/// A value that its maker writes by relaxed stores: who does not come after them reads zero. Loom finds one that is not dropped.
struct Value {
    written: AtomicU64,
    _is_dropped: Arc<()>,
}

impl Value {
    fn new(number: u64) -> Self {
        let written = AtomicU64::new(0);
        written.store(number, Ordering::Relaxed);
        Value { written, _is_dropped: Arc::new(()) }
    }
}

fn written(value: &Value) -> u64 {
    value.written.load(Ordering::Relaxed)
}

#[test]
fn threads_that_come_at_once_get_one_whole_value_and_the_others_are_dropped() {
    loom::model(|| {
        let values = empty();
        let threads = [1, 2].map(|number| {
            let values = Arc::clone(&values);
            thread::spawn(move || written(values.get_or_init(|| Value::new(number))))
        });
        if let Some(found) = values.get() {
            assert_ne!(written(found), 0);
        }
        let found = threads.map(|thread| thread.join().unwrap());
        assert!(found[0] == found[1] && found[0] != 0, "{found:?}");
        assert_eq!(values.get().map(written), Some(found[0]));
    });
}

#[test]
fn values_of_other_processes_are_passed_over() {
    loom::model(|| {
        let values = empty();
        let threads = [1, 2].map(|number| {
            let values: Arc<PerProcess<u32>> = Arc::clone(&values);
            thread::spawn(move || {
                ThisProcess::enter(number);
                assert_eq!(values.get_or_try_init(|| Err("none")), Err("none"));
                assert_eq!(values.get_or_init(|| number), &number);
                assert_eq!(values.get(), Some(&number));
            })
        });
        assert_eq!(values.get(), None);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((values.get(), values.get_or_init(|| 0)), (None, &0));
    });
}

#[test]
fn threads_that_come_first_in_a_process_give_it_one_number_that_no_ancestor_had() {
    loom::model(|| {
        let words = Arc::new((AtomicU64::new(0), AtomicU64::new(7)));
        let threads = [(); 2].map(|()| {
            let words = Arc::clone(&words);
            thread::spawn(move || generation::current(&words.0, &words.1))
        });
        let own = generation::current(&words.0, &words.1);
        let found = threads.map(|thread| thread.join().unwrap());
        assert!(own > 7 && found == [own, own], "{own} {found:?}");
    });
}
