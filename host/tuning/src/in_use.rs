//! The tuning that windows of this process are opened with: the one that it found last. Never asked on the way of a message.

use std::sync::{Mutex, MutexGuard, PoisonError};

use beeline_mmio::PerProcess;

use crate::tuning::Tuning;

/// Not one for all processes: a child of fork would inherit a lock that a thread of its parent held.
static IN_USE: PerProcess<Mutex<Option<Tuning>>> = PerProcess::new();

fn lock() -> MutexGuard<'static, Option<Tuning>> {
    IN_USE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Windows that are opened from now on go by `tuning`.
pub(crate) fn take_up(tuning: Tuning) {
    *lock() = Some(tuning);
}

/// What this process found last; `None` where it has looked for nothing.
pub(crate) fn in_use() -> Option<Tuning> {
    *lock()
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;
    use crate::once::tests::in_child;

    #[test]
    fn child_has_found_nothing_and_waits_for_no_lock_of_its_parent() {
        let held = lock();
        let said = in_child(|| {
            let was_empty = in_use().is_none();
            take_up(Tuning::default());
            u8::from(was_empty && in_use() == Some(Tuning::default()))
        });
        drop(held);
        assert_eq!(said, Some(1));
    }
}
