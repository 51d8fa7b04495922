//! Copies between mapped memory and our own, of any size and alignment, as fast as the C library's `memcpy`.
//!
//! `copy_nonoverlapping` will not do: it promises the compiler that nobody else writes, and accesses bytes twice where that is
//! faster. Here each mapped byte is accessed once and each aligned word of the mapped side whole, so that a device sees no
//! store twice and a peer no word in parts; the order of the accesses is not defined. Stores are cached ones: later stores
//! follow them as any other.
//!
//! Below [`LINES_FROM`] bytes the copy is a few naturally aligned pieces of 1 to 16 bytes, which needs no loop to be set up.
//! From there on the side that is stored to is brought to a line, and whole lines are copied with the widest registers of the
//! CPU. (Our own side only where it is as far from 16 as the mapped side is: the ends of every register's bytes must be ends of
//! words of the mapped side.)
//! `beeline-bench run copy-sizes` has each size beside `memcpy`.

use crate::LINE_BYTES;
use crate::arch::pieces::{In, Out, Pieces};

/// Bytes from which on a copy has lines: two of them always lie whole in so many bytes.
const LINES_FROM: usize = 3 * LINE_BYTES;

/// Copies `bytes` to mapped memory.
///
/// # Safety
/// `to` is `bytes.len()` mapped, writable bytes that are only accessed by atomics and asm.
#[inline]
pub(crate) unsafe fn copy_in(to: *mut u8, bytes: &[u8]) {
    // SAFETY: the mapped bytes are the caller's promise; a slice is bytes of our own, which `In` only reads.
    unsafe { copy::<In>(to, bytes.as_ptr().cast_mut(), bytes.len()) }
}

/// Copies mapped memory to `bytes`.
///
/// # Safety
/// `from` is `bytes.len()` mapped bytes that are only accessed by atomics and asm.
#[inline]
pub(crate) unsafe fn copy_out(from: *const u8, bytes: &mut [u8]) {
    // SAFETY: the mapped bytes are the caller's promise, and `Out` only reads them; the slice is writable.
    unsafe { copy::<Out>(from.cast_mut(), bytes.as_mut_ptr(), bytes.len()) }
}

/// Copies mapped memory to mapped memory. Each byte of `to` is stored once and each aligned word whole, as into `to` by
/// [`copy_in`]. Where the two overlap, what is copied is some mix of what was there.
///
/// # Safety
/// `to` is `length` mapped, writable bytes and `from` as many mapped ones, which are only accessed by atomics and asm.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
pub(crate) unsafe fn copy_over(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: the mapped bytes are the caller's promise, and `In` only reads those of `from`, by asm.
    unsafe { copy::<In>(to, from.cast_mut(), length) }
}

/// As above, through bytes of our own: the copies here access only one side as memory that others write.
///
/// # Safety
/// As above.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
pub(crate) unsafe fn copy_over(to: *mut u8, from: *const u8, length: usize) {
    let mut own = [0; 4096];
    for done in (0..length).step_by(own.len()) {
        let own = &mut own[..(length - done).min(4096)];
        // SAFETY: so many of the bytes are left, which are the caller's promise.
        unsafe {
            copy_out(from.wrapping_add(done), own);
            copy_in(to.wrapping_add(done), own);
        }
    }
}

/// Copies memory of the program to mapped memory, as [`MappedSegment::copy_in`](crate::MappedSegment::copy_in) does: for a program
/// that has pointers of both, and whose own memory may be mapped elsewhere, too. Where the two overlap it is not defined what is
/// copied.
///
/// # Safety
/// `from` is `bytes` that can be loaded, `to` as many that can be stored to, both during the call; no reference (`&mut`) is to either.
#[inline]
pub unsafe fn copy_in_raw(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's promise. `In` only loads from its own side, by asm or raw pointers.
    unsafe { copy::<In>(to, from.cast_mut(), bytes) }
}

/// As [`copy_in_raw`], where that takes a few instructions and no call: fewer than 192 bytes. Says whether it has copied.
///
/// # Safety
/// As for [`copy_in_raw`].
#[inline(always)]
pub unsafe fn copy_in_if_short(to: *mut u8, from: *const u8, bytes: usize) -> bool {
    if bytes >= LINES_FROM {
        return false;
    }
    let mut place = Place { mapped: to, own: from.cast_mut(), left: bytes };
    // SAFETY: all bytes are left, which are the caller's promise.
    unsafe { place.align::<In>() };
    // SAFETY: as above: `align` has aligned the mapped side to 16, or fewer bytes than its alignment are left.
    unsafe { place.short::<In>() };
    true
}

/// Has this core's cache fetch the line that [`copy_in_raw`] is about to store to first. A hint, at any address.
#[inline(always)]
pub fn prefetch_copy_in(to: *mut u8) {
    crate::arch::prefetch_to_write(to);
}

/// Copies mapped memory to memory of the program, as [`copy_in_raw`] does in the other direction.
///
/// # Safety
/// As for [`copy_in_raw`].
#[inline]
pub unsafe fn copy_out_raw(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise. `Out` only loads from the mapped side.
    unsafe { copy::<Out>(from.cast_mut(), to, bytes) }
}

/// # Safety
/// `length` bytes at `mapped` and `own`, as [`Pieces`] asks for.
#[inline(always)]
unsafe fn copy<P: Pieces>(mapped: *mut u8, own: *mut u8, length: usize) {
    if length < LINES_FROM && mapped.addr().is_multiple_of(16) {
        // Messages, mostly: without a call, whose registers would be stored to the stack between the stores that count.
        let mut place = Place { mapped, own, left: length };
        // SAFETY: all bytes are left, and the mapped side is a multiple of 16.
        unsafe { place.short::<P>() };
    } else {
        // SAFETY: the caller's promise.
        unsafe { copy_any::<P>(mapped, own, length) };
    }
}

/// # Safety
/// As for [`copy`].
#[inline(never)]
unsafe fn copy_any<P: Pieces>(mapped: *mut u8, own: *mut u8, length: usize) {
    let mut place = Place { mapped, own, left: length };
    // SAFETY: all bytes are left.
    unsafe { place.align::<P>() };
    if length >= LINES_FROM {
        // SAFETY: as for `align`; it has aligned the mapped side to 16, because more than 16 bytes were left.
        unsafe { place.lines::<P>() };
    }
    // SAFETY: as above: `align` has aligned the mapped side to 16, or fewer bytes than its alignment are left.
    unsafe { place.rest::<P>() };
}

/// How far a copy has come.
struct Place {
    mapped: *mut u8,
    own: *mut u8,
    left: usize,
}

/// Moves a piece of `$bytes` bytes and goes on behind it.
macro_rules! piece {
    ($place:expr, $piece:ident, $bytes:expr) => {{
        let place: &mut Place = $place;
        // SAFETY: so many bytes are left, and the mapped side is a multiple of them, as the function around checked.
        unsafe { P::$piece(place.mapped, place.own) };
        place.step($bytes);
    }};
}

impl Place {
    #[inline(always)]
    fn step(&mut self, bytes: usize) {
        self.mapped = self.mapped.wrapping_add(bytes);
        self.own = self.own.wrapping_add(bytes);
        self.left -= bytes;
    }

    /// Whether the mapped side has to move on by so many bytes to be a multiple of twice as many, and can.
    #[inline(always)]
    fn is_off(&self, bytes: usize) -> bool {
        self.mapped.addr() & bytes != 0 && self.left >= bytes
    }

    /// Brings the mapped side to a multiple of 16, or to where fewer bytes are left than it is a multiple of.
    ///
    /// # Safety
    /// `left` bytes at both ends, as [`Pieces`] asks for.
    #[inline(always)]
    unsafe fn align<P: Pieces>(&mut self) {
        if self.mapped.addr().is_multiple_of(16) {
            return;
        }
        if self.is_off(1) {
            piece!(self, one, 1);
        }
        if self.is_off(2) {
            piece!(self, two, 2);
        }
        if self.is_off(4) {
            piece!(self, four, 4);
        }
        if self.is_off(8) {
            piece!(self, eight, 8);
        }
    }

    /// Moves all lines that are whole on one side.
    ///
    /// # Safety
    /// As for [`Place::align`]; the mapped side is a multiple of 16, and [`LINE_BYTES`] are left.
    #[inline(always)]
    unsafe fn lines<P: Pieces>(&mut self) {
        let is_own = P::LINES_ARE_OWN && self.own.addr().is_multiple_of(16);
        let stored = if is_own { self.own } else { self.mapped };
        let pieces = stored.addr().wrapping_neg() % LINE_BYTES / 16;
        for _ in 0..pieces {
            piece!(self, sixteen, 16);
        }
        let lines = self.left / LINE_BYTES;
        // SAFETY: so many lines are left, and the mapped side is still a multiple of 16.
        unsafe { P::lines(self.mapped, self.own, lines) };
        self.step(lines * LINE_BYTES);
    }

    /// Moves what is left, of which there are mostly whole lines.
    ///
    /// # Safety
    /// As for [`Place::rest`].
    #[inline(always)]
    unsafe fn short<P: Pieces>(&mut self) {
        while self.left >= LINE_BYTES {
            piece!(self, line, LINE_BYTES);
        }
        if self.left > 0 {
            // SAFETY: as for this function; behind whole lines it is still a multiple of 16.
            unsafe { self.rest::<P>() };
        }
    }

    /// Moves what is left.
    ///
    /// # Safety
    /// As for [`Place::align`]; the mapped side is a multiple of 16, or of a power of two above `left`.
    #[inline(always)]
    unsafe fn rest<P: Pieces>(&mut self) {
        while self.left >= 16 {
            piece!(self, sixteen, 16);
        }
        if self.left & 8 != 0 {
            piece!(self, eight, 8);
        }
        if self.left & 4 != 0 {
            piece!(self, four, 4);
        }
        if self.left & 2 != 0 {
            piece!(self, two, 2);
        }
        if self.left & 1 != 0 {
            piece!(self, one, 1);
        }
    }
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
