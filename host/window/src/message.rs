//! A message in the receiver's hands, read where it lies.

use beeline_link_contract::{CreditSink, LoadPort};
use beeline_spec::batch::Record;
use beeline_spec::{LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};

use crate::Receiver;
use crate::arrival::{ArrivalTest, Blank};
use crate::payload;

/// Where the bytes of a delivered message lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// Offset of the first byte from the start of the message, header word included.
    first_byte: u32,
    length_bytes: u32,
}

impl Delivery {
    /// A whole message.
    #[inline(always)]
    pub(crate) fn message(length_bytes: u32) -> Self {
        Delivery { first_byte: WORD_BYTES as u32, length_bytes }
    }

    /// A record of a batch.
    #[inline]
    pub(crate) fn record(record: Record) -> Self {
        Delivery {
            first_byte: WORD_BYTES as u32 + record.offset_bytes,
            length_bytes: u32::from(record.length_bytes),
        }
    }
}

/// A received message, not copied yet. Dropping it frees its lines; until then the sender cannot reuse them.
///
/// A sender that breaks the rules can change the bytes while the handle lives. That is within what we promise (memory
/// safety and bounds, not content); who decides something by the bytes of an untrusted sender copies them first.
#[derive(Debug)]
pub struct Message<'r, L: LoadPort, S: CreditSink, A: ArrivalTest = Blank> {
    receiver: &'r mut Receiver<L, S, A>,
    delivery: Delivery,
}

impl<'r, L: LoadPort, S: CreditSink, A: ArrivalTest> Message<'r, L, S, A> {
    #[inline(always)]
    pub(crate) fn new(receiver: &'r mut Receiver<L, S, A>, delivery: Delivery) -> Self {
        Message { receiver, delivery }
    }

    /// Payload bytes.
    #[inline(always)]
    #[allow(clippy::len_without_is_empty, reason = "is_empty is below; clippy looks for it in another impl block")]
    pub fn len(&self) -> usize {
        self.delivery.length_bytes as usize
    }

    /// Whether the payload has no bytes.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.delivery.length_bytes == 0
    }

    /// Payload bytes `8 * index` to `8 * index + 7` as a little-endian word; bytes past the end are zero. One load,
    /// or two in a record of a batch, whose bytes start between words.
    #[inline]
    pub fn word(&mut self, index: usize) -> u64 {
        let left_bytes = self.len().saturating_sub(index.saturating_mul(WORD_BYTES));
        if left_bytes == 0 {
            return 0;
        }
        let at = self.delivery.first_byte + (index * WORD_BYTES) as u32;
        let (first, skip) = (at / WORD_BYTES as u32, at % WORD_BYTES as u32);
        let mut word = self.receiver.message_word(first) >> (8 * skip);
        if skip != 0 && left_bytes > WORD_BYTES - skip as usize {
            word |= self.receiver.message_word(first + 1) << (64 - 8 * skip);
        }
        if left_bytes < WORD_BYTES {
            word &= (1 << (8 * left_bytes)) - 1;
        }
        word
    }

    /// Copies the payload into `out`, as much as fits, and gives the number of bytes copied.
    #[inline]
    pub fn copy_out(&mut self, out: &mut [u8]) -> usize {
        let bytes = self.len().min(out.len());
        let out = &mut out[..bytes];
        // A plain message that ends in its first line: words to words, no detour.
        if self.delivery.first_byte == WORD_BYTES as u32 && bytes <= payload::HEAD_BYTES {
            let line = self.receiver.line(0);
            let words = self.receiver.port.load_line(line);
            payload::copy_words(&words[1..], out);
        } else {
            self.copy_lines(out);
        }
        if self.receiver.has_escapes() {
            self.unescape(out);
        }
        bytes
    }

    /// Appends the payload to `out`. Allocates when `out` has no room for it.
    pub fn copy_to(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.len(), 0);
        self.copy_out(&mut out[start..]);
    }

    /// Copies line by line: the part of the first line, whole lines in at most two runs, the part of the last line.
    #[inline(never)]
    fn copy_lines(&mut self, out: &mut [u8]) {
        let mut ahead = self.delivery.first_byte / LINE_BYTES as u32;
        let skip = self.delivery.first_byte as usize % LINE_BYTES;
        let (head, rest) = out.split_at_mut(if skip == 0 { 0 } else { out.len().min(LINE_BYTES - skip) });
        if !head.is_empty() {
            let line = self.receiver.line(ahead);
            let bytes = payload::line_bytes(&self.receiver.port.load_line(line));
            head.copy_from_slice(&bytes[skip..skip + head.len()]);
            ahead += 1;
        }
        let (mut whole, tail) = rest.split_at_mut(rest.len() - rest.len() % LINE_BYTES);
        while !whole.is_empty() {
            let line = self.receiver.line(ahead);
            let to_wrap = (self.receiver.lines() - line) as usize;
            let lines = to_wrap.min(whole.len() / LINE_BYTES);
            let (run, after) = whole.split_at_mut(lines * LINE_BYTES);
            self.receiver.port.load_lines(line, run);
            ahead += lines as u32;
            whole = after;
        }
        if !tail.is_empty() {
            let line = self.receiver.line(ahead);
            let words = self.receiver.port.load_line(line);
            payload::copy_words(&words, tail);
        }
    }

    /// Puts the blank back where a link stands in its place, in bytes already copied.
    #[cold]
    #[inline(never)]
    fn unescape(&mut self, out: &mut [u8]) {
        let blank = self.receiver.test.blank().unwrap_or_default().to_le_bytes();
        let first_byte = self.delivery.first_byte as usize;
        let first_word = first_byte / WORD_BYTES;
        let end_word = (first_byte + out.len()).div_ceil(WORD_BYTES);
        for index in first_word..end_word {
            let line = self.receiver.line((index / WORDS_PER_LINE) as u32);
            if !self.receiver.is_escaped(line, (index % WORDS_PER_LINE) as u32) {
                continue;
            }
            for (i, byte) in blank.iter().enumerate() {
                // Bytes before the record's first one wrap to an offset far outside `out`.
                let at = (index * WORD_BYTES + i).wrapping_sub(first_byte);
                if let Some(slot) = out.get_mut(at) {
                    *slot = *byte;
                }
            }
        }
    }
}

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Drop for Message<'_, L, S, A> {
    #[inline]
    fn drop(&mut self) {
        self.receiver.release();
    }
}

#[cfg(test)]
mod tests;
