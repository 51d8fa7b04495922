//! The store kernels that make the line in two 32-byte registers, for CPUs without 64-byte ones.
//!
//! A header and its payload are joined in registers, straight from the caller's memory: masks keep each load inside the
//! caller's slice (`vpmaskmovq` accesses no word that they leave out), and the last bytes, which are no whole word, come from
//! a general register. Registers below 16 are used, so `vzeroupper` follows and all sixteen are declared as overwritten.

use core::arch::asm;

use beeline_contract_memory::Line;

use super::narrow;
use super::store::{Cached, movnti};
use crate::LINE_BYTES;
use crate::arch::{LineKernel, kernel_port, words};

/// Which words of a line a payload fills whole, a row for each number of whole words, for a payload that starts at word
/// `LEAD` of the line. One cache line a row.
#[repr(align(64))]
struct Masks([Line; 9]);

const fn masks(lead: usize) -> Masks {
    let mut rows = [[0; 8]; 9];
    let mut whole = 0;
    while whole <= 8 {
        let mut word = lead;
        while word < 8 && word < lead + whole {
            rows[whole][word] = u64::MAX;
            word += 1;
        }
        whole += 1;
    }
    Masks(rows)
}

static AFTER_NOTHING: Masks = masks(0);
static AFTER_HEADER: Masks = masks(1);
static AFTER_PREFIX: Masks = masks(2);

/// The bytes behind the last whole word of `bytes`, as a word.
#[inline(always)]
fn tail_word(bytes: &[u8]) -> u64 {
    match (bytes.len() % 8, bytes.last_chunk::<8>()) {
        (0, _) => 0,
        // Shifted out of the last eight bytes, since no byte past the end may be loaded.
        (tail, Some(last)) => u64::from_le_bytes(*last) >> (64 - 8 * tail),
        (_, None) => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Makes a line in `ymm0` and `ymm1` of the payload's words and what `$lead` puts before them, and does `$then` with it.
macro_rules! make_line {
    (
        $bytes:expr, $masks:expr, $lead_words:literal; lead: [$($lead:literal),*]; then: [$($then:literal),*];
        $($operands:tt)*
    ) => {{
        let bytes: &[u8] = $bytes;
        if bytes.len() > LINE_BYTES - 8 * $lead_words {
            narrow::too_long(bytes.len(), LINE_BYTES - 8 * $lead_words);
        }
        let whole = bytes.len() / 8;
        let row: *const Line = &raw const $masks.0[whole];
        // The line's word 0 stands so far before the payload; words before it are masked out, not loaded.
        let start = bytes.as_ptr().wrapping_sub(8 * $lead_words);
        if bytes.len().is_multiple_of(8) {
            asm!(
                "vmovdqa ymm2, [{row}]", "vmovdqa ymm3, [{row} + 32]",
                "vpmaskmovq ymm0, ymm2, [{start}]", "vpmaskmovq ymm1, ymm3, [{start} + 32]",
                $($lead,)* $($then,)*
                row = in(reg) row, start = in(reg) start,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                $($operands)*
            );
        } else {
            asm!(
                "vmovdqa ymm2, [{row}]", "vmovdqa ymm3, [{row} + 32]",
                "vpmaskmovq ymm0, ymm2, [{start}]", "vpmaskmovq ymm1, ymm3, [{start} + 32]",
                // The next row has one word more: the one that the tail fills.
                "vmovq xmm4, {tail}", "vpbroadcastq ymm4, xmm4",
                "vpandn ymm2, ymm2, [{row} + 64]", "vpandn ymm3, ymm3, [{row} + 96]",
                "vpand ymm2, ymm2, ymm4", "vpand ymm3, ymm3, ymm4",
                "vpor ymm0, ymm0, ymm2", "vpor ymm1, ymm1, ymm3",
                $($lead,)* $($then,)*
                row = in(reg) row, start = in(reg) start, tail = in(reg) tail_word(bytes),
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                $($operands)*
            );
        }
    }};
}

/// As [`make_line`], and stores the line unless a word of it equals `$blank`; then the function returns `false`.
macro_rules! store_unless {
    (
        $line:expr, $blank:expr, [$low:literal, $high:literal]; $bytes:expr, $masks:expr, $lead_words:literal, [$($lead:literal),*];
        $($operands:tt)*
    ) => {
        make_line! {
            $bytes, $masks, $lead_words; lead: [$($lead),*]; then: [
                "vmovq xmm5, {blank}", "vpbroadcastq ymm5, xmm5",
                "vpcmpeqq ymm2, ymm0, ymm5", "vpcmpeqq ymm3, ymm1, ymm5",
                "vpor ymm2, ymm2, ymm3", "vptest ymm2, ymm2",
                "jnz {found}",
                $low, $high,
                "vzeroupper"
            ];
            line = in(reg) $line, blank = in(reg) $blank,
            found = label {
                // SAFETY: it changes no memory, and the registers are declared as overwritten.
                unsafe { asm!("vzeroupper", options(nostack, nomem, preserves_flags)) }
                return false
            },
            $($operands)*
            options(nostack),
        }
    };
}

/// The kernels that differ in their stores only: `$low` and `$high` store the halves of a line, in `ymm0` and `ymm1`; `$words`
/// stores words that were just computed, `$word` one of them.
macro_rules! avx2_kernel {
    ($(#[$doc:meta])* $name:ident, $low:literal, $high:literal, $words:path, $word:path; $($own:tt)*) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl LineKernel for $name {
            #[inline(always)]
            unsafe fn words(line: *mut u8, words: &Line) {
                // SAFETY: `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only
                // (`KernelLines::new`); `features::kernel` chose it on a CPU with AVX2.
                unsafe { $words(line, words) }
            }

            #[inline(always)]
            unsafe fn bytes(line: *mut u8, bytes: &[u8; 64]) {
                // SAFETY: `bytes` is a reference to 64 bytes, read without alignment; `line` is 64 mapped, writable
                // bytes, aligned to 64 and accessed by atomics and asm only (`KernelLines::new`); `features::kernel`
                // chose it on a CPU with AVX2.
                unsafe {
                    asm!(
                        "vmovdqu ymm0, [{bytes}]", "vmovdqu ymm1, [{bytes} + 32]",
                        $low, $high,
                        "vzeroupper",
                        line = in(reg) line, bytes = in(reg) bytes,
                        out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                        out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                        out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                        options(nostack, preserves_flags),
                    );
                }
            }

            #[inline(always)]
            unsafe fn word(word: *mut u8, value: u64) {
                // SAFETY: `word` is 8 mapped, writable bytes, aligned to 8 and accessed by atomics and asm only
                // (`KernelLines::word`).
                unsafe { $word(word, value) }
            }
        }

        kernel_port! {
            $name {
                #[inline(always)]
                fn store_head_line(&mut self, line: u32, header: u64, payload: &[u8]) {
                    let line = self.line(line);
                    // SAFETY: the masks let no word past the last whole one of `payload` be loaded, and the tail comes from inside it;
                    // `line` is writable (`KernelLines::new`); `features::kernel` chose the kernel on a CPU with AVX2.
                    unsafe {
                        make_line! {
                            payload, AFTER_HEADER, 1; lead: ["vmovq xmm5, {header}", "vpblendd ymm0, ymm0, ymm5, 3"];
                            then: [$low, $high, "vzeroupper"];
                            line = in(reg) line, header = in(reg) header, options(nostack),
                        }
                    }
                }

                #[inline(always)]
                fn store_head_line_unless(&mut self, line: u32, header: u64, payload: &[u8], blank: u64) -> bool {
                    let line = self.line(line);
                    // SAFETY: as for `store_head_line`.
                    unsafe {
                        store_unless! {
                            line, blank, [$low, $high]; payload, AFTER_HEADER, 1, ["vmovq xmm5, {header}", "vpblendd ymm0, ymm0, ymm5, 3"];
                            header = in(reg) header,
                        }
                    }
                    true
                }

                $($own)*
            }
        }
    };
}

avx2_kernel! {
    /// Cached stores of 32 bytes, or of 8 when the words are in registers.
    CachedAvx2, "vmovdqa [{line}], ymm0", "vmovdqa [{line} + 32], ymm1", Cached::words, words::store_word;

    // Word by word: what these lines are made of was probably just written (`narrow.rs`).
    #[inline(always)]
    fn store_prefixed_line_unless(
        &mut self,
        line: u32,
        header: u64,
        prefix: u64,
        payload: &[u8],
        blank: u64,
    ) -> bool {
        // SAFETY: `line` masks into the lines; what they are was promised to `KernelLines::new`.
        unsafe { narrow::store_unless(self.line(line), [header, prefix], payload, |word| word == blank) }
    }

    #[inline(always)]
    fn store_padded_line(&mut self, line: u32, bytes: &[u8]) {
        // SAFETY: as for `store_prefixed_line_unless`.
        unsafe { narrow::store_unless(self.line(line), [], bytes, |_| false) };
    }
}

avx2_kernel! {
    /// Two `vmovntdq` of 32 bytes.
    NtAvx2, "vmovntdq [{line}], ymm0", "vmovntdq [{line} + 32], ymm1", join_and_stream, movnti;

    #[inline(always)]
    fn store_prefixed_line_unless(
        &mut self,
        line: u32,
        header: u64,
        prefix: u64,
        payload: &[u8],
        blank: u64,
    ) -> bool {
        let line = self.line(line);
        // SAFETY: as for `store_head_line`.
        unsafe {
            store_unless! {
                line, blank, ["vmovntdq [{line}], ymm0", "vmovntdq [{line} + 32], ymm1"]; payload, AFTER_PREFIX, 2, [
                    "vmovq xmm5, {header}", "vmovq xmm6, {prefix}", "vpunpcklqdq xmm5, xmm5, xmm6",
                    "vpblendd ymm0, ymm0, ymm5, 15"
                ];
                header = in(reg) header, prefix = in(reg) prefix,
            }
        }
        true
    }

    #[inline(always)]
    fn store_padded_line(&mut self, line: u32, bytes: &[u8]) {
        let line = self.line(line);
        // SAFETY: as for `store_head_line`.
        unsafe {
            make_line! {
                bytes, AFTER_NOTHING, 0; lead: [];
                then: ["vmovntdq [{line}], ymm0", "vmovntdq [{line} + 32], ymm1", "vzeroupper"];
                line = in(reg) line, options(nostack),
            }
        }
    }
}

/// Streams words that were just computed: loaded in words, because a wide load over narrow stores waits for them.
///
/// # Safety
/// `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only; the CPU has AVX2.
#[inline(always)]
unsafe fn join_and_stream(line: *mut u8, words: &Line) {
    // SAFETY: `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only, and the CPU has AVX2, by
    // this function's own contract; `words` is a reference to 64 bytes.
    unsafe {
        asm!(
            "vmovq xmm0, qword ptr [{words}]", "vmovhps xmm0, xmm0, qword ptr [{words} + 8]",
            "vmovq xmm1, qword ptr [{words} + 16]", "vmovhps xmm1, xmm1, qword ptr [{words} + 24]",
            "vmovq xmm2, qword ptr [{words} + 32]", "vmovhps xmm2, xmm2, qword ptr [{words} + 40]",
            "vmovq xmm3, qword ptr [{words} + 48]", "vmovhps xmm3, xmm3, qword ptr [{words} + 56]",
            "vinserti128 ymm0, ymm0, xmm1, 1",
            "vinserti128 ymm2, ymm2, xmm3, 1",
            "vmovntdq [{line}], ymm0", "vmovntdq [{line} + 32], ymm2",
            "vzeroupper",
            line = in(reg) line, words = in(reg) words.as_ptr(),
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
            out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack, preserves_flags),
        );
    }
}
