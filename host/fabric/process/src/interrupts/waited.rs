//! An interrupt of this member, as threads take from it and wait for it.
//!
//! It has a lock of its own, which is held for one look. The lock of the member's tables is not taken to wait or to take.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use beeline_contract_memory::WaitPolicy;
use beeline_fabric::{
    Bell, InterruptKind, MemberNumber, PairId, Place, Refusal, Sleepers, Take, ring, rouse,
};
use beeline_mmio::Flag;

use super::inbox::{Inbox, User};
use crate::bell::{FlagBell, MAX_SLEEP};
use crate::words::View;

/// How many looks pass between two looks at the clock.
const LOOKS_A_CLOCK: u32 = 64;

#[derive(Debug)]
pub(crate) struct Waited {
    flag: Flag,
    /// What threads sleep on that wait for one of several things.
    watchers: Flag,
    taking: Mutex<Taking>,
    is_removed: AtomicBool,
}

#[derive(Debug)]
struct Taking {
    sleepers: Sleepers,
    what: What,
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
    pub(crate) fn new(flag: Flag, watchers: Flag, what: What) -> Self {
        let taking = Mutex::new(Taking { sleepers: Sleepers::default(), what });
        Waited { flag, watchers, taking, is_removed: AtomicBool::new(false) }
    }

    /// The bell, as somebody has it who triggers.
    fn bell(&self) -> FlagBell {
        FlagBell::of_triggerer(self.flag.clone(), self.watchers.clone(), true)
    }

    /// Takes in a member that may trigger it.
    pub(crate) fn admit(&self, pair: PairId, user: &Arc<User>) {
        match &mut self.lock().what {
            What::Counts(take) => take.admit(pair, user.uses.clone()),
            What::Messages(inbox) => inbox.admit(pair, Arc::clone(user)),
        }
    }

    /// Learns that a member is gone. What it has triggered is still taken.
    pub(crate) fn gone(&self, pair: PairId) {
        match &mut self.lock().what {
            What::Counts(take) => take.retain(|other| other != pair),
            What::Messages(inbox) => inbox.gone(pair),
        }
    }

    /// Wakes who sleeps, after [`Waited::gone`]: whoever is gone may have been killed after it had triggered, and also after it had taken the
    /// flag down. Of a flag that is another interrupt's by now nobody loses a trigger.
    pub(crate) fn wake(&self) {
        let bell = self.bell();
        if !rouse(&bell) {
            bell.wake();
            bell.wake_watchers();
        }
    }

    /// Ends every wait, and leaves the flag to the next interrupt of the entry. Whether it was removed before.
    pub(crate) fn remove(&self) -> bool {
        let taking = self.lock();
        // Release: pairs with the load in `is_removed`.
        let was_removed = self.is_removed.swap(true, Ordering::Release);
        drop(taking);
        // Pairs with the barrier of a sleeper: either its last look sees the removal, or the flag is seen here.
        fence(Ordering::SeqCst);
        rouse(&self.bell());
        was_removed
    }

    pub(crate) fn is_removed(&self) -> bool {
        // Acquire: pairs with the store in `remove`.
        self.is_removed.load(Ordering::Acquire)
    }

    /// Triggers an interrupt without data, without anybody's count.
    pub(crate) fn raise(&self) -> Result<(), Refusal> {
        if self.is_removed() {
            return Err(Refusal::IllegalParameter);
        }
        if let What::Counts(take) = &mut self.lock().what {
            take.raise();
        }
        ring(&self.bell());
        Ok(())
    }

    /// Has its flag watched, until [`Waited::unwatch`].
    pub(crate) fn watch(&self) {
        self.lock().sleepers.watch();
    }

    pub(crate) fn unwatch(&self) {
        let bell = self.bell();
        self.take_part(|sleepers| sleepers.unwatch(&bell));
    }

    /// Puts the mark of the flag up, if it is down.
    pub(crate) fn arm(&self) {
        let bell = self.bell();
        self.take_part(|sleepers| sleepers.arm(&bell));
    }

    /// Takes what has come, without waiting.
    pub(crate) fn try_take<T>(
        &self,
        mut take: impl FnMut(&mut What) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        self.look(&mut take)
    }

    /// Forgets what has come of an interrupt without data.
    pub(crate) fn forget(&self) {
        if let What::Counts(take) = &mut self.lock().what {
            take.forget();
        }
    }

    /// Waits until `take` finds something.
    pub(crate) fn wait<T>(
        &self,
        policy: WaitPolicy,
        timeout: Option<Duration>,
        mut take: impl FnMut(&mut What) -> Option<T>,
    ) -> Result<T, Refusal> {
        if self.is_removed() {
            return Err(Refusal::IllegalParameter);
        }
        if let Some(taken) = self.look(&mut take)? {
            return Ok(taken);
        }
        if timeout == Some(Duration::ZERO) {
            return Err(Refusal::Timeout);
        }
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        match self.poll(policy, until, &mut take)? {
            Some(taken) => Ok(taken),
            None => self.sleep(policy.sleep.unwrap_or(MAX_SLEEP), until, &mut take),
        }
    }

    /// Looks over and over, as the policy says; `None` when it says to sleep.
    fn poll<T>(
        &self,
        policy: WaitPolicy,
        until: Option<Instant>,
        take: &mut impl FnMut(&mut What) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let before_sleep = u64::from(policy.spins) + u64::from(policy.yields);
        let mut looks = 0_u64;
        while looks < before_sleep || policy.sleep.is_none() {
            let is_yielding = looks >= u64::from(policy.spins);
            looks += 1;
            if is_yielding {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
            if let Some(taken) = self.look(take)? {
                return Ok(Some(taken));
            }
            if is_yielding || looks.is_multiple_of(u64::from(LOOKS_A_CLOCK)) {
                left(until)?;
            }
        }
        Ok(None)
    }

    /// Sleeps until something comes, at most `longest` at a time.
    fn sleep<T>(
        &self,
        longest: Duration,
        until: Option<Instant>,
        take: &mut impl FnMut(&mut What) -> Option<T>,
    ) -> Result<T, Refusal> {
        loop {
            let bell = FlagBell::of_sleeper(self.flag.clone(), longest.min(left(until)?));
            let announced = self.take_part(|sleepers| sleepers.announce(&bell)).ok_or(Refusal::Cancelled)?;
            announced.order(&bell);
            let found = self.look(take);
            if matches!(found, Ok(None)) {
                announced.park(&bell);
            }
            self.take_part(|sleepers| sleepers.withdraw(announced, &bell));
            if let Some(taken) = found.transpose().or_else(|| self.look(take).transpose()) {
                return taken;
            }
        }
    }

    /// Does something with the sleepers and the flag, which are this interrupt's until it is removed.
    fn take_part<T>(&self, act: impl FnOnce(&mut Sleepers) -> T) -> Option<T> {
        let mut taking = self.lock();
        (!self.is_removed()).then(|| act(&mut taking.sleepers))
    }

    #[inline]
    fn look<T>(&self, take: &mut impl FnMut(&mut What) -> Option<T>) -> Result<Option<T>, Refusal> {
        if self.is_removed() {
            return Err(Refusal::Cancelled);
        }
        Ok(take(&mut self.lock().what))
    }

    fn lock(&self) -> MutexGuard<'_, Taking> {
        self.taking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is left of the time to wait.
fn left(until: Option<Instant>) -> Result<Duration, Refusal> {
    let Some(until) = until else { return Ok(Duration::MAX) };
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Refusal::Timeout) } else { Ok(left) }
}
