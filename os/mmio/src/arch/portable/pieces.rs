//! Copies between mapped memory and our own by words and bytes that are relaxed atomics: what Miri checks.

use crate::arch::pieces::{Direction, Pieces};
use crate::arch::words;

impl<D: Direction> Pieces for D {
    const LINES_ARE_OWN: bool = !D::IS_IN;

    #[inline(always)]
    unsafe fn one(mapped: *mut u8, own: *mut u8) {
        if D::IS_IN {
            // SAFETY: a byte of our own, as the contract of `Pieces` says.
            let byte = unsafe { own.read() };
            // SAFETY: a mapped, writable byte, as the contract of `Pieces` says.
            unsafe { words::store_byte(mapped, byte) };
        } else {
            // SAFETY: a mapped byte, as the contract of `Pieces` says.
            let byte = unsafe { words::load_byte(mapped) };
            // SAFETY: a writable byte of our own, as the contract of `Pieces` says.
            unsafe { own.write(byte) };
        }
    }

    #[inline(always)]
    unsafe fn two(mapped: *mut u8, own: *mut u8) {
        for at in 0..2 {
            // SAFETY: a byte of the two.
            unsafe { Self::one(mapped.wrapping_add(at), own.wrapping_add(at)) };
        }
    }

    #[inline(always)]
    unsafe fn four(mapped: *mut u8, own: *mut u8) {
        for at in 0..4 {
            // SAFETY: a byte of the four.
            unsafe { Self::one(mapped.wrapping_add(at), own.wrapping_add(at)) };
        }
    }

    #[inline(always)]
    unsafe fn eight(mapped: *mut u8, own: *mut u8) {
        let own = own.cast::<[u8; 8]>();
        if D::IS_IN {
            // SAFETY: 8 bytes of our own, as the contract of `Pieces` says; an array of bytes needs no alignment.
            let word = u64::from_le_bytes(unsafe { own.read() });
            // SAFETY: 8 mapped, writable bytes, aligned to 8, as the contract of `Pieces` says.
            unsafe { words::store_word(mapped, word) };
        } else {
            // SAFETY: 8 mapped bytes, aligned to 8, as the contract of `Pieces` says.
            let word = unsafe { words::load_word(mapped) };
            // SAFETY: 8 writable bytes of our own, as the contract of `Pieces` says; an array of bytes needs no alignment.
            unsafe { own.write(word.to_le_bytes()) };
        }
    }

    #[inline(always)]
    unsafe fn sixteen(mapped: *mut u8, own: *mut u8) {
        for at in [0, 8] {
            // SAFETY: a word of the two, aligned because the first is.
            unsafe { Self::eight(mapped.wrapping_add(at), own.wrapping_add(at)) };
        }
    }

    #[inline(always)]
    unsafe fn lines(mapped: *mut u8, own: *mut u8, lines: usize) {
        for at in (0..lines * crate::LINE_BYTES).step_by(8) {
            // SAFETY: a word of the lines, aligned because lines are.
            unsafe { Self::eight(mapped.wrapping_add(at), own.wrapping_add(at)) };
        }
    }
}
