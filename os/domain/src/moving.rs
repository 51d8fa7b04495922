//! Other numbers for all descriptors of this process that are open, while they are in use.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use beeline_mmio::{PerProcess, ThisProcess};
use rustix::io::Errno;

use crate::numbers::place_descriptors_above;

/// Something that has descriptors.
pub(crate) trait Movable: Send + Sync {
    /// Gives each a number of at least `lowest`. One thread at a time calls it.
    fn move_above(&self, lowest: RawFd) -> io::Result<()>;
}

/// What has descriptors in this process. A child has its own: its parent's threads may have had the lock.
static MOVABLE: PerProcess<Mutex<Movables>> = PerProcess::new();
/// Locked while descriptors are moved.
static MOVING: PerProcess<Mutex<()>> = PerProcess::new();

thread_local! {
    /// The process in which this is a domain's thread; a child forked on it has a thread of its own for that.
    static IS_DOMAIN_THREAD_OF: Cell<Option<ThisProcess>> = const { Cell::new(None) };
}

#[derive(Default)]
struct Movables {
    next: u64,
    all: BTreeMap<u64, Weak<dyn Movable>>,
}

fn movables() -> MutexGuard<'static, Movables> {
    MOVABLE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something that is moved with the others until this is dropped.
#[derive(Debug)]
pub(crate) struct Registered {
    number: u64,
    by: ThisProcess,
}

/// Has `movable` moved with the others.
pub(crate) fn register(movable: Weak<dyn Movable>) -> Registered {
    let mut movables = movables();
    let number = movables.next;
    movables.next += 1;
    movables.all.insert(number, movable);
    Registered { number, by: ThisProcess::get() }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if self.by.is_this() {
            movables().all.remove(&self.number);
        }
    }
}

/// Says that this thread moves descriptors for others, who wait for it.
pub(crate) fn begin_domain_thread() {
    IS_DOMAIN_THREAD_OF.set(Some(ThisProcess::get()));
}

/// Gives every open descriptor of the library a number of at least `lowest`, and those that it opens from now on
/// ([`crate::place_descriptors_above`]). Any thread may call it, whatever others do with domains, connections and windows
/// meanwhile: calls that have begun end under the old number, which is closed after them.
///
/// Three kinds stay where they are. The lock of an offer ends when any descriptor of its file is closed, so it can have no other
/// number ([`crate::Purpose::Claim`]); an offer that is made afterwards has a high one. So do the locks of a registry. And an event whose number the program was told
/// ([`std::os::fd::AsFd`]) may stand in a set of the program's under that number. [`crate::descriptors`] says which they are.
///
/// # Errors
/// The calling thread is a domain's, as a service's is: nothing is moved. The process may not have such numbers, or has none left; a
/// descriptor was lost: what could be moved was.
pub fn move_descriptors_above(lowest: RawFd) -> io::Result<()> {
    // Before the lock: whoever has it may be waiting for this thread.
    if IS_DOMAIN_THREAD_OF.get().is_some_and(ThisProcess::is_this) {
        return Err(Errno::DEADLK.into());
    }
    let _moving = MOVING.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    place_descriptors_above(lowest)?;
    let all: Vec<_> = movables().all.values().filter_map(Weak::upgrade).collect();
    let moved: Vec<_> = all.iter().map(|movable| movable.move_above(lowest)).collect();
    moved.into_iter().collect()
}
