//! Objects of one thread at a time, which is not let in again before it is done.
//!
//! An object belongs to the thread that uses it first, until that thread releases it or ends. Two comparisons tell all
//! that there is to know of a handle: the slot's handle is the one that C passed, whole, and the slot's owner is the
//! calling thread. Whoever is inside has taken the object's pointer out of the slot, so that the next finds none. The
//! usual case has no atomic read-modify-write: that would wait for every store on its way into a window.

use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::edge::{Failure, Outcome};
use crate::handle::{Handle, HandleVariable, Kind, Vacancies};
use crate::status;
use crate::thread::{self, NOBODY, Thread};

/// Objects in a table at the same time. A power of two: a handle's index is masked, which needs no branch.
const CAPACITY: usize = if cfg!(miri) { 8 } else { 16_384 };
const _: () = assert!(CAPACITY.is_power_of_two());

/// A table of objects of one thread at a time. Put it into a `static`.
pub struct Owned<T: 'static> {
    slots: [Slot<T>; CAPACITY],
    vacancies: Mutex<Vacancies>,
}

/// As large as two cache lines that are fetched together: neighbours belong to different threads.
#[repr(align(128))]
struct Slot<T> {
    /// The handle of the object, or of the last one if none is here; zero before the first.
    handle: AtomicU64,
    /// The owner's number; [`NOBODY`] if there is no owner or no object.
    owner: AtomicU64,
    /// From `Box::into_raw`; NULL while a function is inside, or without an object.
    value: AtomicPtr<T>,
    claims: Mutex<Claims>,
}

/// What is looked at when a thread does not own a slot already.
struct Claims {
    is_open: bool,
    thread: Option<Thread>,
}

/// A slot that has been found for a handle, which may be closed by now.
pub struct SlotRef<T: 'static> {
    slot: &'static Slot<T>,
    handle: Handle<T>,
}

impl<T> Clone for SlotRef<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SlotRef<T> {}

/// Leave to use an object, until it is dropped.
pub struct Pass<T: 'static> {
    slot: &'static Slot<T>,
    value: *mut T,
    caller: Caller,
}

/// The number of the calling thread. It stays in its thread.
#[derive(Clone, Copy, Debug)]
pub struct Caller(u64, PhantomData<*const ()>);

impl Caller {
    #[inline(always)]
    fn this() -> Self {
        Caller(thread::number(), PhantomData)
    }
}

impl<T> Pass<T> {
    /// The thread that has this pass, for [`SlotRef::enter_as`].
    #[inline(always)]
    pub fn caller(&self) -> Caller {
        self.caller
    }
}

impl<T> Drop for Pass<T> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: pairs with the load in `claim`, for a pass that is dropped after its thread is said to have ended.
        self.slot.value.store(self.value, Ordering::Release);
    }
}

impl<T> Deref for Pass<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: from `Box::into_raw` in `insert`, freed by `remove` alone, which has a pass of its own. This pass is
        // the only one: it took the pointer out of the slot when it was made (`SlotRef::enter_or`), and puts it back
        // when it is dropped.
        unsafe { &*self.value }
    }
}

impl<T> DerefMut for Pass<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { &mut *self.value }
    }
}

impl<T: Kind + Send> Default for Owned<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Kind + Send> Owned<T> {
    /// A table without objects.
    pub const fn new() -> Self {
        let slots = [const {
            Slot {
                handle: AtomicU64::new(0),
                owner: AtomicU64::new(NOBODY),
                value: AtomicPtr::new(core::ptr::null_mut()),
                claims: Mutex::new(Claims { is_open: false, thread: None }),
            }
        }; CAPACITY];
        Owned { slots, vacancies: Mutex::new(Vacancies::new()) }
    }

    /// Takes an object in, which belongs to no thread yet.
    ///
    /// # Errors
    /// The table is full.
    pub fn insert(&'static self, value: T) -> Outcome<Handle<T>> {
        let index = self.vacancies().take(CAPACITY, T::NAME)?;
        let slot = &self.slots[index as usize];
        let mut claims = slot.claims();
        // Relaxed, here and below: who claims the slot passes the lock after this.
        let generation = (slot.handle.load(Ordering::Relaxed) >> 32) as u32 + 1;
        let handle = Handle::of(index, generation);
        slot.handle.store(handle.bits(), Ordering::Relaxed);
        slot.value.store(Box::into_raw(Box::new(value)), Ordering::Relaxed);
        *claims = Claims { is_open: true, thread: None };
        Ok(handle)
    }

    /// The slot of a handle, whatever C passed as one: entering it tells whether the object is there.
    #[inline(always)]
    pub fn slot(&'static self, handle: Handle<T>) -> SlotRef<T> {
        SlotRef { slot: &self.slots[handle.index_masked(CAPACITY)], handle }
    }

    /// Lets the calling thread in, if the object is its own or nobody's.
    ///
    /// # Errors
    /// The handle names no object, or one of another thread, or one that is in use further up in this thread.
    #[inline(always)]
    pub fn enter(&'static self, handle: Handle<T>) -> Outcome<Pass<T>> {
        // Before all else: what is computed before this call would have to be kept over it.
        let caller = Caller::this();
        self.slot(handle).enter_as(caller)
    }

    /// Lets the calling thread in, if the object is its own already.
    ///
    /// # Errors
    /// As [`Owned::enter`]; the object is nobody's.
    #[inline(always)]
    pub fn enter_own(&'static self, handle: Handle<T>) -> Outcome<Pass<T>> {
        let caller = Caller::this();
        self.slot(handle).enter_or(caller, SlotRef::refuse)
    }

    /// Gives the object up: another thread may use it.
    ///
    /// # Errors
    /// As [`Owned::enter`].
    pub fn release(&'static self, handle: Handle<T>) -> Outcome<()> {
        let pass = self.enter(handle)?;
        let slot = pass.slot;
        let mut claims = slot.claims();
        drop(pass);
        // Relaxed: the next owner passes the lock after this.
        slot.owner.store(NOBODY, Ordering::Relaxed);
        claims.thread = None;
        Ok(())
    }

    /// Takes the object out and makes its handle invalid for ever.
    ///
    /// # Errors
    /// As [`Owned::enter`]: then it stays.
    pub fn remove(&'static self, handle: Handle<T>) -> Outcome<T> {
        let pass = self.enter(handle)?;
        let (slot, value) = (pass.slot, pass.value);
        // Its drop would put the object back.
        core::mem::forget(pass);
        let mut claims = slot.claims();
        *claims = Claims { is_open: false, thread: None };
        // Relaxed: as in `release`.
        slot.owner.store(NOBODY, Ordering::Relaxed);
        drop(claims);
        self.vacancies().give_back(handle.index_masked(CAPACITY), handle.generation());
        // SAFETY: from `Box::into_raw` in `insert`; the pass took it out of the slot and is gone, so this is its only
        // use.
        Ok(*unsafe { Box::from_raw(value) })
    }

    /// Removes the object of the handle that C keeps in `variable`, and makes that NULL; `None` if there is none.
    ///
    /// # Errors
    /// As [`Owned::remove`].
    pub fn close(&'static self, variable: &HandleVariable<'_, T>) -> Outcome<Option<T>> {
        let Some(handle) = variable.held() else { return Ok(None) };
        let value = self.remove(handle)?;
        variable.clear();
        Ok(Some(value))
    }

    fn vacancies(&self) -> MutexGuard<'_, Vacancies> {
        self.vacancies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Slot<T> {
    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Kind> SlotRef<T> {
    /// The handle that this was found for.
    #[inline(always)]
    pub fn handle(self) -> Handle<T> {
        self.handle
    }

    /// Does as [`Owned::enter`], without finding the slot and without asking which thread calls.
    ///
    /// # Errors
    /// As [`Owned::enter`].
    #[inline(always)]
    pub fn enter_as(self, caller: Caller) -> Outcome<Pass<T>> {
        self.enter_or(caller, Self::claim)
    }

    #[inline(always)]
    fn enter_or(self, mut caller: Caller, not_own: impl FnOnce(Self) -> Outcome<Caller>) -> Outcome<Pass<T>> {
        let SlotRef { slot, handle } = self;
        // Relaxed, here and below: a thread finds its own number only where it was written by itself, and from then on
        // until it releases the slot nobody else writes there.
        let is_own = slot.handle.load(Ordering::Relaxed) == handle.bits()
            && slot.owner.load(Ordering::Relaxed) == caller.0;
        let mut value = if is_own { slot.value.load(Ordering::Relaxed) } else { core::ptr::null_mut() };
        if value.is_null() {
            caller = not_own(self)?;
            value = slot.value.load(Ordering::Relaxed);
        }
        slot.value.store(core::ptr::null_mut(), Ordering::Relaxed);
        Ok(Pass { slot, value, caller })
    }

    /// Makes the calling thread the owner of a slot that has none.
    #[cold]
    #[inline(never)]
    fn claim(self) -> Outcome<Caller> {
        let SlotRef { slot, handle } = self;
        let thread = Thread::current()?;
        let mut claims = slot.claims();
        let has_ended = claims.thread.as_ref().is_none_or(Thread::has_ended);
        // Acquire: pairs with the drop of a pass. A pass that its thread has left behind is inside for ever.
        let is_free = has_ended && !slot.value.load(Ordering::Acquire).is_null();
        // Relaxed: the lock orders it.
        if !claims.is_open || slot.handle.load(Ordering::Relaxed) != handle.bits() || !is_free {
            return Err(self.refused(&claims));
        }
        claims.thread = Some(thread);
        let caller = Caller::this();
        // Relaxed: only this thread looks for this number.
        slot.owner.store(caller.0, Ordering::Relaxed);
        Ok(caller)
    }

    #[cold]
    #[inline(never)]
    fn refuse(self) -> Outcome<Caller> {
        Err(self.refused(&self.slot.claims()))
    }

    /// Why a handle does not let the calling thread in.
    fn refused(self, claims: &Claims) -> Failure {
        let SlotRef { slot, handle } = self;
        // Relaxed, here and below: the lock, which `claims` shows to be held, orders it; and the owner is this thread
        // or not.
        if !claims.is_open || slot.handle.load(Ordering::Relaxed) != handle.bits() {
            return handle.refused();
        }
        let is_own = slot.owner.load(Ordering::Relaxed) == Caller::this().0;
        if is_own && slot.value.load(Ordering::Relaxed).is_null() {
            let why =
                "the handle is in use by a function further up in this thread, whose handler called this one";
            return Failure::new(status::BUSY, why);
        }
        let why = "the handle belongs to another thread until that one has left it and releases it or ends";
        Failure::new(status::WRONG_THREAD, why)
    }
}

#[cfg(test)]
#[path = "owned_tests.rs"]
mod tests;
