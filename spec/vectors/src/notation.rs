//! Bytes and words as people write them in a case.
//!
//! Bytes are tokens with spaces between them: `a1b2c3` (hexadecimal digits, first byte first), `10..47` (every value
//! from 0x10 to 0x47), `w:0123456789abcdef` (a 64-bit number, which lies in memory little-endian). A token with `*28`
//! behind it is repeated 28 times.

use thiserror::Error;

/// Longest run of bytes that one notation may make; a guard against a slip in a repeat count.
const MAX_BYTES: usize = 1 << 20;

/// A token that is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotationError {
    /// Not hexadecimal digits, or an odd number of them.
    #[error("`{0}` is not an even number of hexadecimal digits")]
    Hex(String),
    /// Not two bytes, the lower one first.
    #[error("`{0}` is not a range of bytes like 10..47, lower one first")]
    Range(String),
    /// Not 16 digits.
    #[error("`{0}` is not a word like w:0123456789abcdef")]
    Word(String),
    /// Not a count, or one that makes too many bytes.
    #[error("`{0}` is not a repetition like 00*28")]
    Repeat(String),
}

/// The bytes that `text` stands for.
///
/// # Errors
/// The first token that is none.
pub fn parse_bytes(text: &str) -> Result<Vec<u8>, NotationError> {
    let mut bytes = Vec::new();
    for token in text.split_whitespace() {
        let (piece, count) = match token.split_once('*') {
            None => (token, 1),
            Some((piece, count)) => {
                let count = count.parse().map_err(|_| NotationError::Repeat(token.to_owned()))?;
                (piece, count)
            }
        };
        let piece = parse_piece(piece)?;
        if piece.len().saturating_mul(count) > MAX_BYTES - bytes.len() {
            return Err(NotationError::Repeat(token.to_owned()));
        }
        bytes.extend(piece.iter().copied().cycle().take(piece.len() * count));
    }
    Ok(bytes)
}

fn parse_piece(token: &str) -> Result<Vec<u8>, NotationError> {
    if let Some(digits) = token.strip_prefix("w:") {
        return parse_word(digits).map(|word| word.to_le_bytes().to_vec());
    }
    if let Some((first, last)) = token.split_once("..") {
        let range = || NotationError::Range(token.to_owned());
        let (first, last) = (byte(first).ok_or_else(range)?, byte(last).ok_or_else(range)?);
        return if first <= last { Ok((first..=last).collect()) } else { Err(range()) };
    }
    let pairs = token.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok().and_then(byte));
    pairs.collect::<Option<Vec<u8>>>().ok_or_else(|| NotationError::Hex(token.to_owned()))
}

fn byte(digits: &str) -> Option<u8> {
    let whole = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| whole)
}

/// A 64-bit number of exactly 16 hexadecimal digits.
///
/// # Errors
/// `digits` are not 16 hexadecimal digits.
pub fn parse_word(digits: &str) -> Result<u64, NotationError> {
    let whole = digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16)
        .ok()
        .filter(|_| whole)
        .ok_or_else(|| NotationError::Word(digits.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_token_is_read() {
        let bytes = parse_bytes("a1B2 10..13 00*3 0a0b*2 w:0102030405060708 ff..ff").unwrap();
        let expected =
            [0xa1, 0xb2, 0x10, 0x11, 0x12, 0x13, 0, 0, 0, 10, 11, 10, 11, 8, 7, 6, 5, 4, 3, 2, 1, 0xff];
        assert_eq!(bytes, expected);
        assert_eq!(parse_bytes("  ").unwrap(), [] as [u8; 0]);
        assert_eq!(parse_bytes("00..ff").unwrap().len(), 256);
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for bad in ["a", "zz", "é1", "+1"] {
            assert_eq!(parse_bytes(bad), Err(NotationError::Hex(bad.to_owned())));
        }
        for bad in ["13..10", "1..20", "10..", "10..1g"] {
            assert_eq!(parse_bytes(bad), Err(NotationError::Range(bad.to_owned())));
        }
        for bad in ["00*", "00*-1", "00*x", "00*99999999999"] {
            assert_eq!(parse_bytes(bad), Err(NotationError::Repeat(bad.to_owned())));
        }
        assert!(parse_bytes("w:12").is_err());
        assert_eq!(parse_word("00000000000000012"), Err(NotationError::Word("00000000000000012".to_owned())));
    }
}
