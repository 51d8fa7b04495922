//! Words by which bytes that nobody has received go back to who sent them, and the place that they go by: the window's own, which is empty by then.
//!
//! The receiver asks, by a number. The sender answers with the number, and with how many bytes it has sent so far; it sends nothing more until
//! the receiver has said that it is over. The receiver puts pieces into the place, each behind the acknowledgement of the one before. Each word has
//! one writer, and either side may write anything: it is loaded once and checked.

use beeline_mmio::{Region, Words};

/// As many words as a line has.
pub(crate) const RETURN_WORDS: usize = 8;

/// Receiver: the number of its question, shifted by one; the low bit while it waits for an answer, or gives pieces.
const ASKED: usize = 0;
/// Receiver: the number of a piece in the upper half, its bytes in the lower.
const PIECE: usize = 1;
/// Receiver: 1 once all processes of its family may use the socket as the kernel has it.
const PLAIN: usize = 2;
/// Sender: bytes of the stream that it has sent.
const SENT: usize = 4;
/// Sender: the number of the question that it has answered, shifted by one; the low bit where it cannot take bytes back.
const ANSWERED: usize = 5;
/// Sender: the number of the last piece that it has copied.
const COPIED: usize = 6;

const OF_RECEIVER: [usize; 3] = [ASKED, PIECE, PLAIN];
const OF_SENDER: [usize; 3] = [SENT, ANSWERED, COPIED];

const PIECE_SHIFT: u32 = 32;
/// The answer to every question.
const NEVER: u64 = u64::MAX;

/// What a sender said to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It has sent so many bytes.
    Sent(u64),
    Refused,
}

/// The words and the place of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Returns {
    words: Words,
    region: Region,
    place_at: usize,
    place_bytes: usize,
}

impl Returns {
    pub(crate) fn new(words: Words, region: Region, place_at: usize, place_bytes: usize) -> Self {
        Returns { words, region, place_at, place_bytes }
    }

    /// Bytes of a piece at most.
    pub(crate) fn place_bytes(&self) -> usize {
        self.place_bytes
    }

    /// Makes the receiver's words what they are in the beginning.
    pub(crate) fn open_receiver(&self) {
        OF_RECEIVER.into_iter().for_each(|word| self.words.store(word, 0));
    }

    /// Makes the sender's words what they are in the beginning.
    pub(crate) fn open_sender(&self) {
        OF_SENDER.into_iter().for_each(|word| self.words.store(word, 0));
    }

    /// Receiver: asks; the number of the question.
    pub(crate) fn ask(&self) -> u64 {
        let number = (self.words.load(ASKED) >> 1).wrapping_add(1) & (u64::MAX >> 1);
        self.words.store(PIECE, 0);
        self.words.store_release(ASKED, number << 1 | 1);
        number
    }

    /// Receiver: it is over, and the sender goes on. Pairs with the load of [`Returns::asked`].
    pub(crate) fn end(&self, number: u64) {
        self.words.store_release(ASKED, number << 1);
    }

    /// Receiver: the answer to a question.
    pub(crate) fn answer(&self, number: u64) -> Option<Answer> {
        let answered = self.words.load_acquire(ANSWERED);
        match answered >> 1 == number {
            _ if answered == NEVER => Some(Answer::Refused),
            false => None,
            true if answered & 1 == 1 => Some(Answer::Refused),
            true => Some(Answer::Sent(self.words.load(SENT))),
        }
    }

    /// Receiver: whether no question is answered any more, and nothing sent anew.
    pub(crate) fn is_refused(&self) -> bool {
        self.words.load_acquire(ANSWERED) == NEVER
    }

    /// Receiver: puts a piece that is not longer than the place, once the one before is copied. Pieces count from 1 on.
    pub(crate) fn put(&self, number: u64, piece: &[u8]) {
        self.region.copy_in(self.place_at, piece);
        // Behind the bytes: pairs with `take`.
        self.words.store_release(PIECE, number << PIECE_SHIFT | piece.len() as u64);
    }

    /// Receiver: whether a piece is copied.
    pub(crate) fn is_copied(&self, number: u64) -> bool {
        self.words.load_acquire(COPIED) == number
    }

    /// Receiver: every process of its family may use the socket as it is.
    pub(crate) fn make_plain(&self) {
        self.words.store_release(PLAIN, 1);
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.words.load_acquire(PLAIN) == 1
    }

    /// Sender: the number of a question that is under way.
    pub(crate) fn asked(&self) -> Option<u64> {
        let asked = self.words.load_acquire(ASKED);
        (asked & 1 == 1).then_some(asked >> 1)
    }

    /// Sender: says how many bytes it has sent, and that it sends nothing more until this is over.
    pub(crate) fn say_sent(&self, number: u64, sent: u64) {
        self.words.store(COPIED, 0);
        self.words.store(SENT, sent);
        // Behind both, and behind every entry of the ledger.
        self.words.store_release(ANSWERED, number << 1);
    }

    /// Sender: whatever it is asked, it has done what it does: its socket is closed, or it sends by that alone and has no copy.
    pub(crate) fn refuse_all(&self) {
        self.words.store_release(ANSWERED, NEVER);
    }

    /// Sender: it cannot take bytes back.
    pub(crate) fn refuse(&self, number: u64) {
        // That says it of all of them.
        if !self.is_refused() {
            self.words.store_release(ANSWERED, number << 1 | 1);
        }
    }

    /// Sender: copies the piece of this number to the end of `out`, if it is there, and has a length that can be.
    pub(crate) fn take(&self, number: u64, out: &mut Vec<u8>) -> Option<usize> {
        let word = self.words.load_acquire(PIECE);
        let bytes = usize::try_from(word & u64::from(u32::MAX)).ok()?;
        if word >> PIECE_SHIFT != number || bytes == 0 || bytes > self.place_bytes {
            return None;
        }
        let before = out.len();
        out.resize(before + bytes, 0);
        self.region.copy_out(self.place_at, &mut out[before..]);
        Some(bytes)
    }

    /// Sender: a piece is copied.
    pub(crate) fn say_copied(&self, number: u64) {
        self.words.store_release(COPIED, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE_BYTES: usize = 4096;

    fn returns() -> Returns {
        let region = Region::private(64 + PLACE_BYTES);
        Returns::new(region.words(0, RETURN_WORDS), region, 64, PLACE_BYTES)
    }

    #[test]
    fn answer_to_an_earlier_question_is_none() {
        let returns = returns();
        let first = returns.ask();
        returns.say_sent(first, 7);
        assert_eq!(returns.answer(first), Some(Answer::Sent(7)));
        returns.end(first);
        assert_eq!(returns.asked(), None);
        let second = returns.ask();
        assert_eq!((returns.asked(), returns.answer(second)), (Some(second), None));
        returns.refuse(second);
        assert_eq!(returns.answer(second), Some(Answer::Refused));
        returns.refuse_all();
        assert_eq!(returns.answer(returns.ask()), Some(Answer::Refused));
    }

    #[test]
    fn piece_is_taken_by_its_number_and_only_where_it_fits_the_place() {
        let returns = returns();
        let mut out = Vec::new();
        returns.put(1, b"piece");
        assert_eq!(returns.take(2, &mut out), None);
        assert_eq!(returns.take(1, &mut out), Some(5));
        assert_eq!(out, b"piece");
        for bytes in [0, PLACE_BYTES as u64 + 1, u64::from(u32::MAX)] {
            returns.words.store(PIECE, 3 << PIECE_SHIFT | bytes);
            assert_eq!(returns.take(3, &mut out), None);
        }
        assert_eq!(out.len(), 5);
    }
}
