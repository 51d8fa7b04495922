//! A message of a lap window in the hands of one of its receivers, read where it lies.

use alloc::vec::Vec;

use beeline_contract_memory::{CreditSink, ReadOnlyPort, Wait};
use beeline_spec::WORD_BYTES;
use beeline_spec::lap::{GROUP_PAYLOAD_WORDS, HEAD_WORDS, place, restored};

use super::delivery::Delivery;
use super::receiver::LapReceiver;
use crate::error::ReceiveError;
use crate::message::low_bytes;

/// A received message, not copied yet. Dropping it counts its lines as freed; until then the sender cannot reuse them. A
/// handle that is forgotten frees nothing: the next poll gives the same message again.
///
/// A sender that breaks the rules can change the bytes while the handle lives. That is within what we promise (memory
/// safety and bounds, not content); who decides something by the bytes of an untrusted sender copies them first.
#[derive(Debug)]
pub struct LapMessage<'r, L: ReadOnlyPort, S: CreditSink> {
    receiver: &'r mut LapReceiver<L, S>,
    delivery: Delivery,
}

impl<'r, L: ReadOnlyPort, S: CreditSink> LapMessage<'r, L, S> {
    #[inline(always)]
    pub(super) fn new(receiver: &'r mut LapReceiver<L, S>, delivery: Delivery) -> Self {
        LapMessage { receiver, delivery }
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

    /// Payload bytes `8 * index` to `8 * index + 7` as a little-endian word; bytes past the end are zero. One load, or two
    /// behind the first line. To read all words, [`LapMessage::for_each_word`] is cheaper.
    #[inline]
    pub fn word(&self, index: usize) -> u64 {
        let left_bytes = self.len().saturating_sub(index.saturating_mul(WORD_BYTES));
        if left_bytes == 0 {
            return 0;
        }
        let word = match place(index) {
            None => self.head_word(index),
            Some(place) => self.word_behind(place.tops, self.receiver.message_word(place.tops), place.bit),
        };
        if left_bytes < WORD_BYTES { word & low_bytes(left_bytes) } else { word }
    }

    /// Gives `each` the payload, word by word as [`LapMessage::word`] would.
    #[inline(always)]
    pub fn for_each_word(&self, mut each: impl FnMut(u64)) {
        let (whole, tail) = (self.len() / WORD_BYTES, self.len() % WORD_BYTES);
        if whole == HEAD_WORDS && tail == 0 {
            // The common one: no loop.
            (0..HEAD_WORDS).for_each(|index| each(self.head_word(index)));
            return;
        }
        self.for_words(whole, &mut each);
        if tail != 0 {
            each(self.word(whole));
        }
    }

    /// Copies the payload into `out`, as much as fits, and gives the number of bytes copied.
    #[inline]
    pub fn copy_out(&mut self, out: &mut [u8]) -> usize {
        let bytes = self.len().min(out.len());
        let (words, tail) = out[..bytes].as_chunks_mut::<WORD_BYTES>();
        let whole = words.len();
        let mut slots = words.iter_mut();
        self.for_words(whole, |word| {
            if let Some(slot) = slots.next() {
                *slot = word.to_le_bytes();
            }
        });
        if !tail.is_empty() {
            for (to, from) in tail.iter_mut().zip(self.word(whole).to_le_bytes()) {
                *to = from;
            }
        }
        bytes
    }

    /// Appends the payload to `out`. Allocates when `out` has no room for it.
    pub fn copy_to(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.len(), 0);
        self.copy_out(&mut out[start..]);
    }

    /// The payload words before `end`, all of which are whole and in the payload. A word of tops is loaded once for all its words.
    #[inline(always)]
    fn for_words(&self, end: usize, mut each: impl FnMut(u64)) {
        let mut index = 0;
        while index < end.min(HEAD_WORDS) {
            each(self.head_word(index));
            index += 1;
        }
        while index < end
            && let Some(place) = place(index)
        {
            let tops = self.receiver.message_word(place.tops);
            let bits = place.bit..GROUP_PAYLOAD_WORDS.min(place.bit + (end - index));
            index += bits.len();
            bits.for_each(|bit| each(self.word_behind(place.tops, tops, bit)));
        }
    }

    /// Payload word `index` of the header's line.
    #[inline(always)]
    fn head_word(&self, index: usize) -> u64 {
        restored(self.receiver.message_word(index + 1), self.delivery.tops() >> index)
    }

    /// The payload word of `bit` of the word `tops`, which is word `at` of the message.
    #[inline(always)]
    fn word_behind(&self, at: usize, tops: u64, bit: usize) -> u64 {
        restored(self.receiver.message_word(at + 1 + bit), tops >> bit)
    }
}

impl<L: ReadOnlyPort, S: CreditSink> LapReceiver<L, S> {
    /// The next message, if it is complete.
    ///
    /// When there is none, credits held back are pushed, so that a polling receiver never starves its sender.
    ///
    /// # Errors
    /// [`ReceiveError`], for good: a malformed header, or after [`LapReceiver::sender_gone`] the end.
    #[inline(always)]
    pub fn poll(&mut self) -> Result<Option<LapMessage<'_, L, S>>, ReceiveError> {
        Ok(self.advance()?.map(|delivery| LapMessage::new(self, delivery)))
    }

    /// Gives `each` the messages that are there, `max` at most, and says how many there were. Each is freed when `each`
    /// returns.
    ///
    /// # Errors
    /// As [`LapReceiver::poll`], once the messages before the fault were given.
    #[inline]
    pub fn drain(
        &mut self,
        max: usize,
        mut each: impl FnMut(&mut LapMessage<'_, L, S>),
    ) -> Result<usize, ReceiveError> {
        let mut taken = 0;
        while taken < max {
            match self.advance() {
                Ok(Some(delivery)) => each(&mut LapMessage::new(self, delivery)),
                Ok(None) => break,
                Err(_) if taken > 0 => {
                    self.forget_error();
                    break;
                }
                Err(error) => return Err(error),
            }
            taken += 1;
        }
        Ok(taken)
    }

    /// The next message, waited for as long as `waiter` does: `None` when its time is over. A sender that it knows to be gone
    /// is taken note of as by [`LapReceiver::sender_gone`].
    ///
    /// # Errors
    /// As [`LapReceiver::poll`].
    pub fn recv_wait(
        &mut self,
        waiter: &mut impl Wait,
    ) -> Result<Option<LapMessage<'_, L, S>>, ReceiveError> {
        let delivery = waiter.wait(|peer_gone| {
            if peer_gone {
                self.sender_gone();
            }
            self.advance()
        })?;
        Ok(delivery.map(|delivery| LapMessage::new(self, delivery)))
    }
}

impl<L: ReadOnlyPort, S: CreditSink> Drop for LapMessage<'_, L, S> {
    #[inline(always)]
    fn drop(&mut self) {
        self.receiver.release(self.delivery);
    }
}
