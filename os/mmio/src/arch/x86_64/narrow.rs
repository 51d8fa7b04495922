//! Lines stored a word at a time, straight from a short payload that was probably just written.
//!
//! A layer that puts a word of its own before a payload (calls, above all) has the payload from a program that wrote it some
//! nanoseconds ago, a word at a time: an answer that was copied together, a request that was filled in. A vector load over
//! such stores waits until they have left the core, and in an answer everything waits for that: 20 ns of the 200 of a call
//! between near cores of a Zen 3. Loads of the same words do not wait, so the line is never put together in a register.
//!
//! The words are stored from the last to the first. These are cached stores, which leave the core in order, so a receiver that
//! sees the header has the line: it does not begin to look for the rest of it. Nothing relies on that.

use crate::LINE_BYTES;
use crate::arch::words;

const WORDS: usize = LINE_BYTES / 8;

/// Stores `lead`, the payload and zeros, unless `is_refused` says so of a word of the lead behind the first or a whole one of the
/// payload; says whether it has stored. Panics when the payload is longer than what is left of a line.
///
/// # Safety
/// `line` is 64 mapped, writable bytes, aligned to 64, accessed by atomics and asm only.
#[inline(always)]
pub(super) unsafe fn store_unless<const LEAD: usize>(
    line: *mut u8,
    lead: [u64; LEAD],
    payload: &[u8],
    is_refused: impl Fn(u64) -> bool,
) -> bool {
    macro_rules! whole {
        ($words:literal) => {
            // SAFETY: `line` is what this function's own contract asks for.
            unsafe { store_whole::<LEAD, $words>(line, lead, payload, is_refused) }
        };
    }
    // One arm for each number of whole words, so that each is straight code with fixed places.
    match payload.len() / 8 {
        0 => whole!(0),
        1 => whole!(1),
        2 => whole!(2),
        3 => whole!(3),
        4 => whole!(4),
        5 => whole!(5),
        6 => whole!(6),
        7 => whole!(7),
        _ => whole!(8),
    }
}

/// [`store_unless`] of a payload with `WHOLE` whole words.
///
/// # Safety
/// As for [`store_unless`].
#[inline(always)]
unsafe fn store_whole<const LEAD: usize, const WHOLE: usize>(
    line: *mut u8,
    lead: [u64; LEAD],
    payload: &[u8],
    is_refused: impl Fn(u64) -> bool,
) -> bool {
    let (whole, tail) = payload.as_chunks::<8>();
    let whole = whole.first_chunk::<WHOLE>();
    let fits = LEAD + WHOLE < WORDS || LEAD + WHOLE == WORDS && tail.is_empty();
    let (Some(whole), true) = (whole, fits) else { too_long(payload.len(), LINE_BYTES - 8 * LEAD) };
    let last = tail_word(tail);
    if lead.iter().skip(1).any(|word| is_refused(*word))
        || whole.iter().any(|word| is_refused(u64::from_le_bytes(*word)))
    {
        return false;
    }
    for at in (0..WORDS).rev() {
        let word = if at < LEAD {
            lead[at]
        } else if at < LEAD + WHOLE {
            u64::from_le_bytes(whole[at - LEAD])
        } else if at == LEAD + WHOLE {
            last
        } else {
            0
        };
        // SAFETY: inside the line, which is 64 mapped, writable bytes, aligned to 64 and accessed by atomics and asm only, by
        // this function's own contract.
        unsafe { words::store_word(line.wrapping_add(8 * at), word) };
    }
    true
}

/// Less than a word of bytes as a word, in the pieces in which `Message::copy_out` writes what is behind the last whole word.
#[inline(always)]
fn tail_word(tail: &[u8]) -> u64 {
    let (mut word, mut rest, mut shift) = (0, tail, 0);
    if let (true, Some((piece, behind))) = (tail.len() & 4 != 0, rest.split_first_chunk::<4>()) {
        (word, rest, shift) = (u64::from(u32::from_le_bytes(*piece)), behind, 32);
    }
    if let (true, Some((piece, behind))) = (tail.len() & 2 != 0, rest.split_first_chunk::<2>()) {
        (word, rest, shift) = (word | u64::from(u16::from_le_bytes(*piece)) << shift, behind, shift + 16);
    }
    if let Some(byte) = rest.first() {
        word |= u64::from(*byte) << shift;
    }
    word
}

#[cold]
#[inline(never)]
pub(super) fn too_long(bytes: usize, limit: usize) -> ! {
    panic!("{bytes} bytes do not fit the {limit} left of a line");
}
