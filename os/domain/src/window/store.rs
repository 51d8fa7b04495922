//! Where a sender stores: the lines of a window in the receiver's memory, and the word that says whether it sleeps.

use beeline_contract_memory::{StorePort, forward_store_port};
use beeline_mmio::{StoreKernel, StoreWindow, fence, membarrier};

use crate::Waker;

/// The lines of a window in a peer's memory. After a message it wakes the peer, if that sleeps.
#[derive(Debug)]
pub struct PeerWindow {
    lines: StoreWindow,
    receiver: Waker,
    /// Whether a kernel was used whose stores may linger in a core.
    has_streamed: bool,
}

impl PeerWindow {
    pub(crate) fn new(lines: StoreWindow, receiver: Waker) -> Self {
        let has_streamed = lines.kernel() != StoreKernel::Cached;
        PeerWindow { lines, receiver, has_streamed }
    }

    /// The kernel that stores its lines.
    pub fn kernel(&self) -> StoreKernel {
        self.lines.kernel()
    }

    /// Stores with another kernel from now on, as [`StoreWindow::set_kernel`].
    ///
    /// # Panics
    /// If this machine lacks the kernel's instructions.
    #[track_caller]
    pub fn set_kernel(&mut self, kernel: StoreKernel) {
        self.lines.set_kernel(kernel);
        self.has_streamed |= kernel != StoreKernel::Cached;
    }
}

impl Drop for PeerWindow {
    /// In an arena the lines are lent anew once nobody has them. Non-temporal stores of a thread that has handed the window on
    /// may still be in a buffer of its core; what empties that is what a sleeper orders senders with.
    fn drop(&mut self) {
        if self.has_streamed && membarrier::global_expedited().is_err() {
            fence::order_all();
        }
    }
}

impl StorePort for PeerWindow {
    forward_store_port! { |this| this.lines; lines, stores, hints, fence, progress }

    #[inline(always)]
    fn wake_receiver(&mut self) {
        self.receiver.wake_if_asleep();
    }
}
