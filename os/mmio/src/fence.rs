//! Fences, named by what they are for.
//!
//! The product's own path needs none of the first two: they belong to the fence policies it is compared with, and to
//! the code that waits for stores to be out of the core. After rdma-core's `udma_barrier.h`.

use crate::arch;
use crate::sync::{Ordering, fence};

/// Makes every earlier store of this core, non-temporal and write-combined ones included, visible before any later
/// one: the fence of the fence policies (`sfence`, `dmb oshst`). About 90 ns after write-combined stores.
#[inline(always)]
pub fn order_stores() {
    arch::order_stores();
}

/// Empties the core's write-combining buffers, so that nothing stored so far lingers in them (`sfence`, `dsb st`).
#[inline(always)]
pub fn flush_write_combining() {
    arch::flush_write_combining();
}

/// Orders earlier cached loads and stores of DMA memory before a later doorbell, or before a count that gives memory
/// back (Linux: `dma_wmb` for the stores alone). No instruction on x86-64.
#[inline(always)]
pub fn order_dma_stores() {
    arch::order_dma_stores();
}

/// Orders an earlier load of a word that a device wrote last before later loads of what it wrote first (Linux:
/// `dma_rmb`). No instruction on x86-64.
#[inline(always)]
pub fn order_dma_loads() {
    arch::order_dma_loads();
}

/// Orders everything before it against everything after it, loads after stores included: what a sender that has not
/// registered for the membarrier pays between its stores and its look at the receiver's flag.
#[inline(always)]
pub fn order_all() {
    // x86 non-temporal stores are not ordered by the locked instruction that a SeqCst fence may become.
    arch::order_stores();
    // Sequentially consistent: pairs with the sleeper's membarrier in `membarrier`.
    fence(Ordering::SeqCst);
}
