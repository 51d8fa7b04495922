//! What copies between mapped memory and our own are made of: one access for each piece, whole lines in a loop.

/// Into mapped memory.
#[derive(Debug)]
pub(crate) struct In;

/// Out of mapped memory.
#[derive(Debug)]
pub(crate) struct Out;

/// [`In`] or [`Out`]. Each instruction set has the [`Pieces`] of both in one `impl`.
pub(crate) trait Direction {
    /// Whether bytes go into mapped memory.
    const IS_IN: bool;

    /// Where bytes come from and go to.
    #[inline(always)]
    #[cfg_attr(
        not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))),
        allow(dead_code, reason = "copies without asm access the two sides differently")
    )]
    fn ends(mapped: *mut u8, own: *mut u8) -> (*const u8, *mut u8) {
        if Self::IS_IN { (own, mapped) } else { (mapped, own) }
    }
}

impl Direction for In {
    const IS_IN: bool = true;
}

impl Direction for Out {
    const IS_IN: bool = false;
}

/// Moves bytes in one direction. Each mapped byte is accessed once, so that a device sees no store twice, and each aligned
/// word of the mapped side by one instruction.
///
/// # Safety
/// For every function: as many bytes as it moves are mapped at `mapped`, writable for [`In`], and only accessed by atomics and
/// asm; `mapped` is a multiple of the piece, or of 16 for lines. At `own` there are as many bytes of this process alone,
/// writable for [`Out`], at any alignment. Where the pieces are made of asm ([`Direction::ends`]), those at `own` may be mapped
/// ones, too, of which no word is whole for others then.
pub(crate) trait Pieces {
    /// Whether lines are those of our own side, where both sides cannot begin at one: it is stores across lines that cost.
    const LINES_ARE_OWN: bool;

    unsafe fn one(mapped: *mut u8, own: *mut u8);
    unsafe fn two(mapped: *mut u8, own: *mut u8);
    unsafe fn four(mapped: *mut u8, own: *mut u8);
    unsafe fn eight(mapped: *mut u8, own: *mut u8);
    unsafe fn sixteen(mapped: *mut u8, own: *mut u8);
    /// Moves a line of 64 bytes as [`Pieces::sixteen`] moves its parts: for few lines, which the program may have stored just now.
    #[inline(always)]
    unsafe fn line(mapped: *mut u8, own: *mut u8) {
        for part in [0, 16, 32, 48] {
            // SAFETY: a part of the line that the caller promises, and a multiple of 16 as that is.
            unsafe { Self::sixteen(mapped.wrapping_add(part), own.wrapping_add(part)) };
        }
    }

    /// Moves `lines` lines of 64 bytes.
    unsafe fn lines(mapped: *mut u8, own: *mut u8, lines: usize);
}
