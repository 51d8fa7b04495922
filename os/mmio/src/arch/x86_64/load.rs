//! Loads of lines on x86-64: one or two vector loads, and the comparison with the blank.
//!
//! A vector load is taken to be single-copy atomic in each aligned word, as every x86-64 CPU is known to do; the
//! tests look for words torn by it.

use core::arch::asm;
use core::mem::MaybeUninit;

use beeline_contract_memory::Line;

use super::features::{has_avx2, has_avx512};
use crate::LINE_BYTES;
use crate::arch::words;

/// How a port loads lines; chosen once a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadKernel {
    /// Eight word loads.
    Words,
    /// Two 32-byte loads.
    Avx2,
    /// One 64-byte load.
    Avx512,
}

/// A line in our own memory, aligned so that storing it whole splits no cache line.
#[repr(align(64))]
struct Landing(MaybeUninit<Line>);

impl LoadKernel {
    /// The widest this CPU has.
    pub(crate) fn best() -> Self {
        if has_avx512() {
            LoadKernel::Avx512
        } else if has_avx2() {
            LoadKernel::Avx2
        } else {
            LoadKernel::Words
        }
    }

    /// Every kernel this CPU can run.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        let mut kernels = vec![LoadKernel::Words];
        kernels.extend(has_avx2().then_some(LoadKernel::Avx2));
        kernels.extend(has_avx512().then_some(LoadKernel::Avx512));
        kernels
    }

    /// The line and a bit for each word that is not `blank`.
    ///
    /// # Safety
    /// `line` is 64 mapped bytes, aligned to 64, only accessed by atomics and asm.
    #[inline(always)]
    pub(crate) unsafe fn arrived(self, line: *const u8, blank: u64) -> (u8, Line) {
        let mut landing = Landing(MaybeUninit::uninit());
        let mask: u32;
        match self {
            LoadKernel::Words => {
                // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only
                // (`LoadWindow::line`).
                let words = unsafe { words::load_line(line) };
                return (words::differing(&words, blank), words);
            }
            // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only
            // (`LoadWindow::line`); the landing is 64 writable bytes; `best` and `all` give this kernel only on a CPU
            // with AVX-512.
            LoadKernel::Avx512 => unsafe {
                asm!(
                    "vmovdqa64 zmm16, [{line}]",
                    "vpbroadcastq zmm17, {blank}",
                    "vpcmpneqq k1, zmm16, zmm17",
                    "vmovdqa64 [{landing}], zmm16",
                    "kmovw {mask:e}, k1",
                    line = in(reg) line, blank = in(reg) blank, landing = in(reg) landing.0.as_mut_ptr(),
                    mask = lateout(reg) mask, out("xmm16") _, out("xmm17") _, out("k1") _,
                    options(nostack, preserves_flags),
                );
            },
            // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only
            // (`LoadWindow::line`); the landing is 64 writable bytes; `best` and `all` give this kernel only on a CPU
            // with AVX2.
            LoadKernel::Avx2 => unsafe {
                asm!(
                    "vmovdqa ymm0, [{line}]", "vmovdqa ymm1, [{line} + 32]",
                    "vmovq xmm2, {blank}", "vpbroadcastq ymm2, xmm2",
                    "vmovdqa [{landing}], ymm0", "vmovdqa [{landing} + 32], ymm1",
                    "vpcmpeqq ymm0, ymm0, ymm2", "vpcmpeqq ymm1, ymm1, ymm2",
                    "vpackssdw ymm0, ymm0, ymm1", "vpermq ymm0, ymm0, 0xd8",
                    "vmovmskps {mask:e}, ymm0", "not {mask:e}",
                    "vzeroupper",
                    line = in(reg) line, blank = in(reg) blank, landing = in(reg) landing.0.as_mut_ptr(),
                    mask = lateout(reg) mask,
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                    out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                    out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                    options(nostack, preserves_flags),
                );
            },
        }
        // SAFETY: both asm blocks above have written all 64 bytes, and any bytes make words.
        let words = unsafe { landing.0.assume_init() };
        (mask as u8, words)
    }

    /// As [`LoadKernel::arrived`], the line to `words`: for a caller that hands the line on as it is. Returned by value
    /// it goes through general registers, which costs more than the rest.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`].
    #[inline(always)]
    pub(crate) unsafe fn arrived_into(self, line: *const u8, blank: u64, words: &mut Line) -> u8 {
        if self == LoadKernel::Avx512 {
            let mask: u32;
            // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only
            // (`LoadWindow::line`); `words` is 64 writable bytes; `best` and `all` give this kernel only on a CPU with
            // AVX-512.
            unsafe {
                asm!(
                    "vmovdqa64 zmm16, [{line}]",
                    "vpbroadcastq zmm17, {blank}",
                    "vpcmpneqq k1, zmm16, zmm17",
                    "vmovdqu64 [{words}], xmm16",
                    "vextracti32x4 [{words} + 16], ymm16, 1",
                    "vextracti32x4 [{words} + 32], zmm16, 2",
                    "vextracti32x4 [{words} + 48], zmm16, 3",
                    "kmovw {mask:e}, k1",
                    line = in(reg) line, blank = in(reg) blank, words = in(reg) words.as_mut_ptr(),
                    mask = lateout(reg) mask, out("xmm16") _, out("xmm17") _, out("k1") _,
                    options(nostack, preserves_flags),
                );
            }
            return mask as u8;
        }
        // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`LoadWindow::line`).
        let (mask, found) = unsafe { self.arrived(line, blank) };
        *words = found;
        mask
    }

    /// As [`LoadKernel::arrived`] with word 0 only, which never leaves the registers.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`].
    #[inline(always)]
    pub(crate) unsafe fn arrived_head(self, line: *const u8, blank: u64) -> (u8, u64) {
        if self == LoadKernel::Words {
            // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only
            // (`LoadWindow::line`).
            let words = unsafe { words::load_line(line) };
            return (words::differing(&words, blank), words[0]);
        }
        if self == LoadKernel::Avx2 {
            // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only
            // (`LoadWindow::line`); `best` and `all` give this kernel only on a CPU with AVX2.
            return unsafe { arrived_head_avx2(line, blank) };
        }
        let (mask, head): (u32, u64);
        // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`LoadWindow::line`);
        // `best` and `all` give this kernel only on a CPU with AVX-512.
        unsafe {
            asm!(
                "vmovdqa64 zmm16, [{line}]",
                "vpbroadcastq zmm17, {blank}",
                "vpcmpneqq k1, zmm16, zmm17",
                "vmovq {head}, xmm16",
                "kmovw {mask:e}, k1",
                line = in(reg) line, blank = in(reg) blank, head = lateout(reg) head, mask = lateout(reg) mask,
                out("xmm16") _, out("xmm17") _, out("k1") _,
                options(nostack, preserves_flags),
            );
        }
        (mask as u8, head)
    }

    /// As [`LoadKernel::arrived`] without the line.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`].
    #[inline(always)]
    pub(crate) unsafe fn arrived_words(self, line: *const u8, blank: u64) -> u8 {
        if self != LoadKernel::Avx512 {
            // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only
            // (`LoadWindow::line`).
            return unsafe { self.arrived_head(line, blank) }.0;
        }
        let mask: u32;
        // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`LoadWindow::line`);
        // `best` and `all` give this kernel only on a CPU with AVX-512.
        unsafe {
            asm!(
                "vpbroadcastq zmm16, {blank}",
                "vpcmpneqq k1, zmm16, [{line}]",
                "kmovw {mask:e}, k1",
                line = in(reg) line, blank = in(reg) blank, mask = lateout(reg) mask, out("xmm16") _, out("k1") _,
                options(nostack, preserves_flags),
            );
        }
        mask as u8
    }

    /// The line.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`].
    #[inline(always)]
    pub(crate) unsafe fn line(self, line: *const u8) -> Line {
        if self == LoadKernel::Words {
            // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only
            // (`LoadWindow::line`).
            return unsafe { words::load_line(line) };
        }
        let mut landing = Landing(MaybeUninit::uninit());
        // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`LoadWindow::line`);
        // the landing is 64 writable bytes.
        unsafe { self.copy(line, landing.0.as_mut_ptr().cast()) };
        // SAFETY: `copy` has written all 64 bytes, and any bytes make words.
        unsafe { landing.0.assume_init() }
    }

    /// Copies a line to `out`, as bytes in memory order.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`]; `out` is 64 writable bytes of our own, at any alignment.
    #[inline(always)]
    pub(crate) unsafe fn copy(self, line: *const u8, out: *mut u8) {
        if self == LoadKernel::Avx512 {
            // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only
            // (`LoadWindow::line`); `out` is 64 writable bytes that this process alone uses; `best` and `all` give this
            // kernel only on a CPU with AVX-512.
            unsafe {
                asm!(
                    "vmovdqa64 zmm16, [{line}]", "vmovdqu64 [{out}], zmm16",
                    line = in(reg) line, out = in(reg) out, out("xmm16") _,
                    options(nostack, preserves_flags),
                );
            }
            return;
        }
        // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`LoadWindow::line`);
        // `out` is 64 writable bytes that this process alone uses; SSE2 is part of x86-64.
        unsafe {
            asm!(
                "movdqa {a}, [{line}]", "movdqa {b}, [{line} + 16]",
                "movdqa {c}, [{line} + 32]", "movdqa {d}, [{line} + 48]",
                "movdqu [{out}], {a}", "movdqu [{out} + 16], {b}",
                "movdqu [{out} + 32], {c}", "movdqu [{out} + 48], {d}",
                line = in(reg) line, out = in(reg) out,
                a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _,
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
        if self != LoadKernel::Avx2 {
            for (ahead, out) in out.iter_mut().enumerate() {
                // SAFETY: a line of those that this function may load, and one of our own.
                unsafe { self.copy(first.wrapping_add(ahead * LINE_BYTES), out.as_mut_ptr()) };
            }
            return;
        }
        if out.is_empty() {
            return;
        }
        // SAFETY: as many lines from `first` on are mapped, aligned to 64 and accessed by atomics and asm only
        // (`LoadWindow::load_lines`) as `out` has, of which there is one; `best` and `all` give this kernel only on a CPU with
        // AVX2.
        unsafe {
            asm!(
                "2:",
                "vmovdqa ymm0, [{from}]", "vmovdqa ymm1, [{from} + 32]",
                "vmovdqu [{to}], ymm0", "vmovdqu [{to} + 32], ymm1",
                "add {from}, 64", "add {to}, 64",
                "dec {left}",
                "jnz 2b",
                "vzeroupper",
                from = inout(reg) first => _, to = inout(reg) out.as_mut_ptr() => _, left = inout(reg) out.len() => _,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                options(nostack),
            );
        }
    }

    /// Stores `word` into every word of a line, cached.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`], and writable.
    #[inline(always)]
    pub(crate) unsafe fn fill(self, line: *mut u8, word: u64) {
        if self == LoadKernel::Avx512 {
            // SAFETY: `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only
            // (`LoadWindow::line`); `best` and `all` give this kernel only on a CPU with AVX-512.
            unsafe {
                asm!(
                    "vpbroadcastq zmm16, {word}", "vmovdqa64 [{line}], zmm16",
                    line = in(reg) line, word = in(reg) word, out("xmm16") _,
                    options(nostack, preserves_flags),
                );
            }
            return;
        }
        // SAFETY: `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only
        // (`LoadWindow::line`); SSE2 is part of x86-64.
        unsafe {
            asm!(
                "movq {a}, {word}", "punpcklqdq {a}, {a}",
                "movdqa [{line}], {a}", "movdqa [{line} + 16], {a}",
                "movdqa [{line} + 32], {a}", "movdqa [{line} + 48], {a}",
                line = in(reg) line, word = in(reg) word, a = out(xmm_reg) _,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// [`LoadKernel::arrived_head`] by two 32-byte loads.
///
/// # Safety
/// As for [`LoadKernel::arrived`]; the CPU has AVX2.
#[inline(always)]
unsafe fn arrived_head_avx2(line: *const u8, blank: u64) -> (u8, u64) {
    let (low, high, head): (u32, u32, u64);
    // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`LoadWindow::line`); the
    // caller's CPU has AVX2.
    unsafe {
        asm!(
            "vmovdqa ymm0, [{line}]",
            "vmovq xmm2, {blank}", "vpbroadcastq ymm2, xmm2",
            "vpcmpeqq ymm1, ymm2, [{line} + 32]",
            "vmovq {head}, xmm0",
            "vpcmpeqq ymm0, ymm0, ymm2",
            "vmovmskpd {low:e}, ymm0", "vmovmskpd {high:e}, ymm1",
            "vzeroupper",
            line = in(reg) line, blank = in(reg) blank,
            head = lateout(reg) head, low = lateout(reg) low, high = lateout(reg) high,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
            out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack, preserves_flags, readonly),
        );
    }
    (!(low | high << 4) as u8, head)
}

/// Asks for a line to be brought into the cache.
#[inline(always)]
pub(crate) fn prefetch(line: *const u8) {
    // SAFETY: a prefetch is a hint: it faults at no address and changes no memory.
    unsafe { asm!("prefetcht0 [{line}]", line = in(reg) line, options(nostack, preserves_flags, readonly)) }
}

/// Asks for a line to be brought into the cache, to be written. CPUs without the instruction take it for a `nop`.
#[inline(always)]
pub(crate) fn prefetch_to_write(line: *const u8) {
    // SAFETY: a prefetch is a hint: it faults at no address and changes no memory.
    unsafe { asm!("prefetchw [{line}]", line = in(reg) line, options(nostack, preserves_flags, readonly)) }
}
