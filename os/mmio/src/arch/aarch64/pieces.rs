//! Copies between mapped memory and our own on aarch64: pairs of 16-byte registers for lines, each two single-copy atomic
//! words.

use core::arch::asm;

use crate::arch::pieces::{Direction, Pieces};

/// One load and one store of a register.
macro_rules! register_piece {
    ($name:ident, $class:ident, $load:literal, $store:literal) => {
        #[inline(always)]
        unsafe fn $name(mapped: *mut u8, own: *mut u8) {
            let (from, to) = D::ends(mapped, own);
            // SAFETY: both ends have the bytes of the piece, one of them mapped and accessed by atomics and asm only, as the
            // contract of `Pieces` says and `copy.rs` establishes.
            unsafe {
                asm!(
                    $load, $store, from = in(reg) from, to = in(reg) to, piece = out($class) _,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

impl<D: Direction> Pieces for D {
    const LINES_ARE_OWN: bool = !D::IS_IN;

    register_piece! { one, reg, "ldrb {piece:w}, [{from}]", "strb {piece:w}, [{to}]" }
    register_piece! { two, reg, "ldrh {piece:w}, [{from}]", "strh {piece:w}, [{to}]" }
    register_piece! { four, reg, "ldr {piece:w}, [{from}]", "str {piece:w}, [{to}]" }
    register_piece! { eight, reg, "ldr {piece}, [{from}]", "str {piece}, [{to}]" }
    register_piece! { sixteen, vreg, "ldr {piece:q}, [{from}]", "str {piece:q}, [{to}]" }

    #[inline(always)]
    unsafe fn lines(mapped: *mut u8, own: *mut u8, lines: usize) {
        let (from, to) = D::ends(mapped, own);
        if lines > 0 {
            // SAFETY: both ends have the lines, as the contract of `Pieces` says.
            unsafe { copy_lines(from, to, lines) }
        }
    }
}

/// A line a turn.
///
/// # Safety
/// `from` and `to` have `lines` lines, at least one. One of them is mapped and aligned to 16.
#[inline(never)]
unsafe fn copy_lines(from: *const u8, to: *mut u8, lines: usize) {
    // SAFETY: the lines of both ends, as the caller promises.
    unsafe {
        asm!(
            "2:",
            "ldp {a:q}, {b:q}, [{from}]", "ldp {c:q}, {d:q}, [{from}, #32]",
            "add {from}, {from}, #64",
            "stp {a:q}, {b:q}, [{to}]", "stp {c:q}, {d:q}, [{to}, #32]",
            "add {to}, {to}, #64",
            "sub {left}, {left}, #1",
            "cbnz {left}, 2b",
            from = inout(reg) from => _, to = inout(reg) to => _, left = inout(reg) lines => _,
            a = out(vreg) _, b = out(vreg) _, c = out(vreg) _, d = out(vreg) _,
            options(nostack, preserves_flags),
        );
    }
}
