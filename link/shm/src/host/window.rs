//! Transmit windows and doorbells: the stores of a sender.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

use beeline_contract_link::Doorbell;
use beeline_contract_memory::{Line, StorePort};
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
    #[inline(always)]
    fn lines(&self) -> u32 {
        self.store.lines()
    }

    #[inline(always)]
    fn store_line(&mut self, line: u32, words: &Line) {
        self.store.store_line(line, words);
    }

    #[inline(always)]
    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        self.store.store_word(line, word, value);
    }

    #[inline]
    fn store_lines(&mut self, first_line: u32, bytes: &[u8]) {
        self.store.store_lines(first_line, bytes);
    }

    #[inline(always)]
    fn store_head_line(&mut self, line: u32, header: u64, payload: &[u8]) {
        self.store.store_head_line(line, header, payload);
    }

    #[inline(always)]
    fn store_head_line_unless(&mut self, line: u32, header: u64, payload: &[u8], blank: u64) -> bool {
        self.store.store_head_line_unless(line, header, payload, blank)
    }

    #[inline(always)]
    fn store_padded_line(&mut self, line: u32, bytes: &[u8]) {
        self.store.store_padded_line(line, bytes);
    }

    #[inline(always)]
    fn has_word(&self, payload: &[u8], word: u64) -> bool {
        self.store.has_word(payload, word)
    }

    #[inline(always)]
    fn prefetch_lines(&self) -> u32 {
        self.store.prefetch_lines()
    }

    #[inline(always)]
    fn prefetch(&mut self, line: u32) {
        self.store.prefetch(line);
    }

    #[inline]
    fn fence(&mut self) {
        self.store.fence();
    }

    #[inline]
    fn progress(&mut self) {
        self.store.progress();
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
