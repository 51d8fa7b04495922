//! The store kernels of aarch64.
//!
//! A pair store of two 64-bit registers is two single-copy atomic words, one of two 128-bit registers four (Arm ARM
//! B2.2.1, for addresses aligned to 8).

use core::arch::asm;

use beeline_contract_memory::Line;

use crate::arch::{LineKernel, kernel_port, kernels, words};

kernels! {
    /// `stp`.
    Cached => Cached,
    /// `stnp`: the hint that the line is not read again here.
    Stnp => Stnp,
    /// One `st64b`.
    St64b => St64b,
}

/// The kernels that differ in the pair store only.
macro_rules! pair_kernel {
    ($name:ident, $pair:literal) => {
        pub(crate) struct $name;

        impl LineKernel for $name {
            #[inline(always)]
            unsafe fn words(line: *mut u8, words: &Line) {
                // SAFETY: `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only
                // (`KernelLines::new`).
                unsafe {
                    asm!(
                        concat!($pair, " {a}, {b}, [{line}]"),
                        concat!($pair, " {c}, {d}, [{line}, #16]"),
                        concat!($pair, " {e}, {f}, [{line}, #32]"),
                        concat!($pair, " {g}, {h}, [{line}, #48]"),
                        line = in(reg) line,
                        a = in(reg) words[0].to_le(), b = in(reg) words[1].to_le(),
                        c = in(reg) words[2].to_le(), d = in(reg) words[3].to_le(),
                        e = in(reg) words[4].to_le(), f = in(reg) words[5].to_le(),
                        g = in(reg) words[6].to_le(), h = in(reg) words[7].to_le(),
                        options(nostack, preserves_flags),
                    );
                }
            }

            #[inline(always)]
            unsafe fn bytes(line: *mut u8, bytes: &[u8; 64]) {
                // SAFETY: `bytes` is a reference to 64 bytes, read without alignment; `line` is 64 mapped, writable
                // bytes, aligned to 64 and accessed by atomics and asm only (`KernelLines::new`).
                unsafe {
                    asm!(
                        "ldp {a:q}, {b:q}, [{bytes}]",
                        "ldp {c:q}, {d:q}, [{bytes}, #32]",
                        concat!($pair, " {a:q}, {b:q}, [{line}]"),
                        concat!($pair, " {c:q}, {d:q}, [{line}, #32]"),
                        line = in(reg) line, bytes = in(reg) bytes,
                        a = out(vreg) _, b = out(vreg) _, c = out(vreg) _, d = out(vreg) _,
                        options(nostack, preserves_flags),
                    );
                }
            }

            #[inline(always)]
            unsafe fn word(word: *mut u8, value: u64) {
                // SAFETY: `word` is 8 mapped, writable bytes, aligned to 8 and accessed by atomics and asm only
                // (`KernelLines::word`).
                unsafe { words::store_word(word, value) }
            }
        }

        kernel_port! { $name }
    };
}

pair_kernel!(Cached, "stp");
pair_kernel!(Stnp, "stnp");

/// One `st64b`: a single 64-byte write to device memory.
pub(crate) struct St64b;

impl LineKernel for St64b {
    #[inline(always)]
    unsafe fn words(line: *mut u8, words: &Line) {
        // SAFETY: `line` is 64 mapped, writable bytes of device memory, aligned to 64 and accessed by atomics and asm
        // only (`KernelLines::new`); `features::kernel` chose it on a CPU with FEAT_LS64.
        unsafe {
            asm!(
                // st64b x0, [x8]: spelt as its encoding, so that no assembler option is needed.
                ".inst 0xf83f9100",
                in("x8") line,
                in("x0") words[0].to_le(), in("x1") words[1].to_le(),
                in("x2") words[2].to_le(), in("x3") words[3].to_le(),
                in("x4") words[4].to_le(), in("x5") words[5].to_le(),
                in("x6") words[6].to_le(), in("x7") words[7].to_le(),
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn bytes(line: *mut u8, bytes: &[u8; 64]) {
        // SAFETY: `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only
        // (`KernelLines::new`).
        unsafe { Self::words(line, &words::words_of(bytes)) }
    }

    #[inline(always)]
    unsafe fn word(word: *mut u8, value: u64) {
        // SAFETY: `word` is 8 mapped, writable bytes, aligned to 8 and accessed by atomics and asm only
        // (`KernelLines::word`).
        unsafe { words::store_word(word, value) }
    }
}

kernel_port! { St64b }
