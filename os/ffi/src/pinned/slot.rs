//! One object of a table: put in, shown to those who pin its handle, and taken out.
//!
//! Loom runs this very file (`tests/loom_pinned.rs`).

use super::pins::{Pinning, Pins};
use crate::sync::{AtomicPtr, AtomicU64, Ordering};

/// The bits of a handle that are its tag, which no handle has as zero.
const TAG_BITS: u64 = 0xff;

/// A place of a table.
pub(super) struct Slot<T> {
    /// The handle of the object; without its tag once that is withdrawn; zero before the first.
    handle: AtomicU64,
    /// From `Box::into_raw`; null without an object.
    value: AtomicPtr<T>,
}

/// Why an object was not taken out. It is where it was.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WithdrawError {
    /// The handle is not that of the slot.
    NotOpen,
    /// The kernel refuses the barrier that users rely on.
    NoBarrier,
}

impl<T> Slot<T> {
    /// A slot that was never used: of zero and null.
    pub(super) const fn of(handle: AtomicU64, value: AtomicPtr<T>) -> Self {
        Slot { handle, value }
    }

    /// The generation of the last handle.
    pub(super) fn last_generation(&self) -> u32 {
        // Relaxed: whoever asks has taken the slot's index, which the last remover gave back after its change (`Free`).
        (self.handle.load(Ordering::Relaxed) >> 32) as u32
    }

    /// Puts an object into a slot that has none. The caller alone has the slot's index.
    pub(super) fn publish(&self, bits: u64, value: Box<T>) {
        // Relaxed: published by the store below.
        self.value.store(Box::into_raw(value), Ordering::Relaxed);
        // Release: pairs with the load in `look`.
        self.handle.store(bits, Ordering::Release);
    }

    /// The object of a pinned handle; `None` if it is withdrawn, or never was here.
    #[inline(always)]
    pub(super) fn look<'a>(&'a self, pin: &'a impl Pinning) -> Option<&'a T> {
        // Acquire: pairs with `publish`.
        if self.handle.load(Ordering::Acquire) != pin.bits() {
            return None;
        }
        // SAFETY: from `Box::into_raw` in `publish`, and freed by `remove`, which withdraws the handle first and then waits until
        // nobody has it pinned. This pin was there before the handle was loaded, in the order of both (the light barrier of the pin
        // and the barrier of the remover), and the load has found the handle: so the remover finds the pin.
        unsafe { self.value.load(Ordering::Relaxed).as_ref() }
    }

    /// Takes the object out: refuses it to new users, tells `stop`, and waits for those who use it. The calling thread uses none.
    pub(super) fn remove(
        &self,
        pins: &Pins,
        bits: u64,
        is_fenced: bool,
        stop: impl FnOnce(&T),
    ) -> Result<Box<T>, WithdrawError> {
        // Of two removers one goes on. Acquire: pairs with `publish`. Its order towards pins is the barrier's.
        let withdrawn = bits & !TAG_BITS;
        self.handle
            .compare_exchange(bits, withdrawn, Ordering::Acquire, Ordering::Relaxed)
            .map_err(|_| WithdrawError::NotOpen)?;
        if !pins.barrier(is_fenced) {
            // Release: as in `publish`, for those who come from here on.
            self.handle.store(bits, Ordering::Release);
            return Err(WithdrawError::NoBarrier);
        }
        // Relaxed: after the exchange above, which pairs with `publish`.
        let value = self.value.load(Ordering::Relaxed);
        // SAFETY: from `publish`; only the one whose exchange succeeded frees it, which is this call, below.
        stop(unsafe { &*value });
        pins.wait_for_ends(bits, is_fenced);
        // SAFETY: from `Box::into_raw` in `publish`; the handle is withdrawn by this call alone and nobody has it pinned any more.
        Ok(unsafe { Box::from_raw(value) })
    }
}
