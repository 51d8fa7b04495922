//! The store kernels of x86-64.
//!
//! They are asm and not intrinsics: the contract of the non-temporal intrinsics demands a fence that is deliberately
//! not issued, and an intrinsic may be compiled to something else. Vector kernels use registers 16 and up where the
//! encoding allows it: those do not dirty the upper halves that slow SSE code down, so no `vzeroupper` is due.
//!
//! Words of a line that were just computed are loaded in words (`movq`, `movhps`) and joined: a wide load over narrow
//! stores waits until the store buffer has drained, which measures 5 ns a line.

use core::arch::asm;

use beeline_contract_memory::Line;

use super::avx2::{CachedAvx2, NtAvx2};
use super::avx512::{CachedAvx512, Movdir64bAvx512, NtAvx512};
use crate::arch::{LineKernel, kernel_port, kernels, words};

kernels! {
    /// Cached stores, 16 bytes each, or 8 when the words are in registers.
    Cached => Cached,
    /// Two cached 32-byte stores, or words.
    CachedAvx2 => CachedAvx2,
    /// One cached 64-byte store.
    CachedAvx512 => CachedAvx512,
    /// Eight `movnti`.
    Nt8 => Nt8,
    /// Four `movntdq`.
    NtSse2 => NtSse2,
    /// Two `vmovntdq` of 32 bytes.
    NtAvx2 => NtAvx2,
    /// One `vmovntdq` of 64 bytes.
    NtAvx512 => NtAvx512,
    /// One `movdir64b`, its source staged by words.
    Movdir64b => Movdir64b,
    /// One `movdir64b`, its source staged by one 64-byte store.
    Movdir64bAvx512 => Movdir64bAvx512,
}

/// `movnti`: stores a word past the cache.
///
/// # Safety
/// `word` is 8 mapped, writable bytes, aligned to 8.
#[inline(always)]
pub(super) unsafe fn movnti(word: *mut u8, value: u64) {
    // SAFETY: `word` is a word of a window, as each kernel's `word` passes it on: 8 mapped, writable bytes, aligned to
    // 8; SSE2 is part of x86-64.
    unsafe {
        asm!("movnti [{word}], {value}", word = in(reg) word, value = in(reg) value, options(nostack, preserves_flags))
    }
}

/// Stores the words of a line from registers, with eight instructions of the kind named.
macro_rules! store_registers {
    ($store:literal, $line:expr, $words:expr) => {
        asm!(
            concat!($store, " [{line}], {a}"), concat!($store, " [{line} + 8], {b}"),
            concat!($store, " [{line} + 16], {c}"), concat!($store, " [{line} + 24], {d}"),
            concat!($store, " [{line} + 32], {e}"), concat!($store, " [{line} + 40], {f}"),
            concat!($store, " [{line} + 48], {g}"), concat!($store, " [{line} + 56], {h}"),
            line = in(reg) $line,
            a = in(reg) $words[0], b = in(reg) $words[1], c = in(reg) $words[2], d = in(reg) $words[3],
            e = in(reg) $words[4], f = in(reg) $words[5], g = in(reg) $words[6], h = in(reg) $words[7],
            options(nostack, preserves_flags),
        )
    };
}

/// Cached stores: of 8 bytes when the words are in registers, otherwise of 16.
pub(crate) struct Cached;

impl LineKernel for Cached {
    #[inline(always)]
    unsafe fn words(line: *mut u8, words: &Line) {
        // SAFETY: `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only
        // (`KernelLines::new`).
        unsafe { store_registers!("mov", line, words) }
    }

    #[inline(always)]
    unsafe fn bytes(line: *mut u8, bytes: &[u8; 64]) {
        // SAFETY: `bytes` is a reference to 64 bytes, read without alignment; `line` is 64 mapped, writable bytes,
        // aligned to 64 and accessed by atomics and asm only (`KernelLines::new`); SSE2 is part of x86-64.
        unsafe {
            asm!(
                "movdqu {a}, [{bytes}]", "movdqu {b}, [{bytes} + 16]",
                "movdqu {c}, [{bytes} + 32]", "movdqu {d}, [{bytes} + 48]",
                "movdqa [{line}], {a}", "movdqa [{line} + 16], {b}",
                "movdqa [{line} + 32], {c}", "movdqa [{line} + 48], {d}",
                line = in(reg) line, bytes = in(reg) bytes,
                a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _,
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

kernel_port! { Cached }

/// Eight `movnti`, from registers.
pub(crate) struct Nt8;

impl LineKernel for Nt8 {
    #[inline(always)]
    unsafe fn words(line: *mut u8, words: &Line) {
        // SAFETY: `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only
        // (`KernelLines::new`); SSE2 is part of x86-64.
        unsafe { store_registers!("movnti", line, words) }
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
        unsafe { movnti(word, value) }
    }
}

kernel_port! { Nt8 }

/// Four `movntdq`.
pub(crate) struct NtSse2;

impl LineKernel for NtSse2 {
    #[inline(always)]
    unsafe fn words(line: *mut u8, words: &Line) {
        // SAFETY: `line` is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only
        // (`KernelLines::new`); SSE2 is part of x86-64.
        unsafe {
            asm!(
                "movq {a}, qword ptr [{words}]", "movhps {a}, qword ptr [{words} + 8]",
                "movq {b}, qword ptr [{words} + 16]", "movhps {b}, qword ptr [{words} + 24]",
                "movq {c}, qword ptr [{words} + 32]", "movhps {c}, qword ptr [{words} + 40]",
                "movq {d}, qword ptr [{words} + 48]", "movhps {d}, qword ptr [{words} + 56]",
                "movntdq [{line}], {a}", "movntdq [{line} + 16], {b}",
                "movntdq [{line} + 32], {c}", "movntdq [{line} + 48], {d}",
                line = in(reg) line, words = in(reg) words.as_ptr(),
                a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn bytes(line: *mut u8, bytes: &[u8; 64]) {
        // SAFETY: `bytes` is a reference to 64 bytes, read without alignment; `line` is 64 mapped, writable bytes,
        // aligned to 64 and accessed by atomics and asm only (`KernelLines::new`); SSE2 is part of x86-64.
        unsafe {
            asm!(
                "movdqu {a}, [{bytes}]", "movdqu {b}, [{bytes} + 16]",
                "movdqu {c}, [{bytes} + 32]", "movdqu {d}, [{bytes} + 48]",
                "movntdq [{line}], {a}", "movntdq [{line} + 16], {b}",
                "movntdq [{line} + 32], {c}", "movntdq [{line} + 48], {d}",
                line = in(reg) line, bytes = in(reg) bytes,
                a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn word(word: *mut u8, value: u64) {
        // SAFETY: `word` is 8 mapped, writable bytes, aligned to 8 and accessed by atomics and asm only
        // (`KernelLines::word`).
        unsafe { movnti(word, value) }
    }
}

kernel_port! { NtSse2 }

/// `movdir64b`: the only x86 store that is a 64-byte write by definition.
///
/// # Safety
/// `line` is 64 mapped, writable bytes, aligned to 64; the CPU has MOVDIR64B.
#[inline(always)]
pub(super) unsafe fn movdir64b(line: *mut u8, source: *const u8) {
    // SAFETY: `line` is a line of a window, as each kernel passes it on: 64 mapped, writable bytes, aligned to 64;
    // `source` is 64 readable bytes; only kernels that `features::kernel` chose on a CPU with MOVDIR64B call this.
    unsafe {
        asm!("movdir64b {line}, [{source}]", line = in(reg) line, source = in(reg) source, options(nostack, preserves_flags));
    }
}

/// One `movdir64b` from the words where they stand: on a CPU without AVX-512 there is no 64-byte store to stage with.
pub(crate) struct Movdir64b;

impl LineKernel for Movdir64b {
    #[inline(always)]
    unsafe fn words(line: *mut u8, words: &Line) {
        // SAFETY: `words` is a reference to 64 bytes; `line` is 64 mapped, writable bytes, aligned to 64 and accessed
        // by atomics and asm only (`KernelLines::new`); `features::kernel` chose it on a CPU with MOVDIR64B.
        unsafe { movdir64b(line, words.as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn bytes(line: *mut u8, bytes: &[u8; 64]) {
        // SAFETY: `bytes` is a reference to 64 bytes; `line` is 64 mapped, writable bytes, aligned to 64 and accessed
        // by atomics and asm only (`KernelLines::new`); `features::kernel` chose it on a CPU with MOVDIR64B.
        unsafe { movdir64b(line, bytes.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn word(word: *mut u8, value: u64) {
        // SAFETY: `word` is 8 mapped, writable bytes, aligned to 8 and accessed by atomics and asm only
        // (`KernelLines::word`).
        unsafe { movnti(word, value) }
    }
}

kernel_port! { Movdir64b }
