//! The tuning that windows of this process are opened with: the one that it found last. Never asked on the way of a message.

use std::sync::{Mutex, PoisonError};

use crate::tuning::Tuning;

static IN_USE: Mutex<Option<Tuning>> = Mutex::new(None);

/// Windows that are opened from now on go by `tuning`.
pub(crate) fn take_up(tuning: Tuning) {
    *IN_USE.lock().unwrap_or_else(PoisonError::into_inner) = Some(tuning);
}

/// What this process found last; `None` where it has looked for nothing.
pub(crate) fn in_use() -> Option<Tuning> {
    *IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}
