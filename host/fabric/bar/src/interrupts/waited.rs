//! An interrupt of this member, as threads take from it and wait for it. Its lock is held for one look.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use beeline_contract_memory::WaitPolicy;
use beeline_fabric::{InterruptKind, MemberNumber, PairId, Place, Refusal, Take};

use super::inbox::Inbox;
use crate::space::Space;
use crate::waiting::wait_with;
use crate::words::View;

#[derive(Debug)]
pub(crate) struct Waited {
    pub(crate) space: Arc<Space>,
    /// The slot of this member.
    pub(crate) own: usize,
    what: Mutex<What>,
    is_removed: AtomicBool,
}

/// What there is to be taken.
#[derive(Debug)]
pub(crate) enum What {
    Counts(Take<View>),
    Messages(Inbox),
}

impl What {
    pub(crate) fn new(kind: InterruptKind, owner: MemberNumber, place: Place) -> Self {
        match kind {
            InterruptKind::Plain => What::Counts(Take::new(place, false)),
            InterruptKind::Counting => What::Counts(Take::new(place, true)),
            InterruptKind::Data => What::Messages(Inbox::new(owner, place)),
        }
    }
}

impl Waited {
    pub(crate) fn new(space: &Arc<Space>, own: usize, what: What) -> Self {
        Waited { space: Arc::clone(space), own, what: Mutex::new(what), is_removed: AtomicBool::new(false) }
    }

    /// Takes in the member of a slot, which may trigger it.
    pub(crate) fn admit(&self, pair: PairId, slot: usize) {
        match &mut *self.lock() {
            What::Counts(take) => take.admit(pair, View::new(self.space.uses(slot, self.own))),
            What::Messages(inbox) => inbox.admit(pair, slot),
        }
    }

    /// Learns that a member is gone. What it has triggered is still taken.
    pub(crate) fn gone(&self, pair: PairId) {
        match &mut *self.lock() {
            What::Counts(take) => take.retain(|other| other != pair),
            What::Messages(inbox) => inbox.gone(pair),
        }
    }

    /// Ends every wait: nothing is taken after this. Whether it was removed before.
    pub(crate) fn remove(&self) -> bool {
        // In the hold of the lock: the sender may give the window to another interrupt when this one is not on the board any more.
        let _what = self.lock();
        // Release: pairs with the load in `try_take`.
        self.is_removed.swap(true, Ordering::Release)
    }

    /// Waits until `take` finds something, `timeout` at most; at zero it looks once.
    pub(crate) fn wait<T>(
        &self,
        policy: WaitPolicy,
        timeout: Option<Duration>,
        mut take: impl FnMut(&mut What) -> Option<T>,
    ) -> Result<T, Refusal> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let found = wait_with(policy, until, |_| {
            let found = self.try_take(&mut take)?;
            if found.is_none() && timeout == Some(Duration::ZERO) {
                return Err(Refusal::Timeout);
            }
            Ok(found)
        })?;
        found.ok_or(Refusal::Timeout)
    }

    /// Takes what has come, without waiting.
    pub(crate) fn try_take<T>(
        &self,
        take: impl FnOnce(&mut What) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let mut what = self.lock();
        // Acquire: pairs with the store in `remove`.
        if self.is_removed.load(Ordering::Acquire) {
            return Err(Refusal::Cancelled);
        }
        if !self.space.is_intact() {
            return Err(Refusal::NoLinkAccess);
        }
        Ok(take(&mut what))
    }

    fn lock(&self) -> MutexGuard<'_, What> {
        self.what.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use beeline_fabric::Slot;
    use beeline_mmio::OnLoss;

    use super::*;
    use crate::memory::BarMemory;

    /// Another thread removes it while one takes; it has much time to do so.
    #[test]
    fn interrupt_is_not_removed_while_somebody_takes_from_it() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("bar");
        BarMemory::make_file(&path, 4 << 20, 2).unwrap();
        let space = Space::open(&BarMemory::File(path), 2, OnLoss::Fatal).unwrap();
        let (owner, place) = (MemberNumber(7), Place { slot: Slot(0), incarnation: 1 });
        let waited = &Waited::new(&space, 0, What::new(InterruptKind::Data, owner, place));
        std::thread::scope(|scope| {
            let (begins, begun) = std::sync::mpsc::channel();
            let removal = scope.spawn(move || {
                begun.recv().unwrap();
                waited.remove()
            });
            let taken = waited.try_take(|_| {
                begins.send(()).unwrap();
                let is_removed = || {
                    std::thread::yield_now();
                    waited.is_removed.load(Ordering::Relaxed)
                };
                Some((0..100_000).any(|_| is_removed()))
            });
            assert_eq!(taken, Ok(Some(false)));
            assert!(!removal.join().unwrap() && waited.remove());
        });
        assert_eq!(waited.try_take(|_| Some(())), Err(Refusal::Cancelled));
    }
}
