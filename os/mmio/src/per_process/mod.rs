//! A value for each process: without a lock, because a thread of the parent that the child does not have may hold it.
//!
//! A child of `fork` inherits memory as it was at one moment. A `Mutex` that another thread held then is locked in the child for
//! ever, and so is a `OnceLock` that was being filled. [`PerProcess`] is a list that only grows, by one atomic step: at every
//! moment it is whole, and what an ancestor put in is passed over.

mod list;

use std::ptr;

pub use list::PerProcess;

use crate::sync::AtomicPtr;

impl<T> PerProcess<T> {
    /// Makes one in which no process has a value yet.
    pub const fn new() -> Self {
        // SAFETY: null.
        unsafe { PerProcess::of(AtomicPtr::new(ptr::null_mut())) }
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        PerProcess::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sync::{AtomicUsize, Ordering};

    #[test]
    fn process_has_one_value() {
        let values = PerProcess::new();
        assert_eq!(values.get(), None);
        assert_eq!(values.get_or_try_init(|| Err("no")), Err("no"));
        assert_eq!((values.get_or_init(|| 1), values.get_or_init(|| 2)), (&1, &1));
        assert_eq!(format!("{values:?}"), "PerProcess(Some(1))");
    }

    #[test]
    fn of_threads_that_come_at_once_all_get_one_value_and_all_are_dropped() {
        let made = Arc::new(());
        for _ in 0..if cfg!(miri) { 5 } else { 200 } {
            let values = PerProcess::new();
            let addresses: Vec<_> = std::thread::scope(|scope| {
                let get = || std::ptr::from_ref(values.get_or_init(|| Arc::clone(&made))).addr();
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(get)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(addresses.iter().all(|address| *address == addresses[0]));
            assert_eq!(Arc::strong_count(&made), 2);
        }
        assert_eq!(Arc::strong_count(&made), 1);
    }

    /// Says when it is dropped.
    struct Counted<'a>(&'a AtomicUsize);

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn values_of_other_processes_are_passed_over_and_left_alone() {
        let dropped = AtomicUsize::new(0);
        let mut values = PerProcess::new();
        values.get_or_init(|| Counted(&dropped));
        values.as_in_a_child();
        assert!(values.get().is_none());
        values.get_or_init(|| Counted(&dropped));
        drop(values);
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    }
}
