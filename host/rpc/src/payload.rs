//! The bytes of a request or response, read where they lie.

use beeline_contract_memory::{CreditSink, LoadPort};
use beeline_spec::WORD_BYTES;
use beeline_window::{ArrivalTest, Message};

/// A message in some transport's hands. Words are little-endian; those past the end are zero.
pub trait Payload {
    /// Payload bytes.
    fn len(&self) -> usize;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Word `index`. Memory of a peer is loaded once for each call: read once, check, use.
    fn word(&self, index: usize) -> u64;

    /// Copies what is there from word `first` on into `out`, as much as fits; the number of bytes copied.
    fn copy_out_from(&mut self, first: usize, out: &mut [u8]) -> usize;
}

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Payload for Message<'_, L, S, A> {
    #[inline(always)]
    fn len(&self) -> usize {
        Message::len(self)
    }

    #[inline(always)]
    fn word(&self, index: usize) -> u64 {
        Message::word(self, index)
    }

    #[inline(always)]
    fn copy_out_from(&mut self, first: usize, out: &mut [u8]) -> usize {
        Message::copy_out_from(self, first, out)
    }
}

/// Bytes of this process's own memory.
impl Payload for &[u8] {
    fn len(&self) -> usize {
        <[u8]>::len(self)
    }

    fn word(&self, index: usize) -> u64 {
        let rest = self.get(index.saturating_mul(WORD_BYTES)..).unwrap_or_default();
        match rest.first_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        }
    }

    fn copy_out_from(&mut self, first: usize, out: &mut [u8]) -> usize {
        let rest = self.get(first.saturating_mul(WORD_BYTES)..).unwrap_or_default();
        let bytes = rest.len().min(out.len());
        out[..bytes].copy_from_slice(&rest[..bytes]);
        bytes
    }
}

/// What a caller or a handler reads: a payload in the transport's memory behind the words of its own header, or one that
/// came in several messages and was put together here.
#[derive(Debug)]
pub struct Body<'a, M> {
    source: Source<'a, M>,
    first_word: usize,
}

#[derive(Debug)]
enum Source<'a, M> {
    Message(M),
    Bytes(&'a [u8]),
}

impl<'a, M: Payload> Body<'a, M> {
    /// What follows word `first_word - 1` of a message.
    #[inline(always)]
    pub(crate) fn of_message(message: M, first_word: usize) -> Self {
        Body { source: Source::Message(message), first_word }
    }

    pub(crate) fn message_mut(&mut self) -> Option<&mut M> {
        match &mut self.source {
            Source::Message(message) => Some(message),
            Source::Bytes(_) => None,
        }
    }

    /// The payload begins at this word of the message instead.
    pub(crate) fn skip_to(&mut self, first_word: usize) {
        self.first_word = first_word;
    }

    /// Bytes put together.
    pub(crate) fn of_bytes(bytes: &'a [u8]) -> Self {
        Body { source: Source::Bytes(bytes), first_word: 0 }
    }

    /// Bytes of the payload.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match &self.source {
            Source::Message(message) => message.len().saturating_sub(self.first_word * WORD_BYTES),
            Source::Bytes(bytes) => bytes.len(),
        }
    }

    /// Whether the payload has no bytes.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes `8 * index` to `8 * index + 7` as a little-endian word; bytes past the end are zero.
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        match &self.source {
            Source::Message(message) => message.word(self.first_word + index),
            Source::Bytes(bytes) => bytes.word(index),
        }
    }

    /// Copies the payload into `out`, as much as fits; the number of bytes copied.
    #[inline(always)]
    pub fn copy_out(&mut self, out: &mut [u8]) -> usize {
        self.copy_out_from(0, out)
    }

    /// As [`Body::copy_out`], from word `first` of the payload on.
    #[inline(always)]
    pub fn copy_out_from(&mut self, first: usize, out: &mut [u8]) -> usize {
        match &mut self.source {
            Source::Message(message) => message.copy_out_from(self.first_word + first, out),
            Source::Bytes(bytes) => bytes.copy_out_from(first, out),
        }
    }

    /// Appends the payload to `out`.
    pub fn copy_to(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.len(), 0);
        self.copy_out(&mut out[start..]);
    }

    /// The payload as a vector of its own.
    pub fn to_vec(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.copy_to(&mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_begins_behind_the_header_words() {
        let bytes: Vec<u8> = (0..27).collect();
        let mut body = Body::of_message(&bytes[..], 2);
        assert_eq!(
            (body.len(), body.word(0), body.word(1), body.word(2)),
            (11, 0x1716_1514_1312_1110, 0x1a_1918, 0)
        );
        assert_eq!(body.to_vec(), bytes[16..]);
        let mut out = [0; 2];
        assert_eq!((body.copy_out_from(1, &mut out), out), (2, [24, 25]));
        assert_eq!(body.copy_out_from(2, &mut out), 0);
        let body: Body<'_, &[u8]> = Body::of_bytes(&bytes);
        assert_eq!((body.len(), body.word(3)), (27, 0x1a_1918));
        assert!(Body::of_message(&bytes[..3], 1).is_empty());
    }
}
