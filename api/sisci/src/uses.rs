//! Counts of what was made of an object, which is not removed before that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use beeline_ffi::{Failure, Outcome};

use crate::edge::failure;
use crate::errors;

/// The count of an object that is being removed.
const REMOVED: u32 = u32::MAX;

/// How many objects were made of one. Without a lock, which a child of fork could find locked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses(Arc<AtomicU32>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Use(Uses);

impl Uses {
    /// Counts one more.
    ///
    /// # Errors
    /// The object is being removed.
    pub(crate) fn begin(&self) -> Outcome<Use> {
        // Relaxed, here and below: the count says nothing of other memory.
        let more = |count: u32| (count < REMOVED - 1).then_some(count + 1);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Use(self.clone())),
            Err(_) => Err(removed()),
        }
    }

    /// Lets nothing more be made of the object.
    ///
    /// # Errors
    /// Something was made of it and is still there, or it is being removed already.
    pub(crate) fn end(&self) -> Outcome<()> {
        match self.0.compare_exchange(0, REMOVED, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(REMOVED) => Err(removed()),
            Err(count) => {
                Err(failure(errors::BUSY, format!("{count} objects that were made of it are still there")))
            }
        }
    }
}

#[cold]
fn removed() -> Failure {
    Failure::invalid("it is being removed by another thread")
}

impl Drop for Use {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
