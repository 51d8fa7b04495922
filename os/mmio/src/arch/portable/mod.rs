//! The portable twin: relaxed atomic words and the clock of the standard library.
//!
//! For Miri, and for instruction sets that have no folder of their own.

mod pieces;

use std::sync::OnceLock;
use std::time::Instant;

use beeline_contract_memory::{GROUP_LINES, Line};

use crate::arch::pieces::{Out, Pieces};
use crate::arch::{LineKernel, kernel_port, words};
use crate::sync::{Ordering, fence};
use crate::{LINE_BYTES, StoreKernel};

pub(crate) use crate::arch::PortableScan as ScanKernel;

crate::arch::kernels! {
    /// Eight relaxed atomic stores.
    Cached => Cached,
}

/// # Safety
/// `line` is 64 mapped, writable bytes, aligned to 8, only accessed by atomics and asm.
#[inline(always)]
unsafe fn store_line(line: *mut u8, words: &Line) {
    for (i, value) in words.iter().enumerate() {
        // SAFETY: inside the line, and aligned because the line is.
        unsafe { words::store_word(line.wrapping_add(i * 8), *value) };
    }
}

/// Whether [`touch`] does anything.
pub(crate) const TOUCHES: bool = false;

/// Does nothing: what others own is not to be accessed, not even by an atomic operation that changes no bit.
///
/// # Safety
/// None is needed; where there is asm for it, `byte` is mapped and writable.
#[inline(always)]
pub(crate) unsafe fn touch(_byte: *mut u8) {}

pub(crate) struct Cached;

impl LineKernel for Cached {
    #[inline(always)]
    unsafe fn words(line: *mut u8, words: &Line) {
        // SAFETY: `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only
        // (`KernelLines::new`).
        unsafe { store_line(line, words) }
    }

    #[inline(always)]
    unsafe fn bytes(line: *mut u8, bytes: &[u8; 64]) {
        // SAFETY: `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only
        // (`KernelLines::new`).
        unsafe { store_line(line, &words::words_of(bytes)) }
    }

    #[inline(always)]
    unsafe fn word(word: *mut u8, value: u64) {
        // SAFETY: `word` is 8 mapped, writable bytes, aligned to 8 and accessed by atomics and asm only
        // (`KernelLines::word`).
        unsafe { words::store_word(word, value) }
    }
}

kernel_port! { Cached }

/// Why a kernel cannot be run here.
pub(crate) fn lacks(kernel: StoreKernel) -> Option<&'static str> {
    match kernel {
        StoreKernel::Cached => None,
        StoreKernel::Stnp | StoreKernel::St64b => Some("the aarch64 instruction set"),
        _ => Some("the x86-64 instruction set"),
    }
}

/// The kernel behind a name.
pub(crate) fn kernel(name: StoreKernel) -> Option<Kernel> {
    lacks(name).is_none().then_some(Kernel::Cached)
}

/// The only kernel.
#[cfg(test)]
pub(crate) fn all_kernels() -> Vec<Kernel> {
    vec![Kernel::Cached]
}

/// How a port loads lines: eight word loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadKernel {
    /// Eight word loads.
    Words,
}

impl LoadKernel {
    /// The only one.
    pub(crate) fn best() -> Self {
        LoadKernel::Words
    }

    /// The only one.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        vec![LoadKernel::Words]
    }

    /// The line and a bit for each word that is not `blank`.
    ///
    /// # Safety
    /// `line` is 64 mapped bytes, aligned to 64, only accessed by atomics and asm.
    #[inline(always)]
    pub(crate) unsafe fn arrived(self, line: *const u8, blank: u64) -> (u8, Line) {
        // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`LoadWindow::line`).
        let words = unsafe { self.line(line) };
        (words::differing(&words, blank), words)
    }

    /// As [`LoadKernel::arrived`], the line to `words`.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`].
    #[inline(always)]
    pub(crate) unsafe fn arrived_into(self, line: *const u8, blank: u64, words: &mut Line) -> u8 {
        // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`LoadWindow::line`).
        let (mask, found) = unsafe { self.arrived(line, blank) };
        *words = found;
        mask
    }

    /// As [`LoadKernel::arrived`] with word 0 only.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`].
    #[inline(always)]
    pub(crate) unsafe fn arrived_head(self, line: *const u8, blank: u64) -> (u8, u64) {
        // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`LoadWindow::line`).
        let (mask, words) = unsafe { self.arrived(line, blank) };
        (mask, words[0])
    }

    /// As [`LoadKernel::arrived`] without the line.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`].
    #[inline(always)]
    pub(crate) unsafe fn arrived_words(self, line: *const u8, blank: u64) -> u8 {
        // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`LoadWindow::line`).
        unsafe { self.arrived(line, blank) }.0
    }

    /// Bit 63 of each word, bit i for word i, and word 0.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`].
    #[inline(always)]
    pub(crate) unsafe fn tops(self, line: *const u8) -> (u8, u64) {
        // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`ReadWindow::line`).
        let words = unsafe { self.line(line) };
        (words::tops(&words), words[0])
    }

    /// The line.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`].
    #[inline(always)]
    pub(crate) unsafe fn line(self, line: *const u8) -> Line {
        // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`LoadWindow::line`).
        unsafe { words::load_line(line) }
    }

    /// Copies a line to `out`, as bytes in memory order.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`]; `out` is 64 writable bytes of our own, at any alignment.
    #[inline(always)]
    pub(crate) unsafe fn copy(self, line: *const u8, out: *mut u8) {
        // SAFETY: a line that this function may load, aligned to 64, and 64 bytes of our own.
        unsafe { Out::lines(line.cast_mut(), out, 1) };
    }

    /// Copies lines to `out`, as bytes in memory order.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`], for as many lines as `out` has.
    #[inline]
    pub(crate) unsafe fn copy_lines(self, first: *const u8, out: &mut [[u8; LINE_BYTES]]) {
        for (ahead, out) in out.iter_mut().enumerate() {
            // SAFETY: a line of those that this function may load, and one of our own.
            unsafe { self.copy(first.wrapping_add(ahead * LINE_BYTES), out.as_mut_ptr()) };
        }
    }

    /// Whether no word of a group of lines equals `blank`.
    ///
    /// # Safety
    /// From `group`, aligned to 64, on there are [`GROUP_LINES`] mapped lines, only accessed by atomics and asm.
    #[inline(always)]
    pub(crate) unsafe fn arrived_group(self, group: *const u8, blank: u64) -> bool {
        (0..GROUP_LINES as usize).rev().all(|ahead| {
            // SAFETY: a line of the group, which is mapped and accessed by atomics and asm only (`LoadWindow::group`).
            unsafe { self.arrived_words(group.wrapping_add(ahead * LINE_BYTES), blank) == 0xff }
        })
    }

    /// Stores `word` into every word of a group of lines.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived_group`], and writable.
    #[inline(always)]
    pub(crate) unsafe fn fill_group(self, group: *mut u8, word: u64) {
        for ahead in 0..GROUP_LINES as usize {
            // SAFETY: a line of the group, which is mapped, writable and accessed by atomics and asm only
            // (`LoadWindow::group`).
            unsafe { self.fill(group.wrapping_add(ahead * LINE_BYTES), word) };
        }
    }

    /// Stores `word` into every word of a line.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`], and writable.
    #[inline(always)]
    pub(crate) unsafe fn fill(self, line: *mut u8, word: u64) {
        // SAFETY: `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only
        // (`LoadWindow::line`).
        unsafe { store_line(line, &[word; 8]) }
    }
}

/// There is no portable prefetch.
#[inline(always)]
pub(crate) fn prefetch(_line: *const u8) {}

#[inline(always)]
pub(crate) fn prefetch_to_write(_line: *const u8) {}

/// Earlier stores become visible before later ones.
#[inline(always)]
pub(crate) fn order_stores() {
    // Sequentially consistent: pairs with whatever the receiver does; there is nothing weaker that is portable.
    fence(Ordering::SeqCst);
}

/// There are no portable write-combining buffers.
#[inline(always)]
pub(crate) fn flush_write_combining() {
    order_stores();
}

/// Earlier loads from and stores to DMA memory are made before a later doorbell.
#[inline(always)]
pub(crate) fn order_dma_stores() {
    // Sequentially consistent: pairs with the device's reads after it saw the doorbell.
    fence(Ordering::SeqCst);
}

/// An earlier load of a device's flag is made before later loads of its data.
#[inline(always)]
pub(crate) fn order_dma_loads() {
    // Acquire: pairs with the device's ordered writes.
    fence(Ordering::Acquire);
}

/// Nanoseconds since the first call.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[inline(always)]
pub(crate) fn unordered_ticks() -> u64 {
    ticks()
}

/// A tick is a nanosecond.
pub(crate) fn ticks_per_second() -> Option<u64> {
    Some(1_000_000_000)
}

/// The clock of the standard library is monotonic and steady.
pub(crate) fn ticks_are_steady() -> bool {
    true
}
