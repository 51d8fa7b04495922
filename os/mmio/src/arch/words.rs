//! Words and bytes as relaxed atomics: what small accesses use on every instruction set, and all of the portable twin.

use beeline_contract_memory::Line;

use crate::sync::{AtomicU8, AtomicU64, Ordering};

/// # Safety
/// `word` is 8 mapped bytes, aligned to 8, only accessed by atomics and asm.
#[inline(always)]
pub(crate) unsafe fn load_word(word: *const u8) -> u64 {
    // SAFETY: `word` is 8 mapped bytes, aligned to 8, that only atomics and asm access, as windows and regions cut
    // them; the reference does not outlive this function.
    let word = unsafe { AtomicU64::from_ptr(word.cast_mut().cast()) };
    // Relaxed: a word is compared with the blank before it is used, and nothing else is inferred from it.
    u64::from_le(word.load(Ordering::Relaxed))
}

/// # Safety
/// As for [`load_word`], writable.
#[inline(always)]
pub(crate) unsafe fn store_word(word: *mut u8, value: u64) {
    // SAFETY: `word` is 8 mapped, writable bytes, aligned to 8, that only atomics and asm access, as windows and
    // regions cut them; the reference does not outlive this function.
    let word = unsafe { AtomicU64::from_ptr(word.cast()) };
    // Relaxed: the principle; the receiver recovers the order.
    word.store(value.to_le(), Ordering::Relaxed);
}

/// # Safety
/// `byte` is a mapped byte, only accessed by atomics and asm.
#[inline(always)]
pub(crate) unsafe fn load_byte(byte: *const u8) -> u8 {
    if cfg!(miri) {
        let (word, shift) = word_around(byte.cast_mut());
        // SAFETY: the whole words of a mapping are mapped.
        return (unsafe { load_word(word) } >> shift) as u8;
    }
    // SAFETY: `byte` is a mapped byte that only atomics and asm access, inside the span that `copy.rs` checked; the
    // reference does not outlive this function.
    let byte = unsafe { AtomicU8::from_ptr(byte.cast_mut()) };
    // Relaxed: as for words.
    byte.load(Ordering::Relaxed)
}

/// # Safety
/// As for [`load_byte`], writable.
#[inline(always)]
#[cfg_attr(
    all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)),
    allow(dead_code, reason = "copies have asm for it")
)]
pub(crate) unsafe fn store_byte(byte: *mut u8, value: u8) {
    if cfg!(miri) {
        let (word, shift) = word_around(byte);
        // SAFETY: the whole words of a mapping are mapped; the reference does not outlive this function.
        let word = unsafe { AtomicU64::from_ptr(word.cast()) };
        let put = |old| Some((u64::from_le(old) & !(0xff << shift) | u64::from(value) << shift).to_le());
        // Relaxed: as for words.
        word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, put).expect("`put` always gives a value");
        return;
    }
    // SAFETY: `byte` is a mapped, writable byte that only atomics and asm access, inside the span that `copy.rs`
    // checked; the reference does not outlive this function.
    let byte = unsafe { AtomicU8::from_ptr(byte) };
    // Relaxed: as for words.
    byte.store(value, Ordering::Relaxed);
}

/// The word that a byte is part of, and the place of its lowest bit there. Miri's model of memory has no accesses of
/// two sizes to one place, so that there bytes are parts of words.
fn word_around(byte: *mut u8) -> (*mut u8, usize) {
    let inside = byte.addr() % 8;
    (byte.wrapping_sub(inside), inside * 8)
}

/// # Safety
/// `line` is 64 mapped bytes, aligned to 8, only accessed by atomics and asm.
#[inline(always)]
#[cfg_attr(target_arch = "aarch64", allow(dead_code, reason = "aarch64 loads pairs"))]
pub(crate) unsafe fn load_line(line: *const u8) -> Line {
    // SAFETY: inside the line, and aligned because the line is.
    core::array::from_fn(|i| unsafe { load_word(line.wrapping_add(i * 8)) })
}

#[inline(always)]
pub(crate) fn words_of(bytes: &[u8; 64]) -> Line {
    let (words, _) = bytes.as_chunks::<8>();
    core::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

/// A bit for each word that is not `blank`.
#[inline(always)]
pub(crate) fn differing(words: &Line, blank: u64) -> u8 {
    words.iter().enumerate().fold(0, |mask, (i, word)| mask | u8::from(*word != blank) << i)
}

/// Bit 63 of each word, bit i for word i.
#[inline(always)]
pub(crate) fn tops(words: &Line) -> u8 {
    words.iter().enumerate().fold(0, |mask, (i, word)| mask | ((word >> 63) as u8) << i)
}
