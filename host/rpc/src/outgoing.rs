//! A request or response on its way into messages: whole, or in parts when it is longer than a message.
//!
//! Every message begins with the first word of its format ([`Part`] says where it stands), the first one with what
//! belongs to the whole: the deadline of a request, the bytes of all parts. Parts follow each other without anything
//! between them, so a receiver needs one place to put them together for each stream.

use beeline_spec::WORD_BYTES;
use beeline_spec::rpc::{Part, with_part};
use beeline_window::{HEAD_BYTES, Sent};

/// Sends words and then bytes as one message: what fits behind the words in a first line is copied, the rest is not.
#[inline(always)]
pub(crate) fn send_message<E, const N: usize>(
    words: [u64; N],
    bytes: &[u8],
    send: impl FnOnce(&[u8], &[u8]) -> Result<Sent, E>,
) -> Result<Sent, E> {
    const { assert!(N * WORD_BYTES < HEAD_BYTES) };
    let mut head = [0; HEAD_BYTES];
    for (chunk, word) in head.as_chunks_mut::<WORD_BYTES>().0.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
    let start = N * WORD_BYTES;
    match bytes.split_at_checked(HEAD_BYTES - start) {
        Some((first, rest)) => {
            head[start..].copy_from_slice(first);
            send(&head, rest)
        }
        None => {
            let end = start + bytes.len();
            head[start..end].copy_from_slice(bytes);
            send(&head[..end], &[])
        }
    }
}

/// What waits to be sent, bytes and all. Its buffer is used again.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// First word, as of a whole message.
    word: u64,
    deadline: Option<u64>,
    bytes: Vec<u8>,
    sent_bytes: usize,
    has_begun: bool,
    is_active: bool,
}

impl Outgoing {
    /// Whether something waits.
    #[inline(always)]
    pub(crate) fn is_active(&self) -> bool {
        self.is_active
    }

    /// Bytes of its own to be filled, of something with this first word. Nothing may be waiting.
    pub(crate) fn begin(&mut self, word: u64, deadline: Option<u64>) -> &mut Vec<u8> {
        debug_assert!(!self.is_active, "one thing at a time");
        self.bytes.clear();
        (self.word, self.deadline, self.sent_bytes) = (word, deadline, 0);
        (self.has_begun, self.is_active) = (false, true);
        &mut self.bytes
    }

    /// Bytes gathered so far.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// First word of what waits.
    pub(crate) fn word(&self) -> u64 {
        self.word
    }

    /// Bytes of the next message, if messages have at most `max_bytes`; never fewer than it will have.
    pub(crate) fn next_bytes(&self, max_bytes: usize) -> usize {
        max_bytes.min(self.bytes.len() - self.sent_bytes + 3 * WORD_BYTES)
    }

    /// Forgets what waits.
    pub(crate) fn forget(&mut self) {
        self.is_active = false;
    }

    /// Sends as many messages of at most `max_bytes` as there is room for; whether nothing waits any more.
    pub(crate) fn progress<E>(
        &mut self,
        max_bytes: usize,
        mut send: impl FnMut(&[u8], &[u8]) -> Result<Sent, E>,
    ) -> Result<bool, E> {
        while self.is_active {
            if self.send_next(max_bytes, &mut send)? == Sent::Full {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn send_next<E>(
        &mut self,
        max_bytes: usize,
        send: &mut impl FnMut(&[u8], &[u8]) -> Result<Sent, E>,
    ) -> Result<Sent, E> {
        let word = |part: Part| with_part(self.word, part);
        let left = &self.bytes[self.sent_bytes..];
        let deadline_words = usize::from(self.deadline.is_some());
        let is_whole = !self.has_begun && (1 + deadline_words) * WORD_BYTES + left.len() <= max_bytes;
        let header_words = match (self.has_begun, is_whole) {
            (true, _) => 1,
            (false, true) => 1 + deadline_words,
            (false, false) => 2 + deadline_words,
        };
        let taken = left.len().min(max_bytes - header_words * WORD_BYTES);
        let bytes = &left[..taken];
        let total = self.bytes.len() as u64;
        let sent = match (self.has_begun, is_whole, self.deadline) {
            (true, ..) => {
                let part = if taken == left.len() { Part::Last } else { Part::Middle };
                send_message([word(part)], bytes, send)?
            }
            (_, true, None) => send_message([word(Part::Whole)], bytes, send)?,
            (_, true, Some(deadline)) => send_message([word(Part::Whole), deadline], bytes, send)?,
            (_, _, None) => send_message([word(Part::First), total], bytes, send)?,
            (_, _, Some(deadline)) => send_message([word(Part::First), deadline, total], bytes, send)?,
        };
        if sent == Sent::Sent {
            self.has_begun = true;
            self.sent_bytes += taken;
            self.is_active = self.sent_bytes < self.bytes.len();
        }
        Ok(sent)
    }
}
