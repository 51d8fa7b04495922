//! Transmit windows and doorbells: the stores of a sender.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

use beeline_contract_link::Doorbell;
use beeline_contract_memory::{StorePort, forward_store_port};
use beeline_mmio::{Flag, StoreWindow, Word};

use crate::event::EventSender;

/// How a store wakes a NIC process that sleeps (docs/design.md, decision 5: the sleeper pays).
#[derive(Clone, Debug)]
pub(crate) struct NicWaker {
    /// In this process's own memory, written by the NIC process before it sleeps.
    pub(crate) waiting: Flag,
    pub(crate) event: Arc<EventSender>,
    /// The NIC process cannot order our stores by membarrier, so we do it by a fence.
    pub(crate) needs_fence: bool,
}

impl NicWaker {
    /// To be called after stores that the NIC should see; one load, unless it sleeps.
    #[inline]
    pub(crate) fn stored(&self) {
        if self.needs_fence {
            // SeqCst: orders the stores before the look at the flag; pairs with the fence in the sleeper's membarrier.
            fence(Ordering::SeqCst);
        } else {
            // Keeps the compiler from moving the look up; the sleeper's membarrier does it for the CPU.
            compiler_fence(Ordering::SeqCst);
        }
        if self.waiting.load() != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        self.waiting.store(0);
        self.event.signal();
    }
}

/// The transmit window of one queue. Dropping it lets another be opened.
#[derive(Debug)]
pub struct ShmWindow {
    pub(crate) store: StoreWindow,
    pub(crate) waker: NicWaker,
    pub(crate) in_use: Arc<AtomicBool>,
}

impl Drop for ShmWindow {
    fn drop(&mut self) {
        // Release: this sender's stores are before those of the next; pairs with the swap in `ShmLink::window`.
        self.in_use.store(false, Ordering::Release);
    }
}

impl StorePort for ShmWindow {
    forward_store_port! { |this| this.store; lines, stores, hints, fence, progress }

    #[inline(always)]
    fn wake_receiver(&mut self) {
        self.waker.stored();
    }
}

/// A doorbell: a word that the NIC process looks at.
#[derive(Debug)]
pub struct ShmDoorbell {
    pub(crate) word: Word,
    pub(crate) waker: NicWaker,
}

impl Doorbell for ShmDoorbell {
    #[inline]
    fn ring(&mut self, value: u64) {
        // Release: what was stored to device-visible memory before is seen by a NIC that sees this value. Pairs with
        // the acquire in `DevicePort::poll`.
        self.word.store_release(value);
        self.waker.stored();
    }
}
