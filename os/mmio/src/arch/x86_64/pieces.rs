//! Copies between mapped memory and our own on x86-64: general registers for small pieces, the widest vectors for lines.
//!
//! Neither `rep movsb` nor non-temporal stores. The first stores words in parts as it likes, and the second would need a
//! fence, because a copy comes before the word that announces it; up to 1 MiB neither is faster
//! (`beeline-bench run copy-sizes` has the C library's `memcpy`, which uses both, beside these).

use core::arch::asm;

use super::features::{has_avx2, has_avx512};
use crate::arch::pieces::{Direction, Pieces};

/// One load and one store of a general register.
macro_rules! register_piece {
    ($name:ident, $load:literal, $store:literal) => {
        #[inline(always)]
        unsafe fn $name(mapped: *mut u8, own: *mut u8) {
            let (from, to) = D::ends(mapped, own);
            // SAFETY: both ends have the bytes of the piece, one of them mapped and accessed by atomics and asm only, as the
            // contract of `Pieces` says and `copy.rs` establishes.
            unsafe {
                asm!(
                    $load, $store, from = in(reg) from, to = in(reg) to, piece = out(reg) _,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

impl<D: Direction> Pieces for D {
    const LINES_ARE_OWN: bool = !D::IS_IN;

    register_piece! { one, "movzx {piece:e}, byte ptr [{from}]", "mov byte ptr [{to}], {piece:l}" }
    register_piece! { two, "movzx {piece:e}, word ptr [{from}]", "mov word ptr [{to}], {piece:x}" }
    register_piece! { four, "mov {piece:e}, dword ptr [{from}]", "mov dword ptr [{to}], {piece:e}" }
    register_piece! { eight, "mov {piece}, qword ptr [{from}]", "mov qword ptr [{to}], {piece}" }

    /// By two loads: what the program has just stored by words is taken from where its stores wait, while one load of several of them
    /// would wait until all earlier stores are in the cache.
    #[inline(always)]
    unsafe fn sixteen(mapped: *mut u8, own: *mut u8) {
        let (from, to) = D::ends(mapped, own);
        // SAFETY: both ends have 16 bytes, one of them mapped and accessed by atomics and asm only, as the contract
        // of `Pieces` says and `copy.rs` establishes; SSE2 is part of x86-64.
        unsafe {
            asm!(
                "movq {piece}, qword ptr [{from}]", "movhps {piece}, qword ptr [{from} + 8]", "movdqu [{to}], {piece}",
                from = in(reg) from, to = in(reg) to, piece = out(xmm_reg) _,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn line(mapped: *mut u8, own: *mut u8) {
        let (from, to) = D::ends(mapped, own);
        // SAFETY: as in `sixteen`, of 64 bytes.
        unsafe {
            asm!(
                "movq {first}, qword ptr [{from}]", "movhps {first}, qword ptr [{from} + 8]",
                "movq {second}, qword ptr [{from} + 16]", "movhps {second}, qword ptr [{from} + 24]",
                "movq {third}, qword ptr [{from} + 32]", "movhps {third}, qword ptr [{from} + 40]",
                "movq {fourth}, qword ptr [{from} + 48]", "movhps {fourth}, qword ptr [{from} + 56]",
                "movdqu [{to}], {first}", "movdqu [{to} + 16], {second}",
                "movdqu [{to} + 32], {third}", "movdqu [{to} + 48], {fourth}",
                from = in(reg) from, to = in(reg) to,
                first = out(xmm_reg) _, second = out(xmm_reg) _, third = out(xmm_reg) _, fourth = out(xmm_reg) _,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn lines(mapped: *mut u8, own: *mut u8, lines: usize) {
        let (from, to) = D::ends(mapped, own);
        if lines == 0 {
        } else if has_avx512() {
            // SAFETY: both ends have the lines, as the contract of `Pieces` says; the CPU has AVX-512.
            unsafe { lines_avx512(from, to, lines) }
        } else if has_avx2() {
            // SAFETY: both ends have the lines, as the contract of `Pieces` says; the CPU has AVX2.
            unsafe { lines_avx2(from, to, lines) }
        } else {
            // SAFETY: both ends have the lines, as the contract of `Pieces` says.
            unsafe { lines_sse2(from, to, lines) }
        }
    }
}

/// Two lines a turn, an odd one first.
///
/// # Safety
/// `from` and `to` have `lines` lines, at least one; the CPU has AVX-512. One of them is mapped and aligned to 16.
#[inline(never)]
unsafe fn lines_avx512(from: *const u8, to: *mut u8, lines: usize) {
    // SAFETY: the lines of both ends, as the caller promises. Registers above 15 need no `vzeroupper`.
    unsafe {
        asm!(
            "test {left}, 1",
            "jz 2f",
            "vmovdqu64 zmm16, [{from}]", "vmovdqu64 [{to}], zmm16",
            "add {from}, 64", "add {to}, 64",
            "2:",
            "shr {left}, 1",
            "jz 4f",
            "3:",
            "vmovdqu64 zmm16, [{from}]", "vmovdqu64 zmm17, [{from} + 64]",
            "vmovdqu64 [{to}], zmm16", "vmovdqu64 [{to} + 64], zmm17",
            "sub {from}, -128", "sub {to}, -128",
            "dec {left}",
            "jnz 3b",
            "4:",
            from = inout(reg) from => _, to = inout(reg) to => _, left = inout(reg) lines => _,
            out("xmm16") _, out("xmm17") _,
            options(nostack),
        );
    }
}

/// Two lines a turn, an odd one first.
///
/// # Safety
/// `from` and `to` have `lines` lines, at least one; the CPU has AVX2. One of them is mapped and aligned to 16.
#[inline(never)]
unsafe fn lines_avx2(from: *const u8, to: *mut u8, lines: usize) {
    // SAFETY: the lines of both ends, as the caller promises. `vzeroupper` changes the upper halves of sixteen registers, all
    // declared as overwritten.
    unsafe {
        asm!(
            "test {left}, 1",
            "jz 2f",
            "vmovdqu ymm0, [{from}]", "vmovdqu ymm1, [{from} + 32]",
            "vmovdqu [{to}], ymm0", "vmovdqu [{to} + 32], ymm1",
            "add {from}, 64", "add {to}, 64",
            "2:",
            "shr {left}, 1",
            "jz 4f",
            "3:",
            "vmovdqu ymm0, [{from}]", "vmovdqu ymm1, [{from} + 32]",
            "vmovdqu ymm2, [{from} + 64]", "vmovdqu ymm3, [{from} + 96]",
            "vmovdqu [{to}], ymm0", "vmovdqu [{to} + 32], ymm1",
            "vmovdqu [{to} + 64], ymm2", "vmovdqu [{to} + 96], ymm3",
            "sub {from}, -128", "sub {to}, -128",
            "dec {left}",
            "jnz 3b",
            "4:",
            "vzeroupper",
            from = inout(reg) from => _, to = inout(reg) to => _, left = inout(reg) lines => _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
            out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack),
        );
    }
}

/// A line a turn.
///
/// # Safety
/// `from` and `to` have `lines` lines, at least one. One of them is mapped and aligned to 16.
#[inline(never)]
unsafe fn lines_sse2(from: *const u8, to: *mut u8, lines: usize) {
    // SAFETY: the lines of both ends, as the caller promises; SSE2 is part of x86-64.
    unsafe {
        asm!(
            "2:",
            "movdqu {a}, [{from}]", "movdqu {b}, [{from} + 16]",
            "movdqu {c}, [{from} + 32]", "movdqu {d}, [{from} + 48]",
            "movdqu [{to}], {a}", "movdqu [{to} + 16], {b}",
            "movdqu [{to} + 32], {c}", "movdqu [{to} + 48], {d}",
            "add {from}, 64", "add {to}, 64",
            "dec {left}",
            "jnz 2b",
            from = inout(reg) from => _, to = inout(reg) to => _, left = inout(reg) lines => _,
            a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _,
            options(nostack),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [`Pieces::lines`] takes one of them on each CPU; here each that this CPU can run.
    #[test]
    fn every_line_loop_copies_its_lines_and_no_byte_more() {
        type Loop = unsafe fn(*const u8, *mut u8, usize);
        let mut loops: Vec<(&str, Loop)> = vec![("sse2", lines_sse2)];
        loops.extend(has_avx2().then_some(("avx2", lines_avx2 as Loop)));
        loops.extend(has_avx512().then_some(("avx512", lines_avx512 as Loop)));
        let source: Vec<u8> = (0..700).map(|i| (i % 251) as u8 | 1).collect();
        for (name, lines) in loops {
            for count in 1..10 {
                for skip in [0, 1, 17] {
                    let mut target = vec![0; 64 + count * 64 + 64];
                    // SAFETY: both vectors have the lines, from these places on; no part of them is shared.
                    unsafe { lines(source[skip..].as_ptr(), target[64..].as_mut_ptr(), count) };
                    assert_eq!(target[64..][..count * 64], source[skip..][..count * 64], "{name}, {count}");
                    assert!(target[..64].iter().chain(&target[64 + count * 64..]).all(|byte| *byte == 0));
                }
            }
        }
    }
}
