//! Lines made of bytes, without a detour through a byte buffer.
//!
//! A buffer that is filled a few bytes at a time and then loaded as a vector stalls the core until its store buffer
//! has drained (no store forwarding), which costs more than a one-line message may; so tails are shifted, not copied.

/// Writes `bytes` into `words`, and zeros where they end inside a word; words after that are left alone. Panics when
/// the bytes are more than the words hold.
///
/// It writes in place: a line returned by value is copied in other pieces than it was stored in, and stalls.
#[inline]
pub fn fill_words(words: &mut [u64], bytes: &[u8]) {
    assert!(bytes.len() <= words.len() * 8, "{} bytes do not fit {} words", bytes.len(), words.len());
    // One arm for each number of whole words, so that each is straight code with fixed places.
    match bytes.len() / 8 {
        0 => fill::<0>(words, bytes),
        1 => fill::<1>(words, bytes),
        2 => fill::<2>(words, bytes),
        3 => fill::<3>(words, bytes),
        4 => fill::<4>(words, bytes),
        5 => fill::<5>(words, bytes),
        6 => fill::<6>(words, bytes),
        7 => fill::<7>(words, bytes),
        _ => fill::<8>(words, bytes),
    }
}

/// Whether a whole word of `bytes`, counted from their start, equals `word`. Folds a line at a time, so that the
/// compiler makes vectors of it.
#[inline]
pub fn has_word(bytes: &[u8], word: u64) -> bool {
    let (words, _) = bytes.as_chunks::<8>();
    let (lines, rest) = words.as_chunks::<8>();
    let differs = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes) != word;
    lines.iter().any(|line| !line.iter().fold(true, |all, bytes| all & differs(bytes)))
        || !rest.iter().fold(true, |all, bytes| all & differs(bytes))
}

#[inline(always)]
fn fill<const WORDS: usize>(words: &mut [u64], bytes: &[u8]) {
    let whole = bytes.as_chunks::<8>().0;
    for i in 0..WORDS {
        words[i] = u64::from_le_bytes(whole[i]);
    }
    let tail = bytes.len() - WORDS * 8;
    if tail > 0 {
        words[WORDS] = match bytes.last_chunk::<8>() {
            Some(last) => u64::from_le_bytes(*last) >> (8 * (8 - tail)),
            None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Line;

    fn bytes_of(line: Line) -> [u8; 64] {
        let mut bytes = [0; 64];
        for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(line) {
            *chunk = word.to_le_bytes();
        }
        bytes
    }

    #[test]
    fn lines_are_their_bytes_padded_with_zeros() {
        let payload: [u8; 64] = core::array::from_fn(|i| i as u8 + 1);
        for count in 0..=64 {
            let mut expected = [0; 64];
            expected[..count].copy_from_slice(&payload[..count]);
            let mut line = [0; 8];
            fill_words(&mut line, &payload[..count]);
            assert_eq!(bytes_of(line), expected, "{count} bytes");
            if count <= 56 {
                expected.copy_within(..56, 8);
                expected[..8].fill(0xab);
                let mut line = [u64::from_le_bytes([0xab; 8]), 0, 0, 0, 0, 0, 0, 0];
                fill_words(&mut line[1..], &payload[..count]);
                assert_eq!(bytes_of(line), expected, "{count} bytes after a header");
            }
        }
    }

    #[test]
    #[should_panic(expected = "57 bytes do not fit 7 words")]
    fn a_head_line_takes_56_bytes() {
        fill_words(&mut [0; 7], &[0; 57]);
    }
}
