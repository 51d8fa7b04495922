//! Threads that wait for one of several things sleep on one flag of the member. Rings of peers rouse it, and triggers of interrupts that are
//! watched (`bell.rs` of `host/fabric`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use beeline_fabric::{Sleepers, ring};
use beeline_mmio::Flag;

use crate::bell::{FlagBell, MAX_SLEEP};
use crate::interrupts::waited::Waited;

#[derive(Debug)]
pub(crate) struct Several {
    flag: Flag,
    sleepers: Mutex<Sleepers>,
    /// Interrupts whose flags are marked before each sleep.
    watched: Mutex<Vec<Arc<Waited>>>,
}

impl Several {
    pub(crate) fn new(flag: Flag) -> Self {
        Several { flag, sleepers: Mutex::default(), watched: Mutex::default() }
    }

    pub(crate) fn flag(&self) -> &Flag {
        &self.flag
    }

    pub(crate) fn wake_all(&self) {
        ring(&FlagBell::of_rung(self.flag.clone()));
    }

    pub(crate) fn watch(&self, waited: &Arc<Waited>) {
        waited.watch();
        lock(&self.watched).push(Arc::clone(waited));
    }

    pub(crate) fn unwatch(&self, waited: &Arc<Waited>) {
        let mut watched = lock(&self.watched);
        let at = watched.iter().position(|it| Arc::ptr_eq(it, waited));
        let last = at.map(|at| watched.swap_remove(at));
        drop(watched);
        waited.unwatch();
        drop(last);
    }

    /// Sleeps once, at most `left`, unless a last look finds something; `rest` says after it how long nothing is to be done.
    pub(crate) fn sleep<T>(
        &self,
        left: Option<Duration>,
        look: &mut impl FnMut() -> Option<T>,
        rest: impl FnOnce() -> Option<Duration>,
    ) -> Option<T> {
        let bell = FlagBell::of_sleeper(self.flag.clone(), left.unwrap_or(MAX_SLEEP));
        let announced = lock(&self.sleepers).announce(&bell);
        // After the announcement: whoever takes a mark down sees that somebody sleeps.
        lock(&self.watched).iter().for_each(|waited| waited.arm());
        announced.order(&bell);
        let found = look();
        if found.is_none() {
            announced.park(&bell.clone().at_most(rest().unwrap_or(MAX_SLEEP)));
        }
        lock(&self.sleepers).withdraw(announced, &bell);
        found
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
