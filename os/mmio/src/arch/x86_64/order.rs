//! Fences and the tick counter of x86-64.

use core::arch::asm;

use crate::sync::{Ordering, fence};

/// Earlier stores, non-temporal and write-combined ones included, become visible before later ones.
#[inline(always)]
pub(crate) fn order_stores() {
    // SAFETY: sfence has no operands and changes no memory; every x86-64 CPU has it.
    unsafe { asm!("sfence", options(nostack, preserves_flags)) }
}

/// Write-combining buffers are emptied: `sfence` waits for them.
#[inline(always)]
pub(crate) fn flush_write_combining() {
    order_stores();
}

/// Cached stores are seen by a device in program order; only the compiler must keep to it.
#[inline(always)]
pub(crate) fn order_dma_stores() {
    // Release: pairs with the device's reads after it saw the doorbell.
    fence(Ordering::Release);
}

/// Loads are made in program order; only the compiler must keep to it.
#[inline(always)]
pub(crate) fn order_dma_loads() {
    // Acquire: pairs with the device's ordered writes.
    fence(Ordering::Acquire);
}

/// The time-stamp counter, read after every earlier instruction and before every later one.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: rdtsc and lfence change no memory; Linux lets user space read the counter.
    unsafe {
        asm!("lfence", "rdtsc", "lfence", out("eax") low, out("edx") high, options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// The time-stamp counter, read at some time near this instruction.
#[inline(always)]
pub(crate) fn unordered_ticks() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: rdtsc changes no memory; Linux lets user space read the counter.
    unsafe {
        asm!("rdtsc", out("eax") low, out("edx") high, options(nostack, nomem, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// The counter's frequency, where the CPU tells it; it is measured here, because hypervisors hide it.
pub(crate) fn ticks_per_second() -> Option<u64> {
    None
}

/// Whether the counter runs at one speed and in sleep states (CPUID leaf 0x8000_0007, EDX bit 8).
pub(crate) fn ticks_are_steady() -> bool {
    const LEAF: u32 = 0x8000_0007;
    core::arch::x86_64::__cpuid(0x8000_0000).eax >= LEAF
        && core::arch::x86_64::__cpuid(LEAF).edx >> 8 & 1 == 1
}
