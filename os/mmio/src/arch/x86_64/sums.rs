//! Reading a group of lines as fast as this CPU can: arrival test and exclusive or of each line's words, in vectors.

use core::arch::asm;

use beeline_contract_memory::GROUP_LINES;

use super::load::LoadKernel;

/// One line: what of it equals the blanks is gathered in `ymm5`, its words are folded into one and stored to the sums.
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
            "vmovq qword ptr [{sums} + ",
            $sum,
            "], xmm1",
        )
    };
}

impl LoadKernel {
    /// The exclusive or of the words of each line of a group, unless a word of the group equals `blank`; `None` too where
    /// there is no fast way.
    ///
    /// # Safety
    /// As for [`LoadKernel::arrived_group`].
    #[inline(always)]
    pub(crate) unsafe fn group_sums(
        self,
        group: *const u8,
        blank: u64,
    ) -> Option<[u64; GROUP_LINES as usize]> {
        if self == LoadKernel::Words {
            return None;
        }
        let mut sums = [0; GROUP_LINES as usize];
        let equal: u32;
        // SAFETY: the lines of the group are mapped, aligned to 64 and accessed by atomics and asm only
        // (`LoadWindow::group`); `sums` is 64 writable bytes of our own; every kernel but `Words` is only given on a CPU with
        // AVX2 (one with AVX-512 has it).
        unsafe {
            asm!(
                "vmovq xmm0, {blank}", "vpbroadcastq ymm0, xmm0", "vpxor xmm5, xmm5, xmm5",
                fold_line!("0", "32", "0"), fold_line!("64", "96", "8"),
                fold_line!("128", "160", "16"), fold_line!("192", "224", "24"),
                fold_line!("256", "288", "32"), fold_line!("320", "352", "40"),
                fold_line!("384", "416", "48"), fold_line!("448", "480", "56"),
                "vpmovmskb {equal:e}, ymm5",
                "vzeroupper",
                group = in(reg) group, blank = in(reg) blank, sums = in(reg) sums.as_mut_ptr(),
                equal = lateout(reg) equal,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                options(nostack, preserves_flags),
            );
        }
        (equal == 0).then_some(sums)
    }
}
