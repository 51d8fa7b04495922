//! What has arrived behind the message that is being read: how it is found and counted.
//!
//! Nothing of it is freed and nothing is concluded for good: what cannot be a message ends the look, and the read that comes
//! to it says why. A hostile sender can change what was counted; the count is then wrong, and bounded by the window.

use beeline_contract_memory::{CreditSink, LoadPort};
use beeline_spec::batch::{Cursor, Record};
use beeline_spec::{Header, Kind};

use crate::Receiver;
use crate::arrival::ArrivalTest;

/// How far the messages behind the one in hand are counted. Each line is looked at once, whoever asks how often.
#[derive(Debug)]
pub(super) struct Ahead {
    /// The position up to which messages are counted.
    pub(super) position: u64,
    /// Payload bytes from the end of the message in hand (of its batch) up to there.
    pub(super) bytes: u64,
    /// Start of the message that was taken off last.
    taken_start: u64,
    /// The end mark is in front of `position`.
    pub(super) has_end: bool,
}

impl Ahead {
    /// Nothing is counted; the next message is at `position`.
    pub(super) fn new(position: u64) -> Self {
        Ahead { position, bytes: 0, taken_start: u64::MAX, has_end: false }
    }

    /// Counts anew from `end` on, where the message at `start`, which is in hand, ends.
    pub(super) fn restart(&mut self, start: u64, end: u64) {
        *self = Ahead { position: end, bytes: 0, taken_start: start, has_end: false };
    }

    /// Whether the bytes of the message at `start`, the next one, are among those counted. Of a batch, only until its first record
    /// with bytes is in hand: the others have its start.
    #[inline]
    pub(super) fn has_counted(&self, start: u64) -> bool {
        self.position > start && self.taken_start != start
    }

    /// The message from `start` to `end` of so many bytes, which was counted, is in hand now.
    pub(super) fn take(&mut self, start: u64, end: u64, bytes: u64) {
        self.taken_start = start;
        self.bytes = if end >= self.position { 0 } else { self.bytes.saturating_sub(bytes) };
    }
}

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Receiver<L, S, A> {
    /// The message at `position`, at or after the end of the one in hand, and its payload bytes, if all of it has arrived and can
    /// be one. Where something is missing the last line is looked at and no other.
    pub(super) fn whole_message_at(&mut self, position: u64) -> Option<(Header, u64)> {
        let free_lines = (self.next_start + self.mask + 1).checked_sub(position)?;
        let header = if free_lines == 0 { None } else { self.header_at(position) }?;
        let lines = header.lines();
        if u64::from(lines) > free_lines {
            return None;
        }
        let bytes = self.look_at(position, header, |receiver| {
            if !(0..lines).rev().all(|ahead| receiver.look(ahead) == 0xff) {
                return None;
            }
            match header.kind {
                Kind::Data => Some(u64::from(header.length_bytes)),
                Kind::Void => Some(0),
                Kind::Batch => receiver.record_bytes_left(Cursor::new(header.length_bytes)),
            }
        })?;
        Some((header, bytes))
    }

    /// The header at `position`, if it has arrived and can be one.
    pub(super) fn header_at(&mut self, position: u64) -> Option<Header> {
        let line = (position & self.mask) as u32;
        let (arrived, word) = self.test.arrived_head(&mut self.port, line);
        if arrived & 1 == 0 {
            return None;
        }
        Header::decode(word, self.lines(), self.epoch).ok()
    }

    /// Calls `look` with the receiver as if the message at `position` were the next, its escapes marked; `None` also when they
    /// cannot be. Nothing may be freed meanwhile.
    pub(super) fn look_at<T>(
        &mut self,
        position: u64,
        header: Header,
        look: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let next_start = core::mem::replace(&mut self.next_start, position);
        let is_escaped = header.escape_last != 0;
        let has_escapes = self.has_escapes;
        let found = if !is_escaped {
            look(self)
        } else if self.test.blank().is_some() && self.mark_escapes(header.escape_last).is_ok() {
            self.has_escapes = true;
            look(self)
        } else {
            None
        };
        if is_escaped {
            self.unmark_escapes(header.lines());
            self.has_escapes = has_escapes;
        }
        self.next_start = next_start;
        found
    }

    /// Payload bytes of the records from `cursor` on, of the batch at the next start; `None` when one cannot be.
    pub(super) fn record_bytes_left(&mut self, mut cursor: Cursor) -> Option<u64> {
        let mut bytes = 0;
        while let Some(record) = self.next_of(&mut cursor)? {
            bytes += u64::from(record.length_bytes);
        }
        Some(bytes)
    }

    /// The next record, `Some(None)` after the last, `None` for what cannot be one.
    pub(super) fn next_of(&mut self, cursor: &mut Cursor) -> Option<Option<Record>> {
        cursor.next(|payload_word| self.message_word(1 + payload_word)).ok()
    }
}
