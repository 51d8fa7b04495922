//! Loads of lines on aarch64: pairs of words, which the CPU joins as it can.

use core::arch::asm;

use beeline_contract_memory::Line;

use crate::LINE_BYTES;
use crate::arch::words;

/// How a port loads lines; chosen once a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadKernel {
    /// Four `ldp` of two words each.
    Pairs,
}

impl LoadKernel {
    /// The only one.
    pub(crate) fn best() -> Self {
        LoadKernel::Pairs
    }

    /// The only one.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        vec![LoadKernel::Pairs]
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
        let mut words = [0u64; 8];
        let [a, b, c, d, e, f, g, h] = &mut words;
        // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`LoadWindow::line`).
        unsafe {
            asm!(
                "ldp {a}, {b}, [{line}]", "ldp {c}, {d}, [{line}, #16]",
                "ldp {e}, {f}, [{line}, #32]", "ldp {g}, {h}, [{line}, #48]",
                line = in(reg) line,
                a = out(reg) *a, b = out(reg) *b, c = out(reg) *c, d = out(reg) *d,
                e = out(reg) *e, f = out(reg) *f, g = out(reg) *g, h = out(reg) *h,
                options(nostack, preserves_flags, readonly),
            );
        }
        words.map(u64::from_le)
    }

    /// Copies a line to `out`, as bytes in memory order.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`]; `out` is 64 writable bytes of our own, at any alignment.
    #[inline(always)]
    pub(crate) unsafe fn copy(self, line: *const u8, out: *mut u8) {
        // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`LoadWindow::line`);
        // `out` is 64 writable bytes that this process alone uses.
        unsafe {
            asm!(
                "ldp {a:q}, {b:q}, [{line}]", "ldp {c:q}, {d:q}, [{line}, #32]",
                "stp {a:q}, {b:q}, [{out}]", "stp {c:q}, {d:q}, [{out}, #32]",
                line = in(reg) line, out = in(reg) out,
                a = out(vreg) _, b = out(vreg) _, c = out(vreg) _, d = out(vreg) _,
                options(nostack, preserves_flags),
            );
        }
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

    /// Stores `word` into every word of a line, cached.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`], and writable.
    #[inline(always)]
    pub(crate) unsafe fn fill(self, line: *mut u8, word: u64) {
        // SAFETY: `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only
        // (`LoadWindow::line`).
        unsafe {
            asm!(
                "stp {word}, {word}, [{line}]", "stp {word}, {word}, [{line}, #16]",
                "stp {word}, {word}, [{line}, #32]", "stp {word}, {word}, [{line}, #48]",
                line = in(reg) line, word = in(reg) word.to_le(),
                options(nostack, preserves_flags),
            );
        }
    }
}

/// Asks for a line to be brought into the cache.
#[inline(always)]
pub(crate) fn prefetch(line: *const u8) {
    // SAFETY: a prefetch is a hint: it faults at no address and changes no memory.
    unsafe {
        asm!("prfm pldl1keep, [{line}]", line = in(reg) line, options(nostack, preserves_flags, readonly))
    }
}

/// Asks for a line to be brought into the cache, to be written.
#[inline(always)]
pub(crate) fn prefetch_to_write(line: *const u8) {
    // SAFETY: a prefetch is a hint: it faults at no address and changes no memory.
    unsafe {
        asm!("prfm pstl1keep, [{line}]", line = in(reg) line, options(nostack, preserves_flags, readonly))
    }
}
