//! Copies between mapped memory and our own, sixteen bytes at a time.

use core::arch::asm;

/// # Safety
/// `from` is 16 mapped bytes, aligned to 16, only accessed by atomics and asm; `out` 16 writable bytes of our own.
#[inline(always)]
pub(crate) unsafe fn load_16(from: *const u8, out: *mut u8) {
    // SAFETY: `from` is 16 mapped bytes, aligned to 16, inside the span that `copy.rs` checked, which only atomics and
    // asm access; `out` is 16 bytes of the slice being filled; SSE2 is part of x86-64.
    unsafe {
        asm!(
            "movdqa {a}, [{from}]", "movdqu [{out}], {a}",
            from = in(reg) from, out = in(reg) out, a = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// `to` is 16 mapped, writable bytes, aligned to 16, only accessed by atomics and asm; `bytes` 16 readable ones.
#[inline(always)]
pub(crate) unsafe fn store_16(to: *mut u8, bytes: *const u8) {
    // SAFETY: `to` is 16 mapped, writable bytes, aligned to 16, inside the span that `copy.rs` checked, which only
    // atomics and asm access; `bytes` is 16 bytes of the slice being copied; SSE2 is part of x86-64.
    unsafe {
        asm!(
            "movdqu {a}, [{bytes}]", "movdqa [{to}], {a}",
            to = in(reg) to, bytes = in(reg) bytes, a = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
}
