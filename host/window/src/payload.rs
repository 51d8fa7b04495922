//! Payload bytes as words and back. (Bytes into lines to be stored: `contract/link`, `line.rs`.)

use beeline_spec::header::MAX_PAYLOAD_BYTES;
use beeline_spec::{LINE_BYTES, Line, WORD_BYTES, WORDS_PER_LINE};

/// Payload bytes that share the first line with the header word.
pub const HEAD_BYTES: usize = (WORDS_PER_LINE - 1) * WORD_BYTES;

/// Payload word `index` of a message, padded with zeros at and past the end.
pub(crate) fn word_at(payload: &[u8], index: usize) -> u64 {
    let rest = payload.get(index * WORD_BYTES..).unwrap_or(&[]);
    let bytes = &rest[..rest.len().min(WORD_BYTES)];
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Longest payload that a message of `lines` lines (at least one) carries.
pub(crate) fn payload_bytes_of(lines: u32) -> u32 {
    let bytes = u64::from(lines) * LINE_BYTES as u64 - (LINE_BYTES - HEAD_BYTES) as u64;
    bytes.min(u64::from(MAX_PAYLOAD_BYTES)) as u32
}

/// Index of the last whole payload word equal to `blank`.
pub(crate) fn last_word(payload: &[u8], blank: u64) -> Option<usize> {
    payload.as_chunks::<WORD_BYTES>().0.iter().rposition(|bytes| u64::from_le_bytes(*bytes) == blank)
}

/// Folds the words of a full first line, without a loop.
#[inline(always)]
pub(crate) fn fold_full<T>(word: impl Fn(u32) -> u64, start: T, mut fold: impl FnMut(T, u64) -> T) -> T {
    // All of them first: the compiler takes a load of a word that others store for something that may change any variable that
    // has a place in memory.
    let (a, b, c, d, e, f, g) = (word(0), word(1), word(2), word(3), word(4), word(5), word(6));
    let mut folded = fold(start, a);
    folded = fold(folded, b);
    folded = fold(folded, c);
    folded = fold(folded, d);
    folded = fold(folded, e);
    folded = fold(folded, f);
    fold(folded, g)
}

/// The bytes of a line in memory order.
#[inline]
pub(crate) fn line_bytes(line: &Line) -> [u8; WORDS_PER_LINE * WORD_BYTES] {
    let mut bytes = [0; WORDS_PER_LINE * WORD_BYTES];
    for (chunk, word) in bytes.as_chunks_mut::<WORD_BYTES>().0.iter_mut().zip(line) {
        *chunk = word.to_le_bytes();
    }
    bytes
}

/// Copies the bytes of words into `out`, as many as `out` takes; `word` gives the words, each at most once.
#[inline(always)]
pub(crate) fn copy_words(mut word: impl FnMut(usize) -> u64, out: &mut [u8]) {
    let (chunks, tail) = out.as_chunks_mut::<WORD_BYTES>();
    let whole = chunks.len();
    if let Ok(full) = <&mut [[u8; WORD_BYTES]; WORDS_PER_LINE - 1]>::try_from(&mut *chunks) {
        // What a full first line holds is the common size: no loop.
        full.iter_mut().enumerate().for_each(|(index, chunk)| *chunk = word(index).to_le_bytes());
    } else {
        chunks.iter_mut().enumerate().for_each(|(index, chunk)| *chunk = word(index).to_le_bytes());
    }
    if !tail.is_empty() {
        copy_tail(word(whole).to_le_bytes(), tail);
    }
}

/// The first bytes of a word into `out`, less than a word: in pieces that are powers of two, the largest first. Who sends `out` on
/// at once loads the same pieces, and need not wait until they have left the core.
#[inline(always)]
fn copy_tail(bytes: [u8; WORD_BYTES], out: &mut [u8]) {
    let bytes_left = out.len();
    let (mut from, mut rest) = (&bytes[..], out);
    if bytes_left & 4 != 0 {
        (from, rest) = copy_piece::<4>(from, rest);
    }
    if bytes_left & 2 != 0 {
        (from, rest) = copy_piece::<2>(from, rest);
    }
    if bytes_left & 1 != 0 {
        copy_piece::<1>(from, rest);
    }
}

/// Copies the first bytes; gives what is behind them on both sides.
#[inline(always)]
fn copy_piece<'f, 'o, const BYTES: usize>(from: &'f [u8], out: &'o mut [u8]) -> (&'f [u8], &'o mut [u8]) {
    let (piece, from_behind) = from.split_at(BYTES);
    let (to, out_behind) = out.split_at_mut(BYTES);
    to.copy_from_slice(piece);
    (from_behind, out_behind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_contract_memory::has_word;

    fn bytes(count: usize) -> Vec<u8> {
        (1..=count).map(|i| i as u8).collect()
    }

    #[test]
    fn words_are_found_wherever_they_stand() {
        let blank = u64::MAX;
        // Miri is slow: it has a count of each alignment, and some words before it.
        for count in (0..200).step_by(if cfg!(miri) { 13 } else { 1 }) {
            let mut payload = bytes(count);
            assert!(!has_word(&payload, blank));
            assert_eq!(last_word(&payload, blank), None);
            for index in 0..count / 8 {
                let whole = payload[index * 8..][..8].to_vec();
                payload[index * 8..][..8].fill(0xff);
                assert!(has_word(&payload, blank), "word {index} of {count} bytes");
                assert_eq!(last_word(&payload, blank), Some(index));
                payload[index * 8..][..8].copy_from_slice(&whole);
            }
        }
    }

    #[test]
    fn copying_words_takes_what_fits() {
        let words = [0x0807_0605_0403_0201, 0x100f_0e0d_0c0b_0a09];
        for count in 0..=16 {
            let mut out = vec![0; count];
            copy_words(|index| words[index], &mut out);
            assert_eq!(out, bytes(count));
        }
        assert_eq!(word_at(&bytes(11), 1), 0x000b_0a09);
        assert_eq!(word_at(&bytes(11), 2), 0);
    }
}
