//! Groups of lines on aarch64: one comparison and one branch for all of them.
//!
//! A load of 16 bytes, aligned to 8, is a pair of single-copy atomic loads of 8 bytes (Arm ARM B2.2.1), which is all that the
//! arrival test asks for. No order between the loads matters: a word that was seen to differ from the blank stays so until
//! this side blanks it, and a later load of it sees no older value.

use core::arch::asm;

use beeline_contract_memory::GROUP_LINES;

use super::load::LoadKernel;
use crate::LINE_BYTES;

/// Compares the four vectors of a line with the blanks, and gathers what is equal.
macro_rules! equal_in_line {
    ($half:literal, $other_half:literal) => {
        concat!(
            "ldp {a:q}, {b:q}, [{group}, #",
            $half,
            "]\n",
            "ldp {c:q}, {d:q}, [{group}, #",
            $other_half,
            "]\n",
            "cmeq {a:v}.2d, {a:v}.2d, {blanks:v}.2d\n",
            "cmeq {b:v}.2d, {b:v}.2d, {blanks:v}.2d\n",
            "cmeq {c:v}.2d, {c:v}.2d, {blanks:v}.2d\n",
            "cmeq {d:v}.2d, {d:v}.2d, {blanks:v}.2d\n",
            "orr {a:v}.16b, {a:v}.16b, {b:v}.16b\n",
            "orr {c:v}.16b, {c:v}.16b, {d:v}.16b\n",
            "orr {equal:v}.16b, {equal:v}.16b, {a:v}.16b\n",
            "orr {equal:v}.16b, {equal:v}.16b, {c:v}.16b",
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
        let last = group.wrapping_add((GROUP_LINES as usize - 1) * LINE_BYTES);
        // SAFETY: a line of the group, which is mapped and accessed by atomics and asm only (`LoadWindow::group`).
        if unsafe { self.arrived_words(last, blank) } != 0xff {
            return false;
        }
        let found: u32;
        // SAFETY: the lines of the group are mapped, aligned to 64 and accessed by atomics and asm only
        // (`LoadWindow::group`); NEON is part of aarch64.
        unsafe {
            asm!(
                "dup {blanks:v}.2d, {blank}", "movi {equal:v}.2d, #0",
                equal_in_line!("448", "480"), equal_in_line!("384", "416"),
                equal_in_line!("320", "352"), equal_in_line!("256", "288"),
                equal_in_line!("192", "224"), equal_in_line!("128", "160"),
                equal_in_line!("64", "96"), equal_in_line!("0", "32"),
                "umaxv {equal:s}, {equal:v}.4s", "fmov {found:w}, {equal:s}",
                group = in(reg) group, blank = in(reg) blank.to_le(), found = lateout(reg) found,
                blanks = out(vreg) _, equal = out(vreg) _,
                a = out(vreg) _, b = out(vreg) _, c = out(vreg) _, d = out(vreg) _,
                options(nostack, preserves_flags, readonly),
            );
        }
        found == 0
    }

    /// Stores `word` into every word of a group of lines, cached.
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
}
