//! Reading a group of lines as fast as this CPU can: arrival test and exclusive or of each line's words, in vectors.

use core::arch::asm;

use beeline_contract_memory::GROUP_LINES;

use super::load::LoadKernel;

/// One line: what of it equals the blanks is gathered in `ymm5`, and its words are folded into one, in a general register.
macro_rules! fold_line {
    ($at:literal, $upper:literal, $sum:literal) => {
        concat!(
            "vmovdqa ymm1, [{group} + ",
            $at,
            "]\n",
            "vmovdqa ymm2, [{group} + ",
            $upper,
            "]\n",
            "vpcmpeqq ymm3, ymm1, ymm0\n",
            "vpcmpeqq ymm4, ymm2, ymm0\n",
            "vpor ymm3, ymm3, ymm4\n",
            "vpor ymm5, ymm5, ymm3\n",
            "vpxor ymm1, ymm1, ymm2\n",
            "vextracti128 xmm2, ymm1, 1\n",
            "vpxor xmm1, xmm1, xmm2\n",
            "vpunpckhqdq xmm2, xmm1, xmm1\n",
            "vpxor xmm1, xmm1, xmm2\n",
            "vmovq {",
            $sum,
            "}, xmm1",
        )
    };
}

impl LoadKernel {
    /// The exclusive or of the words of each line of a group, unless a word of the group equals `blank`.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived_group`]; not for [`LoadKernel::Words`].
    #[inline(always)]
    pub(crate) unsafe fn group_sums(
        self,
        group: *const u8,
        blank: u64,
    ) -> Option<[u64; GROUP_LINES as usize]> {
        let (a, b, c, d, e, f, g, h);
        let equal: u32;
        // SAFETY: the lines of the group are mapped, aligned to 64 and accessed by atomics and asm only
        // (`LoadWindow::groups`); every kernel but `Words` is only given on a CPU with AVX2 (one with AVX-512 has it).
        unsafe {
            asm!(
                "vmovq xmm0, {blank}", "vpbroadcastq ymm0, xmm0", "vpxor xmm5, xmm5, xmm5",
                fold_line!("0", "32", "a"), fold_line!("64", "96", "b"),
                fold_line!("128", "160", "c"), fold_line!("192", "224", "d"),
                fold_line!("256", "288", "e"), fold_line!("320", "352", "f"),
                fold_line!("384", "416", "g"), fold_line!("448", "480", "h"),
                "vpmovmskb {equal:e}, ymm5",
                "vzeroupper",
                group = in(reg) group, blank = in(reg) blank, equal = lateout(reg) equal,
                a = out(reg) a, b = out(reg) b, c = out(reg) c, d = out(reg) d,
                e = out(reg) e, f = out(reg) f, g = out(reg) g, h = out(reg) h,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                options(nostack, preserves_flags, readonly),
            );
        }
        (equal == 0).then_some([a, b, c, d, e, f, g, h])
    }
}
