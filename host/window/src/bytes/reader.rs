//! The receiver's end of a byte stream.
//!
//! A message is read when all of it has arrived, as every message is; from then on its lines are freed as they are read, and
//! not only at its end: each is whole, the header is known, and the escapes were found before the first of them was freed.
//! That is the rule of partial release (decision 0027). A batch is freed as a whole, since the length of each of its records is
//! in its lines.

use beeline_contract_memory::{CreditSink, LoadPort};
use beeline_spec::batch::Cursor;
use beeline_spec::header::lines_of;
use beeline_spec::{LINE_BYTES, WORDS_PER_LINE};

use super::ahead::Ahead;
use crate::Receiver;
use crate::arrival::{ArrivalTest, Blank};
use crate::delivery::Delivery;
use crate::error::ReceiveError;
use crate::observed::{DataBuffer, Observed};
use crate::phase::Phase;

/// What a read of a stream found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ByteRead {
    /// So many bytes; 0 only for a caller without room for any.
    Bytes(usize),
    /// No bytes are there yet.
    Nothing,
    /// The stream has ended: its sender shut it down and every byte was read.
    End,
}

/// Reads a byte stream from a window.
///
/// Errors of the receiver come after every byte in front of them. A sender that dies without shutting its stream down is an
/// error ([`ReceiveError::Gone`]), not an end.
#[derive(Debug)]
pub struct ByteReader<L: LoadPort, S: CreditSink, A: ArrivalTest = Blank> {
    pub(super) receiver: Receiver<L, S, A>,
    pub(super) hand: Hand,
    /// What is known of the messages behind the one in hand.
    pub(super) ahead: Ahead,
    /// Found by a call that gave bytes, or that does not consume: the next read says it.
    error: Option<ReceiveError>,
    pub(super) is_ended: bool,
}

/// The message that is being read, if `left_bytes` is not 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hand {
    pub(super) left_bytes: usize,
    /// Offset of the next byte from the line at the receiver's next start, which moves as lines are freed.
    pub(super) next_byte: usize,
    /// Lines from the next start to the end of the message, of which a record's batch is one.
    pub(super) lines: u32,
    kind: HandKind,
}

/// How a message is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandKind {
    Plain,
    /// With escapes, or found by a look that followed another.
    Whole,
    Record,
}

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> ByteReader<L, S, A> {
    /// Reads from the next message of `receiver` on.
    pub fn new(receiver: Receiver<L, S, A>) -> Self {
        let ahead = Ahead::new(receiver.next_start);
        let hand = Hand { left_bytes: 0, next_byte: 0, lines: 0, kind: HandKind::Plain };
        ByteReader { receiver, hand, ahead, error: None, is_ended: false }
    }

    /// Reads the next bytes into `out`, as many as it takes and have arrived, over any number of messages. Never waits.
    ///
    /// Bytes are copied once. A line is freed when its last byte is read, also in the middle of a message; credits are pushed as
    /// [`Receiver::poll`] does it: when enough have gathered, and when nothing more is there.
    ///
    /// # Errors
    /// [`ReceiveError`], for good, when no byte is in front of it.
    #[inline]
    pub fn read(&mut self, out: &mut [u8]) -> Result<ByteRead, ReceiveError> {
        let mut filled = 0;
        while filled < out.len() {
            if self.hand.left_bytes == 0 {
                match self.next_message() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) if filled == 0 => return Err(error),
                    Err(error) => {
                        self.error = Some(error);
                        break;
                    }
                }
            }
            filled += self.take(&mut out[filled..]);
        }
        Ok(self.answer(filled, out.is_empty()))
    }

    /// As [`ByteReader::read`] into the slices one after the other.
    ///
    /// # Errors
    /// As [`ByteReader::read`].
    pub fn read_vectored<B: core::ops::DerefMut<Target = [u8]>>(
        &mut self,
        slices: &mut [B],
    ) -> Result<ByteRead, ReceiveError> {
        let mut filled = 0;
        let mut is_empty = true;
        for slice in slices.iter_mut().filter(|slice| !slice.is_empty()) {
            is_empty = false;
            match self.read(slice) {
                Ok(ByteRead::Bytes(now)) => filled += now,
                Ok(_) => break,
                Err(error) if filled == 0 => return Err(error),
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        Ok(self.answer(filled, is_empty))
    }

    /// Whether a read may find bytes, the end or an error. Costs one look at a line at most, and pushes no credits.
    pub fn is_readable(&mut self) -> bool {
        let is_over = self.is_ended || self.error.is_some() || self.receiver.sender_gone;
        self.hand.left_bytes > 0 || is_over || self.receiver.has_begun()
    }

    /// Whether every byte was read and the sender has shut the stream down.
    pub fn is_at_end(&self) -> bool {
        self.is_ended
    }

    /// Pushes the credits of everything freed. For a reader that has read what it wanted and will not look for more soon: until
    /// then, its sender does not know of up to as many lines as gather ([`Receiver::with_coalescing`]).
    pub fn push_credits(&mut self) {
        self.receiver.push_credits();
    }

    /// As [`Receiver::sender_gone`]: what has arrived whole can still be read.
    pub fn sender_gone(&mut self) {
        self.receiver.sender_gone();
    }

    /// Lines of the window.
    pub fn lines(&self) -> u32 {
        self.receiver.lines()
    }

    fn answer(&self, filled: usize, is_for_none: bool) -> ByteRead {
        match filled {
            0 if is_for_none => ByteRead::Bytes(0),
            0 if self.is_ended => ByteRead::End,
            0 => ByteRead::Nothing,
            filled => ByteRead::Bytes(filled),
        }
    }

    /// Has the next message in hand, if there is one; an error stays for the next read.
    pub(super) fn fill_hand(&mut self) {
        if self.hand.left_bytes == 0
            && let Err(error) = self.next_message()
        {
            self.error = Some(error);
        }
    }

    /// Leaves an error that a read gave for the next read: for a caller that has bytes to hand on first.
    pub fn keep_error(&mut self, error: ReceiveError) {
        self.error = Some(error);
    }

    /// The error that the next read will say.
    pub(super) fn pending_error(&self) -> Option<ReceiveError> {
        self.error
    }

    /// Takes the next message that has bytes in hand. None is in hand.
    #[inline]
    fn next_message(&mut self) -> Result<bool, ReceiveError> {
        if self.is_ended || self.error.is_some() {
            return self.error.take().map_or(Ok(false), Err);
        }
        let Some(delivery) = self.receiver.advance()? else { return Ok(false) };
        if delivery.is_plain() && delivery.length_bytes() > 0 {
            self.adopt(delivery, lines_of(delivery.length_bytes() as u32), HandKind::Plain);
            return Ok(true);
        }
        self.next_special(delivery)
    }

    /// As [`ByteReader::next_message`] from this one on: a record, an escaped message, the end mark.
    #[cold]
    #[inline(never)]
    fn next_special(&mut self, first: Delivery) -> Result<bool, ReceiveError> {
        let mut delivery = first;
        let mut empty_records = 0;
        loop {
            let length_bytes = delivery.length_bytes();
            let (lines, kind) = match &self.receiver.phase {
                Phase::Batch { lines, .. } => (*lines, HandKind::Record),
                Phase::Delivered { header } => (header.lines(), HandKind::Whole),
                _ => (lines_of(length_bytes as u32), HandKind::Plain),
            };
            if length_bytes > 0 {
                self.adopt(delivery, lines, kind);
                return Ok(true);
            }
            self.receiver.release(delivery);
            if kind != HandKind::Record {
                self.is_ended = true;
                self.receiver.push_credits();
                return Ok(false);
            }
            // Empty records are skipped, no more than a window has in one call: their sender may store as fast as we free. The look
            // is before the next record is taken, which would be lost.
            empty_records += 1;
            if empty_records > self.receiver.lines() * WORDS_PER_LINE as u32 {
                return Ok(false);
            }
            let Some(next) = self.receiver.advance()? else { return Ok(false) };
            delivery = next;
        }
    }

    #[inline]
    fn adopt(&mut self, delivery: Delivery, lines: u32, kind: HandKind) {
        let (left_bytes, next_byte) = (delivery.length_bytes(), delivery.first_byte());
        self.hand = Hand { left_bytes, next_byte, lines, kind };
        let start = self.receiver.next_start;
        if self.ahead.has_counted(start) {
            let bytes = match &self.receiver.phase {
                Phase::Batch { cursor, .. } => {
                    // A batch was counted as a whole, and is taken off with its first record, however many are left of it.
                    left_bytes as u64 + self.receiver.record_bytes_left(cursor.clone()).unwrap_or(0)
                }
                _ => left_bytes as u64,
            };
            self.ahead.take(start, start + u64::from(lines), bytes);
        }
    }

    /// Copies bytes of the message in hand, as many as `out` takes, and frees the lines that are finished.
    #[inline]
    fn take(&mut self, out: &mut [u8]) -> usize {
        let bytes = self.hand.left_bytes.min(out.len());
        self.receiver.copy_bytes(self.hand.next_byte, &mut out[..bytes]);
        self.hand.next_byte += bytes;
        self.hand.left_bytes -= bytes;
        if self.hand.left_bytes == 0 {
            match self.hand.kind {
                HandKind::Plain => self.receiver.release_lines(self.hand.lines),
                HandKind::Whole => self.receiver.free(self.hand.lines),
                HandKind::Record => self.receiver.release_long(),
            }
        } else if self.hand.next_byte >= LINE_BYTES {
            self.free_prefix();
        }
        bytes
    }

    /// Frees the lines of the message in hand that were read.
    fn free_prefix(&mut self) {
        if self.hand.kind == HandKind::Record {
            return;
        }
        let lines = (self.hand.next_byte / LINE_BYTES) as u32;
        if self.receiver.has_escapes {
            self.receiver.unmark_escapes(lines);
        }
        self.receiver.release_lines(lines);
        self.hand.next_byte %= LINE_BYTES;
        self.hand.lines -= lines;
    }

    /// The records left of the batch that the message in hand is of, if it is one: where to go on.
    pub(super) fn records_left(&self) -> Option<Cursor> {
        match &self.receiver.phase {
            Phase::Batch { cursor, .. } => Some(cursor.clone()),
            _ => None,
        }
    }
}

impl<S: CreditSink> ByteReader<DataBuffer, S, Observed> {
    /// As [`Receiver::write_arrived`].
    ///
    /// # Errors
    /// As [`Receiver::write_arrived`].
    pub fn write_arrived(
        &mut self,
        offset_bytes: u64,
        bytes: &[u8],
        enables: Option<u64>,
    ) -> Result<(), ReceiveError> {
        self.receiver.write_arrived(offset_bytes, bytes, enables)
    }
}

/// Gives what has arrived; `WouldBlock` when nothing has, and no bytes at the end.
#[cfg(feature = "std")]
impl<L: LoadPort, S: CreditSink, A: ArrivalTest> std::io::Read for ByteReader<L, S, A> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        into_io(ByteReader::read(self, out))
    }

    fn read_vectored(&mut self, slices: &mut [std::io::IoSliceMut<'_>]) -> std::io::Result<usize> {
        into_io(ByteReader::read_vectored(self, slices))
    }
}

#[cfg(feature = "std")]
fn into_io(found: Result<ByteRead, ReceiveError>) -> std::io::Result<usize> {
    match found {
        Ok(ByteRead::Bytes(bytes)) => Ok(bytes),
        Ok(ByteRead::Nothing) => Err(std::io::ErrorKind::WouldBlock.into()),
        Ok(ByteRead::End) => Ok(0),
        Err(error @ (ReceiveError::Gone | ReceiveError::Torn(_))) => {
            Err(std::io::Error::new(std::io::ErrorKind::ConnectionReset, error))
        }
        Err(error) => Err(std::io::Error::new(std::io::ErrorKind::InvalidData, error)),
    }
}

#[cfg(test)]
pub(crate) mod tests;
