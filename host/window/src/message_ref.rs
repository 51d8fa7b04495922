//! A message that a receiver in bulk gives to the program.

use alloc::vec::Vec;
use core::mem::ManuallyDrop;

use beeline_contract_memory::{CreditSink, Group, LoadPort};
use beeline_spec::WORD_BYTES;

use crate::arrival::{ArrivalTest, Blank};
use crate::message::{Message, low_bytes};
use crate::payload::{self, HEAD_BYTES};

/// A message that [`crate::Receiver::drain`] gives, read where it lies. It is freed when the program is done with it, or soon
/// after that; there is nothing to be dropped.
///
/// What is said of the bytes of a sender that breaks the rules at [`Message`] is true here too.
#[derive(Debug)]
pub struct MessageRef<'r, L: LoadPort, S: CreditSink, A: ArrivalTest = Blank>(Place<'r, L, S, A>);

/// Two kinds, so that each is as little as it needs: which one it is, is known wherever a program's code is compiled.
#[derive(Debug)]
enum Place<'r, L: LoadPort, S: CreditSink, A: ArrivalTest> {
    /// A plain message of one line, in a group whose place is known: no masks, no line numbers.
    Line { lines: L::Group<'r>, ahead: u32, length_bytes: usize },
    /// Any other. Not dropped: the receiver frees it.
    Any(ManuallyDrop<Message<'r, L, S, A>>),
}

impl<'r, L: LoadPort, S: CreditSink, A: ArrivalTest> MessageRef<'r, L, S, A> {
    /// The plain message of one line, `length_bytes` long, that is `ahead` lines into a group.
    #[inline(always)]
    pub(crate) fn line(lines: L::Group<'r>, ahead: u32, length_bytes: usize) -> Self {
        MessageRef(Place::Line { lines, ahead, length_bytes })
    }

    /// Any message, which somebody else frees.
    #[inline(always)]
    pub(crate) fn any(message: Message<'r, L, S, A>) -> Self {
        MessageRef(Place::Any(ManuallyDrop::new(message)))
    }

    /// Payload bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match &self.0 {
            Place::Line { length_bytes, .. } => *length_bytes,
            Place::Any(message) => message.len(),
        }
    }

    /// Whether the payload has no bytes.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As [`Message::word`].
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        match &self.0 {
            Place::Line { lines, ahead, length_bytes } => {
                let left_bytes = length_bytes.saturating_sub(index.saturating_mul(WORD_BYTES));
                match left_bytes {
                    0 => 0,
                    1..WORD_BYTES => lines.word(*ahead, index as u32 + 1) & low_bytes(left_bytes),
                    _ => lines.word(*ahead, index as u32 + 1),
                }
            }
            Place::Any(message) => message.word(index),
        }
    }

    /// As [`Message::for_each_word`].
    #[inline(always)]
    pub fn for_each_word(&self, mut each: impl FnMut(u64)) {
        if let Place::Line { lines, ahead, length_bytes: HEAD_BYTES } = &self.0 {
            return payload::fold_full(|index| lines.word(*ahead, index + 1), (), |(), word| each(word));
        }
        // Not handed to a function that is not inlined: what `each` refers to would then have a place in memory. One loop for
        // both kinds, so that the program's code is small enough to be inlined.
        for index in 0..self.len().div_ceil(WORD_BYTES) {
            each(match &self.0 {
                Place::Line { lines, ahead, length_bytes } => {
                    word_of_part(*lines, *ahead, *length_bytes, index as u32)
                }
                Place::Any(message) => message.word_by_call(index),
            });
        }
    }

    /// As [`Message::fold_words`].
    #[inline(always)]
    pub fn fold_words<T>(&self, start: T, fold: impl FnMut(T, u64) -> T) -> T {
        match &self.0 {
            Place::Line { lines, ahead, length_bytes: HEAD_BYTES } => {
                payload::fold_full(|index| lines.word(*ahead, index + 1), start, fold)
            }
            Place::Line { lines, ahead, length_bytes } => {
                fold_part(*lines, *ahead, *length_bytes, start, fold)
            }
            Place::Any(message) => message.fold_words(start, fold),
        }
    }

    /// As [`Message::copy_out`].
    #[inline(always)]
    pub fn copy_out(&mut self, out: &mut [u8]) -> usize {
        self.copy_out_from(0, out)
    }

    /// As [`Message::copy_out_from`].
    #[inline(always)]
    pub fn copy_out_from(&mut self, first: usize, out: &mut [u8]) -> usize {
        match &mut self.0 {
            Place::Line { lines, ahead, length_bytes } => {
                let left_bytes = length_bytes.saturating_sub(first.saturating_mul(WORD_BYTES));
                let bytes = left_bytes.min(out.len());
                payload::copy_words(
                    |index| lines.word(*ahead, (first + index) as u32 + 1),
                    &mut out[..bytes],
                );
                bytes
            }
            Place::Any(message) => message.copy_out_from(first, out),
        }
    }

    /// As [`Message::copy_out_at`].
    pub fn copy_out_at(&mut self, first_byte: usize, out: &mut [u8]) -> usize {
        match &mut self.0 {
            Place::Line { lines, ahead, length_bytes } => {
                let bytes = length_bytes.saturating_sub(first_byte).min(out.len());
                let mut payload = [0; HEAD_BYTES];
                payload::copy_words(|index| lines.word(*ahead, index as u32 + 1), &mut payload);
                out[..bytes].copy_from_slice(payload.get(first_byte..first_byte + bytes).unwrap_or(&[]));
                bytes
            }
            Place::Any(message) => message.copy_out_at(first_byte, out),
        }
    }

    /// As [`Message::copy_to`].
    pub fn copy_to(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.len(), 0);
        self.copy_out(&mut out[start..]);
    }
}

/// Word `index`, one of those that the payload has, of a line that is not full. Not inlined, as [`fold_part`].
#[inline(never)]
fn word_of_part<G: Group>(lines: G, ahead: u32, length_bytes: usize, index: u32) -> u64 {
    let (word, left_bytes) = (lines.word(ahead, index + 1), length_bytes - index as usize * WORD_BYTES);
    if left_bytes < WORD_BYTES { word & low_bytes(left_bytes) } else { word }
}

/// [`MessageRef::fold_words`] of a line that is not full. Not inlined, and given what it needs in registers: a program's code is
/// then small enough to be made part of the loop over the messages, and nothing is stored on the way.
#[inline(never)]
fn fold_part<T, G: Group>(
    lines: G,
    ahead: u32,
    length_bytes: usize,
    start: T,
    mut fold: impl FnMut(T, u64) -> T,
) -> T {
    let (whole, tail) = (length_bytes / WORD_BYTES, length_bytes % WORD_BYTES);
    let folded = (1..=whole as u32).map(|word| lines.word(ahead, word)).fold(start, &mut fold);
    if tail == 0 {
        return folded;
    }
    fold(folded, lines.word(ahead, whole as u32 + 1) & low_bytes(tail))
}
