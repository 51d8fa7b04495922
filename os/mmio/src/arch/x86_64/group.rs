//! Groups of lines on x86-64: one comparison and one branch for all of them, and one run of stores.
//!
//! A line is looked at by vector loads, each aligned word of which is single-copy atomic (`load.rs`). No order between the
//! loads matters: a word that was seen to differ from the blank stays so until this side blanks it, and a later load of it
//! sees no older value.

use core::arch::asm;

use beeline_contract_memory::GROUP_LINES;

use super::load::LoadKernel;
use crate::LINE_BYTES;
use crate::arch::words;

/// Compares the four ymm parts of two lines with `ymm0`, and gathers what is equal in `ymm1`.
macro_rules! equal_in_two_lines {
    ($first:literal, $second:literal) => {
        concat!(
            "vpcmpeqq ymm2, ymm0, [{group} + ",
            $first,
            "]\n",
            "vpor ymm1, ymm1, ymm2\n",
            "vpcmpeqq ymm2, ymm0, [{group} + ",
            $first,
            " + 32]\n",
            "vpor ymm1, ymm1, ymm2\n",
            "vpcmpeqq ymm2, ymm0, [{group} + ",
            $second,
            "]\n",
            "vpor ymm1, ymm1, ymm2\n",
            "vpcmpeqq ymm2, ymm0, [{group} + ",
            $second,
            " + 32]\n",
            "vpor ymm1, ymm1, ymm2",
        )
    };
}

impl LoadKernel {
    /// Whether no word of a group of lines equals `blank`. The last line is looked at first, and where it has not arrived no
    /// other: each look takes a line away from a sender that is about to store it.
    ///
    /// # Safety
    /// From `group`, aligned to 64, on there are [`GROUP_LINES`] mapped lines, only accessed by atomics and asm.
    #[inline(always)]
    pub(crate) unsafe fn arrived_group(self, group: *const u8, blank: u64) -> bool {
        match self {
            LoadKernel::Words => (0..GROUP_LINES as usize).rev().all(|ahead| {
                // SAFETY: a line of the group, which is mapped and accessed by atomics and asm only (`LoadWindow::group`).
                let words = unsafe { words::load_line(group.wrapping_add(ahead * LINE_BYTES)) };
                words::differing(&words, blank) == 0xff
            }),
            // SAFETY: the lines of the group are mapped, aligned to 64 and accessed by atomics and asm only
            // (`LoadWindow::group`); `best` and `all` give this kernel only on a CPU with AVX2.
            LoadKernel::Avx2 => unsafe { arrived_group_avx2(group, blank) },
            // SAFETY: the lines of the group are mapped, aligned to 64 and accessed by atomics and asm only
            // (`LoadWindow::group`); `best` and `all` give this kernel only on a CPU with AVX-512.
            LoadKernel::Avx512 => unsafe { arrived_group_avx512(group, blank) },
        }
    }

    /// Stores `word` into every word of a group of lines, cached.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived_group`], and writable.
    #[inline(always)]
    pub(crate) unsafe fn fill_group(self, group: *mut u8, word: u64) {
        if self == LoadKernel::Avx512 {
            // SAFETY: the lines of the group are mapped, writable, aligned to 64 and accessed by atomics and asm only
            // (`LoadWindow::group`); `best` and `all` give this kernel only on a CPU with AVX-512.
            unsafe {
                asm!(
                    "vpbroadcastq zmm16, {word}",
                    "vmovdqa64 [{group}], zmm16", "vmovdqa64 [{group} + 64], zmm16",
                    "vmovdqa64 [{group} + 128], zmm16", "vmovdqa64 [{group} + 192], zmm16",
                    "vmovdqa64 [{group} + 256], zmm16", "vmovdqa64 [{group} + 320], zmm16",
                    "vmovdqa64 [{group} + 384], zmm16", "vmovdqa64 [{group} + 448], zmm16",
                    group = in(reg) group, word = in(reg) word, out("xmm16") _,
                    options(nostack, preserves_flags),
                );
            }
            return;
        }
        if self == LoadKernel::Avx2 {
            // SAFETY: the lines of the group are mapped, writable, aligned to 64 and accessed by atomics and asm only
            // (`LoadWindow::group`); `best` and `all` give this kernel only on a CPU with AVX2.
            unsafe {
                asm!(
                    "vmovq xmm0, {word}", "vpbroadcastq ymm0, xmm0",
                    "vmovdqa [{group}], ymm0", "vmovdqa [{group} + 32], ymm0",
                    "vmovdqa [{group} + 64], ymm0", "vmovdqa [{group} + 96], ymm0",
                    "vmovdqa [{group} + 128], ymm0", "vmovdqa [{group} + 160], ymm0",
                    "vmovdqa [{group} + 192], ymm0", "vmovdqa [{group} + 224], ymm0",
                    "vmovdqa [{group} + 256], ymm0", "vmovdqa [{group} + 288], ymm0",
                    "vmovdqa [{group} + 320], ymm0", "vmovdqa [{group} + 352], ymm0",
                    "vmovdqa [{group} + 384], ymm0", "vmovdqa [{group} + 416], ymm0",
                    "vmovdqa [{group} + 448], ymm0", "vmovdqa [{group} + 480], ymm0",
                    "vzeroupper",
                    group = in(reg) group, word = in(reg) word,
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                    out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                    out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                    options(nostack, preserves_flags),
                );
            }
            return;
        }
        for ahead in 0..GROUP_LINES as usize {
            // SAFETY: a line of the group, which is mapped, writable and accessed by atomics and asm only
            // (`LoadWindow::group`).
            unsafe { self.fill(group.wrapping_add(ahead * LINE_BYTES), word) };
        }
    }
}

/// # Safety
/// As for [`LoadKernel::arrived_group`]; the CPU has AVX-512.
#[inline(always)]
unsafe fn arrived_group_avx512(group: *const u8, blank: u64) -> bool {
    let last = group.wrapping_add((GROUP_LINES as usize - 1) * LINE_BYTES);
    // SAFETY: a line of the group, for which this function's contract speaks.
    if unsafe { LoadKernel::Avx512.arrived_words(last, blank) } != 0xff {
        return false;
    }
    let all: u32;
    // A comparison under a mask keeps in it what held so far, so the masks need no instructions of their own; there are
    // two, so that half as many wait for each other.
    // SAFETY: the lines of the group are mapped, aligned to 64 and accessed by atomics and asm only (`LoadWindow::group`);
    // the caller's CPU has AVX-512.
    unsafe {
        asm!(
            "vpbroadcastq zmm16, {blank}",
            "vpcmpneqq k1, zmm16, [{group} + 448]",
            "vpcmpneqq k1{{k1}}, zmm16, [{group} + 384]",
            "vpcmpneqq k1{{k1}}, zmm16, [{group} + 320]",
            "vpcmpneqq k1{{k1}}, zmm16, [{group} + 256]",
            "vpcmpneqq k2, zmm16, [{group} + 192]",
            "vpcmpneqq k2{{k2}}, zmm16, [{group} + 128]",
            "vpcmpneqq k2{{k2}}, zmm16, [{group} + 64]",
            "vpcmpneqq k2{{k2}}, zmm16, [{group}]",
            "kandw k1, k1, k2",
            "kmovw {all:e}, k1",
            group = in(reg) group, blank = in(reg) blank, all = lateout(reg) all,
            out("xmm16") _, out("k1") _, out("k2") _,
            options(nostack, preserves_flags, readonly),
        );
    }
    all as u8 == 0xff
}

/// # Safety
/// As for [`LoadKernel::arrived_group`]; the CPU has AVX2.
#[inline(always)]
unsafe fn arrived_group_avx2(group: *const u8, blank: u64) -> bool {
    // SAFETY: the lines of the group are mapped, aligned to 64 and accessed by atomics and asm only (`LoadWindow::group`);
    // the caller's CPU has AVX2.
    unsafe {
        asm!(
            "vmovq xmm0, {blank}", "vpbroadcastq ymm0, xmm0",
            "vpcmpeqq ymm1, ymm0, [{group} + 448]", "vpcmpeqq ymm2, ymm0, [{group} + 480]",
            "vpor ymm1, ymm1, ymm2",
            "vptest ymm1, ymm1",
            "jnz {missing}",
            equal_in_two_lines!("0", "64"),
            equal_in_two_lines!("128", "192"),
            equal_in_two_lines!("256", "320"),
            "vpcmpeqq ymm2, ymm0, [{group} + 384]", "vpor ymm1, ymm1, ymm2",
            "vpcmpeqq ymm2, ymm0, [{group} + 416]", "vpor ymm1, ymm1, ymm2",
            "vptest ymm1, ymm1",
            "jnz {missing}",
            "vzeroupper",
            group = in(reg) group, blank = in(reg) blank,
            missing = label {
                // SAFETY: it changes no memory, and the registers are declared as overwritten.
                unsafe { asm!("vzeroupper", options(nostack, nomem, preserves_flags)) }
                return false
            },
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
            out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack, readonly),
        );
    }
    true
}
