//! Fences and the tick counter of aarch64.

use core::arch::asm;

/// Earlier stores become visible before later ones, to devices too (`dmb oshst`, Linux's `wmb` for devices).
#[inline(always)]
pub(crate) fn order_stores() {
    // SAFETY: a barrier has no operands and changes no memory.
    unsafe { asm!("dmb oshst", options(nostack, preserves_flags)) }
}

/// Waits until earlier stores have left the core's buffers.
#[inline(always)]
pub(crate) fn flush_write_combining() {
    // SAFETY: a barrier has no operands and changes no memory.
    unsafe { asm!("dsb st", options(nostack, preserves_flags)) }
}

/// Earlier loads from and stores to DMA memory are made before a later store: a doorbell, or a count that gives memory
/// back, which must not be seen before the loads that it ends (a store barrier alone would let them pass).
#[inline(always)]
pub(crate) fn order_dma_stores() {
    // SAFETY: a barrier has no operands and changes no memory.
    unsafe { asm!("dmb osh", options(nostack, preserves_flags)) }
}

/// An earlier load of a device's flag is made before later loads of its data.
#[inline(always)]
pub(crate) fn order_dma_loads() {
    // SAFETY: a barrier has no operands and changes no memory.
    unsafe { asm!("dmb oshld", options(nostack, preserves_flags)) }
}

/// The virtual counter, read after every earlier instruction and before every later one.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user space read the virtual counter; a barrier changes no memory.
    unsafe {
        asm!("isb", "mrs {ticks}, cntvct_el0", "isb", ticks = out(reg) ticks, options(nostack, preserves_flags))
    }
    ticks
}

/// The virtual counter, read at some time near this instruction.
#[inline(always)]
pub(crate) fn unordered_ticks() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user space read the virtual counter.
    unsafe {
        asm!("mrs {ticks}, cntvct_el0", ticks = out(reg) ticks, options(nomem, nostack, preserves_flags))
    }
    ticks
}

/// The counter's frequency, as the firmware set it.
pub(crate) fn ticks_per_second() -> Option<u64> {
    let frequency: u64;
    // SAFETY: Linux lets user space read the frequency register.
    unsafe { asm!("mrs {f}, cntfrq_el0", f = out(reg) frequency, options(nomem, nostack, preserves_flags)) }
    (frequency != 0).then_some(frequency)
}

/// The architecture demands a counter of one speed that never stops.
pub(crate) fn ticks_are_steady() -> bool {
    true
}
