//! What requests and answers are. Words are little-endian.
//!
//! | method | request | answer |
//! |---|---|---|
//! | [`GET`] | key | the value |
//! | [`SET`] | key, value | nothing |
//! | [`DELETE`] | key | nothing |
//! | [`STATS`] | nothing | [`MAGIC`], then the words of [`crate::KvStats`] |
//!
//! A key is 16 bytes. What fails does so with a code of this module: [`NOT_FOUND`], [`FULL`], [`VALUE_TOO_LONG`] or
//! [`MALFORMED`].

use beeline_rpc::Method;

/// The value of a key, or [`NOT_FOUND`].
pub const GET: Method = Method(0x4b01);
/// Stores a value, replacing the key's last one.
pub const SET: Method = Method(0x4b02);
/// Removes a key, or [`NOT_FOUND`].
pub const DELETE: Method = Method(0x4b03);
/// Counters and bounds.
pub const STATS: Method = Method(0x4b04);

/// There is nothing under the key. No detail.
pub const NOT_FOUND: u16 = 1;
/// No memory. Detail: bytes used, bytes there are, bytes needed besides, a word each.
pub const FULL: u16 = 2;
/// The value is too long. Detail: its bytes, the bound, a word each.
pub const VALUE_TOO_LONG: u16 = 3;
/// The request has not the length of its method. No detail.
pub const MALFORMED: u16 = 4;

/// First word of the answer to [`STATS`]: whose it is, and of what version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"beekv\0\0\x01");

/// Words of a detail or an answer. Those missing are `None`.
pub(crate) fn words<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let (words, rest) = bytes.as_chunks::<8>();
    let words: &[[u8; 8]; N] = words.try_into().ok()?;
    rest.is_empty().then(|| words.map(u64::from_le_bytes))
}

/// Returns the bytes from which [`words`] reads these words.
pub(crate) fn bytes_of<const N: usize>(words: [u64; N]) -> impl AsRef<[u8]> {
    words.into_iter().flat_map(u64::to_le_bytes).collect::<smallvec::SmallVec<[u8; 128]>>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_and_other_lengths_are_none() {
        let bytes = bytes_of([1, u64::MAX, 3]);
        assert_eq!(words::<3>(bytes.as_ref()), Some([1, u64::MAX, 3]));
        assert_eq!(words::<2>(bytes.as_ref()), None);
        assert_eq!(words::<4>(bytes.as_ref()), None);
        assert_eq!(words::<3>(&bytes.as_ref()[..23]), None);
        assert_eq!(words::<2>(&bytes.as_ref()[..17]), None);
    }
}
