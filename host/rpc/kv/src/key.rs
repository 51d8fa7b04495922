//! Keys: 16 bytes, two words on the wire.

use core::fmt;
use core::hash::{Hash, Hasher};

/// Length of every key on the wire; [`Key::from_text`] pads a shorter text.
pub const KEY_BYTES: usize = 16;

/// A key. Shorter texts are padded with zero bytes, which no text may contain, so no two texts are one key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key([u8; KEY_BYTES]);

/// Reasons for which a text is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Empty, or too long.
    #[error("a key of {bytes} bytes; it must have 1 to {KEY_BYTES}")]
    Length { bytes: usize },
    /// A zero byte in a text.
    #[error("a zero byte at offset {at} of a text key; give such a key in hexadecimal")]
    Zero { at: usize },
    /// Not 32 hexadecimal digits.
    #[error("`{text}` is no raw key: {} hexadecimal digits are needed, for {KEY_BYTES} bytes", 2 * KEY_BYTES)]
    Hex { text: String },
}

impl Key {
    /// Makes a key of raw bytes, any of which may be zero.
    #[inline(always)]
    pub const fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Key(bytes)
    }

    /// The key that a text of 1 to 16 bytes names.
    ///
    /// # Errors
    /// [`KeyError::Length`], [`KeyError::Zero`].
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        if !(1..=KEY_BYTES).contains(&text.len()) {
            return Err(KeyError::Length { bytes: text.len() });
        }
        if let Some(at) = text.bytes().position(|byte| byte == 0) {
            return Err(KeyError::Zero { at });
        }
        let mut bytes = [0; KEY_BYTES];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Key(bytes))
    }

    /// The key that 32 hexadecimal digits give.
    ///
    /// # Errors
    /// [`KeyError::Hex`].
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        let is_hex = text.len() == 2 * KEY_BYTES && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        number.map(|number| Key(number.to_be_bytes())).ok_or_else(|| KeyError::Hex { text: text.to_owned() })
    }

    /// The two words of a request, as [`beeline_rpc::Request::word`] reads them.
    #[inline(always)]
    pub const fn from_words(words: [u64; 2]) -> Self {
        Key((words[0] as u128 | (words[1] as u128) << 64).to_le_bytes())
    }

    /// Its two words, little-endian.
    #[inline(always)]
    pub const fn words(self) -> [u64; 2] {
        let whole = u128::from_le_bytes(self.0);
        [whole as u64, (whole >> 64) as u64]
    }

    /// Returns the bytes as they travel.
    #[inline(always)]
    pub const fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

/// As its two words, with no length before them: every key has the same.
impl Hash for Key {
    #[inline(always)]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let [first, second] = self.words();
        hasher.write_u64(first);
        hasher.write_u64(second);
    }
}

/// As text if it is one that a person can read, else as 32 hexadecimal digits.
impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        match core::str::from_utf8(&self.0[..end]) {
            Ok(text) if end > 0 && !text.chars().any(char::is_control) => out.write_str(text),
            _ => write!(out, "{:032x}", u128::from_be_bytes(self.0)),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Key({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_padded_and_what_is_no_key_is_refused() {
        let key = Key::from_text("user:1").unwrap();
        assert_eq!(key.as_bytes(), b"user:1\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(key.to_string(), "user:1");
        assert_eq!(Key::from_text("sixteen bytes ok").unwrap().words()[0], u64::from_le_bytes(*b"sixteen "));
        assert_eq!(Key::from_text(""), Err(KeyError::Length { bytes: 0 }));
        assert_eq!(Key::from_text("seventeen bytes !"), Err(KeyError::Length { bytes: 17 }));
        assert_eq!(Key::from_text("a\0b"), Err(KeyError::Zero { at: 1 }));
        for text in ["", "00", "+0000000000000000000000000000001", "0000000000000000000000000000000g"] {
            assert!(Key::from_hex(text).is_err(), "{text}");
        }
    }

    #[test]
    fn raw_keys_are_shown_as_they_are_given() {
        let text = "00ff0000000000000000000000000001";
        let key = Key::from_hex(text).unwrap();
        assert_eq!((key.as_bytes()[1], key.as_bytes()[15], key.to_string()), (0xff, 1, text.to_owned()));
        assert_eq!(Key::new([0; 16]).to_string(), "0".repeat(32));
    }

    proptest! {
        #[test]
        fn words_and_hexadecimal_digits_give_the_key_back(bytes: [u8; KEY_BYTES]) {
            let key = Key::new(bytes);
            prop_assert_eq!(Key::from_words(key.words()), key);
            prop_assert_eq!(Key::from_hex(&format!("{:032X}", u128::from_be_bytes(bytes))), Ok(key));
            let (words, bytes) = (key.words(), key.as_bytes());
            prop_assert_eq!(&words[0].to_le_bytes()[..], &bytes[..8]);
            prop_assert_eq!(&words[1].to_le_bytes()[..], &bytes[8..]);
        }
    }
}
