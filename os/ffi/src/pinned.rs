//! Objects that any thread may use at any time, and that no user pays for: whoever removes one does.
//!
//! A thread that uses an object *pins* its handle: it stores the handle into a word of its own, by a plain store, and then looks
//! whether the slot still has the handle. Whoever removes the object changes the slot first, has the kernel run a barrier on every
//! core that runs this process (`membarrier`), and then looks at the pins of all threads. Either the user sees the change, or the
//! remover sees the pin and waits for its end (`tests/loom_pinned.rs`). So a use has no atomic read-modify-write and no fence, where
//! [`Shared`](crate::Shared) has four of the former; a removal takes some microseconds. Where the kernel refuses `membarrier`, users
//! fence.
//!
//! There is no lock, so that a child of fork waits for no thread that it does not have: what such a thread has withdrawn and not yet
//! freed, or taken an index for, is lost to the child.
//!
//! An object is shown for the time of a closure and never handed out, so that a pin ends in the thread and the frame in which it began.

mod barrier;
mod free;
mod own_word;
mod pins;
mod slot;
mod thread;

use crate::edge::{Failure, Outcome};
use crate::handle::{Handle, HandleVariable, Kind, full};
use crate::status;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64};
use free::Free;
use slot::{Slot, WithdrawError};

/// Objects in a table at the same time. A power of two: a handle's index is masked.
const CAPACITY: usize = if cfg!(miri) { 8 } else { 65_536 };
const _: () = assert!(CAPACITY.is_power_of_two());

/// A table of objects of any thread, which a thread uses without an atomic read-modify-write. Put it into a `static`.
pub struct Pinned<T: 'static> {
    slots: [Slot<T>; CAPACITY],
    free: Free<CAPACITY>,
}

/// What [`Pinned::look_if_short`] does with an object: a method, because that can be inlined always, and a closure cannot.
pub trait ShortLook<T> {
    /// What comes of it.
    type Found;

    /// Looks at the object for some nanoseconds: whoever removes it is not woken when this returns, and finds that out some milliseconds later.
    fn look(self, object: &T) -> Option<Self::Found>;
}

impl<T: Kind + Send + Sync> Default for Pinned<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Kind + Send + Sync> Pinned<T> {
    /// A table without objects.
    pub const fn new() -> Self {
        let slots = [const { Slot::of(AtomicU64::new(0), AtomicPtr::new(core::ptr::null_mut())) }; CAPACITY];
        let before = [const { AtomicU32::new(0) }; CAPACITY];
        Pinned { slots, free: Free::of(AtomicU64::new(0), before, AtomicU32::new(0)) }
    }

    /// Takes an object in.
    ///
    /// # Errors
    /// The table is full.
    pub fn insert(&'static self, value: T) -> Outcome<Handle<T>> {
        let index = self.free.take().ok_or_else(|| full(CAPACITY, T::NAME))?;
        let slot = &self.slots[index as usize];
        let handle = Handle::of(index, slot.last_generation() + 1);
        slot.publish(handle.bits(), Box::new(value));
        Ok(handle)
    }

    /// Shows the object of a handle to `look`. It is not removed meanwhile: whoever closes the handle waits.
    ///
    /// # Errors
    /// The handle names no object.
    #[inline(always)]
    pub fn with<R>(&'static self, handle: Handle<T>, look: impl FnOnce(&T) -> R) -> Outcome<R> {
        let index = handle.index(CAPACITY).ok_or_else(|| handle.refused())?;
        let slot = &self.slots[index];
        thread::pinned(handle.bits(), |pin| slot.look(pin).map(look)).ok_or_else(|| handle.refused())
    }

    /// Shows the object of a handle to `look` as [`Pinned::with`] does, in as few instructions as that takes, none of which is a call. `None` if
    /// the handle names no object, and also where more is to be done, which [`Pinned::with`] does: in a thread that uses its first object, is
    /// using one further up, or must fence.
    #[inline(always)]
    pub fn look_if_short<L: ShortLook<T>>(&'static self, handle: Handle<T>, look: L) -> Option<L::Found> {
        if !handle.has_tag() {
            return None;
        }
        let slot = &self.slots[handle.index_masked(CAPACITY)];
        let pin = thread::short_pin(handle.bits())?;
        look.look(slot.look(&pin)?)
    }

    /// Removes the object of the handle that C keeps in `variable`, and makes that NULL; `None` if there is none. From the beginning
    /// the handle is refused to new users; the call returns when other threads have left the object. `stop` makes those leave it that
    /// wait for something.
    ///
    /// # Errors
    /// The handle names no object; or this thread is using one further up, and two such threads could wait for each other; or the
    /// kernel refuses the barrier that it granted before. Then the object stays, and `stop` was not called.
    pub fn close(
        &'static self,
        variable: &HandleVariable<'_, T>,
        stop: impl FnOnce(&T),
    ) -> Outcome<Option<T>> {
        let Some(handle) = variable.held() else { return Ok(None) };
        let value = self.remove(handle, stop)?;
        variable.clear();
        Ok(Some(value))
    }

    /// Removes the object of a handle that C passes by value, as [`Pinned::close`] does that of a variable.
    ///
    /// # Errors
    /// As [`Pinned::close`]; the handle is NULL.
    pub fn remove(&'static self, handle: Handle<T>, stop: impl FnOnce(&T)) -> Outcome<T> {
        let index = handle.index(CAPACITY).ok_or_else(|| handle.refused())?;
        if thread::has_pins() {
            let why = "a function further up in this thread is using a handle, whose handler called this one";
            return Err(Failure::new(status::BUSY, why));
        }
        let removed = self.slots[index].remove(&thread::PINS, handle.bits(), thread::is_fenced(), stop);
        let value = removed.map_err(|error| match error {
            WithdrawError::NotOpen => handle.refused(),
            WithdrawError::NoBarrier => {
                let why = format!(
                    "the kernel refuses membarrier, which it granted to this process before: the {} stays open",
                    T::NAME
                );
                Failure::new(status::REFUSED, why)
            }
        })?;
        if handle.generation() != u32::MAX {
            self.free.give_back(index as u32);
        }
        Ok(*value)
    }
}

#[cfg(test)]
#[path = "pinned_tests.rs"]
mod tests;
