//! Bit 63 of each word of a line on x86-64: what a lap window's receiver looks at.
//!
//! The sign bits of a vector's words gather in a mask by one instruction, so this costs a load and no comparison.

use core::arch::asm;

use super::load::LoadKernel;
use crate::arch::words;

impl LoadKernel {
    /// Bit 63 of each word, bit i for word i, and word 0.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived`].
    #[inline(always)]
    pub(crate) unsafe fn tops(self, line: *const u8) -> (u8, u64) {
        match self {
            LoadKernel::Words => {
                // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only
                // (`ReadWindow::line`).
                let words = unsafe { words::load_line(line) };
                (words::tops(&words), words[0])
            }
            // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only
            // (`ReadWindow::line`); `best` and `all` give this kernel only on a CPU with AVX2.
            LoadKernel::Avx2 => unsafe { tops_avx2(line) },
            // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only
            // (`ReadWindow::line`); `best` and `all` give this kernel only on a CPU with AVX-512.
            LoadKernel::Avx512 => unsafe { tops_avx512(line) },
        }
    }
}

/// # Safety
/// As for [`LoadKernel::arrived`]; the CPU has AVX-512.
#[inline(always)]
unsafe fn tops_avx512(line: *const u8) -> (u8, u64) {
    let (mask, head): (u32, u64);
    // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`ReadWindow::line`); the
    // caller's CPU has AVX-512.
    unsafe {
        asm!(
            "vmovdqa64 zmm16, [{line}]",
            "vpxorq zmm17, zmm17, zmm17",
            "vpcmpgtq k1, zmm17, zmm16",
            "vmovq {head}, xmm16",
            "kmovw {mask:e}, k1",
            line = in(reg) line, head = lateout(reg) head, mask = lateout(reg) mask,
            out("xmm16") _, out("xmm17") _, out("k1") _,
            options(nostack, preserves_flags, readonly),
        );
    }
    (mask as u8, head)
}

/// # Safety
/// As for [`LoadKernel::arrived`]; the CPU has AVX2.
#[inline(always)]
unsafe fn tops_avx2(line: *const u8) -> (u8, u64) {
    let (low, high, head): (u32, u32, u64);
    // SAFETY: `line` is 64 mapped bytes, aligned to 64 and accessed by atomics and asm only (`ReadWindow::line`); the
    // caller's CPU has AVX2.
    unsafe {
        asm!(
            "vmovdqa ymm0, [{line}]", "vmovdqa ymm1, [{line} + 32]",
            "vmovq {head}, xmm0",
            "vmovmskpd {low:e}, ymm0", "vmovmskpd {high:e}, ymm1",
            "vzeroupper",
            line = in(reg) line,
            head = lateout(reg) head, low = lateout(reg) low, high = lateout(reg) high,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
            out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack, preserves_flags, readonly),
        );
    }
    ((low | high << 4) as u8, head)
}
