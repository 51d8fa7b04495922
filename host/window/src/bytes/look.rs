//! Counting and looking at the bytes of a stream, and leaving them to be read.

use beeline_contract_memory::{CreditSink, LoadPort};
use beeline_spec::batch::Cursor;
use beeline_spec::{Kind, LINE_BYTES, WORD_BYTES};

use super::reader::{ByteRead, ByteReader};
use crate::Receiver;
use crate::arrival::ArrivalTest;
use crate::error::ReceiveError;

/// Offset of a message's payload from its start.
const PAYLOAD_AT: usize = WORD_BYTES;

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> ByteReader<L, S, A> {
    /// Bytes that have arrived and were not read (`FIONREAD`): those that reads give without waiting, up to the end of the stream
    /// or an error. Frees nothing.
    ///
    /// Costs a look at each line that has arrived since the last call, so that is proportional to what came and not to what is
    /// queued; and a load for each unread record of the batch in hand.
    pub fn queued_bytes(&mut self) -> u64 {
        self.fill_hand();
        if self.is_ended || self.hand.left_bytes == 0 {
            return 0;
        }
        let records = self.records_left();
        let rest = records.map_or(0, |cursor| self.receiver.record_bytes_left(cursor).unwrap_or(0));
        self.count_ahead();
        // A hostile sender that makes messages shorter once they are counted adds up what is not there.
        let window_bytes = u64::from(self.receiver.lines()) * LINE_BYTES as u64;
        (self.hand.left_bytes as u64 + rest + self.ahead.bytes).min(window_bytes)
    }

    /// Copies bytes from the one on that is `offset` bytes after the next, as many as `out` takes and have arrived, and leaves
    /// them to be read (`MSG_PEEK`). [`ByteRead::Nothing`] if fewer have arrived, [`ByteRead::End`] if there will not be more.
    ///
    /// Costs a copy, a load for each message in front of the offset, and what [`ByteReader::queued_bytes`] does.
    ///
    /// # Errors
    /// As [`ByteReader::read`], which says the same error again.
    pub fn peek(&mut self, offset: u64, out: &mut [u8]) -> Result<ByteRead, ReceiveError> {
        if out.is_empty() {
            return Ok(ByteRead::Bytes(0));
        }
        self.fill_hand();
        if self.hand.left_bytes == 0 {
            return match self.pending_error() {
                Some(error) => Err(error),
                None if self.is_ended => Ok(ByteRead::End),
                None => Ok(ByteRead::Nothing),
            };
        }
        self.count_ahead();
        let mut peek = Peek { skip: offset, out, filled: 0 };
        let hand = self.hand;
        peek.copy(&mut self.receiver, hand.next_byte, hand.left_bytes);
        if let Some(cursor) = self.records_left() {
            // What cannot be a record ends the look.
            let _ = peek.copy_records(&mut self.receiver, cursor);
        }
        let mut position = self.receiver.next_start + u64::from(hand.lines);
        while !peek.is_full() && position < self.ahead.position {
            let Some(header) = self.receiver.header_at(position) else { break };
            self.receiver.look_at(position, header, |receiver| match header.kind {
                Kind::Data => {
                    peek.copy(receiver, PAYLOAD_AT, header.length_bytes as usize);
                    Some(())
                }
                Kind::Void => Some(()),
                Kind::Batch => peek.copy_records(receiver, Cursor::new(header.length_bytes)),
            });
            position += u64::from(header.lines());
        }
        Ok(match peek.filled {
            0 if self.ahead.has_end => ByteRead::End,
            0 => ByteRead::Nothing,
            filled => ByteRead::Bytes(filled),
        })
    }

    /// Counts the messages that have arrived since the last time. A message is in hand.
    fn count_ahead(&mut self) {
        let start = self.receiver.next_start;
        let end = start + u64::from(self.hand.lines);
        if self.ahead.position < end {
            self.ahead.restart(start, end);
        }
        while !self.ahead.has_end
            && let Some((header, bytes)) = self.receiver.whole_message_at(self.ahead.position)
        {
            self.ahead.has_end = header.kind == Kind::Data && bytes == 0;
            self.ahead.bytes += bytes;
            self.ahead.position += u64::from(header.lines());
        }
    }
}

/// Where peeked bytes go.
struct Peek<'o> {
    /// Bytes of the stream that are left out still.
    skip: u64,
    out: &'o mut [u8],
    filled: usize,
}

impl Peek<'_> {
    fn is_full(&self) -> bool {
        self.filled == self.out.len()
    }

    /// Copies of `bytes` bytes, the first of which is so many after the next start.
    fn copy<L: LoadPort, S: CreditSink, A: ArrivalTest>(
        &mut self,
        receiver: &mut Receiver<L, S, A>,
        first_byte: usize,
        bytes: usize,
    ) {
        let skipped = self.skip.min(bytes as u64) as usize;
        self.skip -= skipped as u64;
        let now = (bytes - skipped).min(self.out.len() - self.filled);
        if now > 0 {
            receiver.copy_bytes(first_byte + skipped, &mut self.out[self.filled..][..now]);
            self.filled += now;
        }
    }

    /// Copies of the records from `cursor` on; `None` when one cannot be.
    fn copy_records<L: LoadPort, S: CreditSink, A: ArrivalTest>(
        &mut self,
        receiver: &mut Receiver<L, S, A>,
        mut cursor: Cursor,
    ) -> Option<()> {
        while !self.is_full() {
            let Some(record) = receiver.next_of(&mut cursor)? else { break };
            let first_byte = PAYLOAD_AT + record.offset_bytes as usize;
            self.copy(receiver, first_byte, record.length_bytes as usize);
        }
        Some(())
    }
}
