//! A message in the receiver's hands, read where it lies.

use alloc::vec::Vec;

use beeline_contract_memory::{CreditSink, LoadPort};
use beeline_spec::header::lines_of;
use beeline_spec::{LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};

use crate::Receiver;
use crate::arrival::{ArrivalTest, Blank};
use crate::delivery::Delivery;
use crate::error::ReceiveError;
use crate::payload;

/// A received message, not copied yet. Dropping it frees its lines; until then the sender cannot reuse them. A handle
/// that is forgotten frees nothing: the next poll gives the same message again (of a batch, the next record).
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
    pub fn len(&self) -> usize {
        self.delivery.length_bytes()
    }

    /// Whether the payload has no bytes.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Payload bytes `8 * index` to `8 * index + 7` as a little-endian word; bytes past the end are zero. One load,
    /// or two in a record of a batch, whose bytes start between words. To read all words, [`Message::for_each_word`]
    /// is cheaper.
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        let delivery = self.delivery;
        if delivery.is_plain() {
            // Its place is known, wherever the next start is (`drain.rs` moves it for several messages at once).
            let (whole, tail) = (delivery.length_bytes() / WORD_BYTES, delivery.length_bytes() % WORD_BYTES);
            return match index {
                _ if index < whole => self.receiver.plain_word(delivery, index),
                _ if index == whole && tail != 0 => {
                    self.receiver.plain_word(delivery, index) & low_bytes(tail)
                }
                _ => 0,
            };
        }
        self.receiver.word_of(delivery, index)
    }

    /// Gives `each` the payload, word by word as [`Message::word`] would. Where something comes of it, [`Message::fold_words`] is
    /// cheaper.
    #[inline(always)]
    pub fn for_each_word(&self, mut each: impl FnMut(u64)) {
        let delivery = self.delivery;
        if delivery.is_full_line() {
            let (line, port) = (delivery.line(), &self.receiver.port);
            return payload::fold_full(|index| port.load_word(line, index + 1), (), |(), word| each(word));
        }
        (0..delivery.length_bytes().div_ceil(WORD_BYTES)).for_each(|index| each(self.word_by_call(index)));
    }

    /// [`Message::word`], not inlined: for loops over all words that are to be small.
    #[inline(never)]
    pub(crate) fn word_by_call(&self, index: usize) -> u64 {
        self.word(index)
    }

    /// Folds the payload, word by word as [`Message::word`] would give it: `start`, then what `fold` makes of that and the
    /// first word, and so on. Cheaper than [`Message::for_each_word`] with a variable: nothing but the result has a place in
    /// memory.
    #[inline(always)]
    pub fn fold_words<T>(&self, start: T, fold: impl FnMut(T, u64) -> T) -> T {
        let delivery = self.delivery;
        if delivery.is_full_line() {
            let (line, port) = (delivery.line(), &self.receiver.port);
            return payload::fold_full(|index| port.load_word(line, index + 1), start, fold);
        }
        self.receiver.fold_of(delivery, start, fold)
    }

    /// Copies the payload into `out`, as much as fits, and gives the number of bytes copied.
    #[inline(always)]
    pub fn copy_out(&mut self, out: &mut [u8]) -> usize {
        let delivery = self.delivery;
        let bytes = delivery.length_bytes().min(out.len());
        let out = &mut out[..bytes];
        if delivery.is_one_line() {
            // Word by word, from the window to `out`: a line on its way through our stack would wait in the store
            // buffer, since it is stored there in other pieces than it is loaded in.
            let (line, port) = (delivery.line(), &mut self.receiver.port);
            payload::copy_words(|index| port.load_word(line, index as u32 + 1), out);
        } else {
            self.receiver.copy_of(delivery, 0, out);
        }
        bytes
    }

    /// As [`Message::copy_out`], from payload word `first` on: for a layer whose own header is in the words before.
    #[inline(always)]
    pub fn copy_out_from(&mut self, first: usize, out: &mut [u8]) -> usize {
        let delivery = self.delivery;
        let left_bytes = delivery.length_bytes().saturating_sub(first.saturating_mul(WORD_BYTES));
        let bytes = left_bytes.min(out.len());
        let out = &mut out[..bytes];
        if delivery.is_one_line() {
            let (line, port) = (delivery.line(), &mut self.receiver.port);
            payload::copy_words(|index| port.load_word(line, (first + index) as u32 + 1), out);
        } else if bytes > 0 {
            self.receiver.copy_of(delivery, first * WORD_BYTES, out);
        }
        bytes
    }

    /// As [`Message::copy_out`], from payload byte `first_byte` on. Where that is a word, [`Message::copy_out_from`] is cheaper.
    pub fn copy_out_at(&mut self, first_byte: usize, out: &mut [u8]) -> usize {
        let bytes = self.len().saturating_sub(first_byte).min(out.len());
        if bytes > 0 {
            self.receiver.copy_at(self.delivery, first_byte, &mut out[..bytes]);
        }
        bytes
    }

    /// Appends the payload to `out`. Allocates when `out` has no room for it.
    pub fn copy_to(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.len(), 0);
        self.copy_out(&mut out[start..]);
    }
}

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Receiver<L, S, A> {
    /// The next message, if it is complete. Void messages are skipped, a batch comes record by record.
    ///
    /// When there is none, credits held back are pushed, so that a polling receiver never starves its sender.
    ///
    /// # Errors
    /// [`ReceiveError`], for good: a malformed message, or after [`Receiver::sender_gone`] the end.
    #[inline(always)]
    pub fn poll(&mut self) -> Result<Option<Message<'_, L, S, A>>, ReceiveError> {
        Ok(self.advance()?.map(|delivery| Message::new(self, delivery)))
    }
}

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Drop for Message<'_, L, S, A> {
    #[inline(always)]
    fn drop(&mut self) {
        self.receiver.release(self.delivery);
    }
}

/// The long way to a message's bytes. Not methods of the handle, so that a handle stays in registers.
impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Receiver<L, S, A> {
    /// The caller is done with the message in hand.
    #[inline(always)]
    pub(crate) fn release(&mut self, delivery: Delivery) {
        if delivery.is_one_line() {
            self.release_line(delivery.line());
        } else if delivery.is_plain() {
            self.release_lines(lines_of(delivery.length_bytes() as u32));
        } else {
            self.release_long();
        }
    }

    /// [`Message::fold_words`] of what is no full line. Not inlined: a program's code is then small enough to be.
    #[inline(never)]
    fn fold_of<T>(&self, delivery: Delivery, start: T, mut fold: impl FnMut(T, u64) -> T) -> T {
        let (whole, tail) = (delivery.length_bytes() / WORD_BYTES, delivery.length_bytes() % WORD_BYTES);
        let (is_plain, mut folded) = (delivery.is_plain(), start);
        for index in 0..whole + usize::from(tail != 0) {
            let word =
                if is_plain { self.plain_word(delivery, index) } else { self.word_of(delivery, index) };
            folded = fold(folded, if index == whole { word & low_bytes(tail) } else { word });
        }
        folded
    }

    /// Word `index` of a plain message's payload, with whatever stands behind its end.
    #[inline(always)]
    fn plain_word(&self, delivery: Delivery, index: usize) -> u64 {
        let at = index + 1;
        let line = (u64::from(delivery.line()) + (at / WORDS_PER_LINE) as u64) & self.mask;
        self.port.load_word(line as u32, (at % WORDS_PER_LINE) as u32)
    }

    /// [`Message::word`] for any word of any message.
    #[inline(never)]
    fn word_of(&self, delivery: Delivery, index: usize) -> u64 {
        let left_bytes = delivery.length_bytes().saturating_sub(index.saturating_mul(WORD_BYTES));
        if left_bytes == 0 {
            return 0;
        }
        let at = delivery.first_byte() + index * WORD_BYTES;
        let (first, skip) = ((at / WORD_BYTES) as u32, at % WORD_BYTES);
        let mut word = self.message_word(first) >> (8 * skip);
        if skip != 0 && left_bytes > WORD_BYTES - skip {
            word |= self.message_word(first + 1) << (64 - 8 * skip);
        }
        if left_bytes < WORD_BYTES { word & low_bytes(left_bytes) } else { word }
    }

    /// [`Message::copy_out`] of any message, from byte `skip` of its payload on, as much as `out` takes.
    #[inline(never)]
    fn copy_of(&mut self, delivery: Delivery, skip: usize, out: &mut [u8]) {
        self.copy_bytes(delivery.first_byte() + skip, out);
    }

    /// [`Message::copy_out_at`]: a plain message need not be at the next start (`drain.rs` moves that for several at once).
    #[inline(never)]
    fn copy_at(&mut self, delivery: Delivery, skip: usize, out: &mut [u8]) {
        if !delivery.is_one_line() {
            return self.copy_of(delivery, skip, out);
        }
        let line = payload::line_bytes(&self.port.load_line(delivery.line()));
        out.copy_from_slice(&line[WORD_BYTES + skip..][..out.len()]);
    }

    /// Copies bytes from the one on that is so many after the start of the line at the next start, in a message that goes so
    /// far, un-escaped.
    pub(crate) fn copy_bytes(&mut self, first_byte: usize, out: &mut [u8]) {
        self.copy_lines(first_byte, out);
        if self.has_escapes {
            self.unescape(first_byte, out);
        }
    }

    /// Copies line by line: the part of the first line, whole lines in at most two runs, the part of the last line.
    fn copy_lines(&mut self, first_byte: usize, out: &mut [u8]) {
        let mut ahead = (first_byte / LINE_BYTES) as u32;
        let skip = first_byte % LINE_BYTES;
        let (head, rest) = out.split_at_mut(if skip == 0 { 0 } else { out.len().min(LINE_BYTES - skip) });
        if !head.is_empty() {
            let line = self.line(ahead);
            if skip.is_multiple_of(WORD_BYTES) {
                // As in every message that is not a record: after the header word, or after words skipped.
                let first = (skip / WORD_BYTES) as u32;
                payload::copy_words(|index| self.port.load_word(line, first + index as u32), head);
            } else {
                let bytes = payload::line_bytes(&self.port.load_line(line));
                head.copy_from_slice(&bytes[skip..skip + head.len()]);
            }
            ahead += 1;
        }
        let (mut whole, tail) = rest.split_at_mut(rest.len() - rest.len() % LINE_BYTES);
        while !whole.is_empty() {
            let line = self.line(ahead);
            let to_wrap = (self.lines() - line) as usize;
            let lines = to_wrap.min(whole.len() / LINE_BYTES);
            let (run, after) = whole.split_at_mut(lines * LINE_BYTES);
            self.port.load_lines(line, run);
            ahead += lines as u32;
            whole = after;
        }
        if !tail.is_empty() {
            let line = self.line(ahead);
            payload::copy_words(|index| self.port.load_word(line, index as u32), tail);
        }
    }

    /// Puts the blank back where a link stands in its place, in bytes already copied.
    #[cold]
    #[inline(never)]
    fn unescape(&mut self, first_byte: usize, out: &mut [u8]) {
        let blank = self.test.blank().unwrap_or_default().to_le_bytes();
        let end_word = (first_byte + out.len()).div_ceil(WORD_BYTES);
        for index in first_byte / WORD_BYTES..end_word {
            let line = self.line((index / WORDS_PER_LINE) as u32);
            if !self.is_escaped(line, (index % WORDS_PER_LINE) as u32) {
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

/// Keeps the lowest `bytes` bytes of a word, 1 to 7.
#[inline(always)]
pub(crate) const fn low_bytes(bytes: usize) -> u64 {
    (1 << (8 * bytes)) - 1
}

#[cfg(test)]
mod tests;
