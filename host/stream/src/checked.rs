//! Windows of connections that keep what they send: each message carries a checksum, and none of its bytes is given before it is right.
//!
//! A message is one word, then bytes of the stream. The low half of the word is the CRC-32C of which stream it is, of the first byte's offset in
//! that, each as eight little-endian bytes, and of the bytes. So a message that is whole and stands in another's place is found as well, also
//! one of another connection or of the other direction. The high half is 0.

use beeline_contract_memory::{CreditSink, CreditSource, LoadPort, StorePort};
use beeline_ledger::{WindowLost, WindowPath};
use beeline_window::{Receiver, Sent, Writer};

use crate::socket::{WindowFailed, WindowSink};

/// Bytes of the stream in one message at most; a quarter of the window in smaller ones.
pub const CHECKED_MESSAGE_BYTES: usize = 4080;

/// The word in front of the bytes.
const PREFIX_BYTES: usize = 8;

/// Which stream a window has: both ends say the same, and no two streams whose windows somebody can take one for the other have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamId(u32);

impl StreamId {
    /// Of what names the sending socket and the receiving one. Another order is the other direction.
    pub fn new(sender: u64, receiver: u64) -> Self {
        StreamId(crc32c::crc32c_append(crc32c::crc32c(&sender.to_le_bytes()), &receiver.to_le_bytes()))
    }

    fn checksum(self, offset: u64, bytes: &[u8]) -> u64 {
        crc32c::crc32c_append(crc32c::crc32c_append(self.0, &offset.to_le_bytes()), bytes).into()
    }
}

/// Sends a stretch of the stream by a window, in messages that carry a checksum.
#[derive(Debug)]
pub struct CheckedWriter<P, C> {
    writer: Writer<P, C>,
    stream: StreamId,
    most_bytes: usize,
}

impl<P: StorePort, C: CreditSource> CheckedWriter<P, C> {
    /// By a window that has sent nothing.
    pub fn new(writer: Writer<P, C>, stream: StreamId) -> Self {
        let quarter_bytes = (writer.max_payload_bytes() / 4).saturating_sub(PREFIX_BYTES);
        CheckedWriter { most_bytes: quarter_bytes.clamp(1, CHECKED_MESSAGE_BYTES), writer, stream }
    }
}

impl<P: StorePort, C: CreditSource> WindowSink for CheckedWriter<P, C> {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<usize, WindowFailed> {
        let mut taken = 0;
        for message in bytes.chunks(self.most_bytes) {
            let checksum = self.stream.checksum(offset + taken as u64, message);
            match self.writer.try_send_prefixed(checksum, message) {
                Ok(Sent::Sent) => taken += message.len(),
                Ok(Sent::Full) => break,
                // The next call says it again.
                Err(_) if taken > 0 => break,
                Err(_) => return Err(WindowFailed),
            }
        }
        Ok(taken)
    }

    fn settle(&mut self) {
        self.writer.fence();
    }
}

/// Receives what a [`CheckedWriter`] sends.
#[derive(Debug)]
pub struct CheckedReader<L, S> {
    receiver: Receiver<L, S>,
    stream: StreamId,
    /// Bytes that were checked; those before `next` were given.
    hand: Vec<u8>,
    next: usize,
    is_lost: bool,
}

impl<L: LoadPort, S: CreditSink> CheckedReader<L, S> {
    /// From a window of which nothing was read. It allocates [`CHECKED_MESSAGE_BYTES`], and more only where more is peeked at.
    pub fn new(receiver: Receiver<L, S>, stream: StreamId) -> Self {
        let hand = Vec::with_capacity(CHECKED_MESSAGE_BYTES);
        CheckedReader { receiver, stream, hand, next: 0, is_lost: false }
    }

    /// Bytes of memory that it has for what was checked, besides the window.
    pub fn held_bytes(&self) -> usize {
        self.hand.capacity()
    }

    /// The bytes of the next message, of which the first is byte `offset`: to `out` if it has room for all of them, else to the hand.
    /// Says how many went to `out`, or `None` when none have come.
    fn next_message(&mut self, offset: u64, out: &mut [u8]) -> Result<Option<usize>, WindowLost> {
        if self.is_lost {
            return Err(WindowLost);
        }
        // What was given would stay for as long as a program that peeks leaves some.
        self.hand.drain(..std::mem::take(&mut self.next));
        let CheckedReader { receiver, stream, hand, .. } = self;
        let checked = match receiver.poll() {
            Ok(None) => return Ok(None),
            Ok(Some(mut message)) => {
                // Loaded once: its sender can change it at any time. What is checked is memory that is ours alone.
                let (prefix, bytes) = (message.word(0), message.len().wrapping_sub(PREFIX_BYTES));
                let direct = if bytes <= out.len() { bytes } else { 0 };
                match bytes {
                    1..=CHECKED_MESSAGE_BYTES => {
                        let kept = hand.len();
                        let to = if direct > 0 {
                            &mut out[..bytes]
                        } else {
                            hand.resize(kept + bytes, 0);
                            &mut hand[kept..]
                        };
                        message.copy_out_from(1, to);
                        let is_right = stream.checksum(offset, to) == prefix;
                        if !is_right {
                            hand.truncate(kept);
                        }
                        is_right.then_some(direct)
                    }
                    _ => None,
                }
            }
            Err(_) => None,
        };
        self.is_lost = checked.is_none();
        checked.map(Some).ok_or(WindowLost)
    }

    /// Copies bytes of the hand.
    fn show(&self, out: &mut [u8]) -> usize {
        let hand = &self.hand[self.next..];
        let bytes = hand.len().min(out.len());
        out[..bytes].copy_from_slice(&hand[..bytes]);
        bytes
    }

    fn give(&mut self, out: &mut [u8]) -> usize {
        let bytes = self.show(out);
        self.next += bytes;
        if self.next == self.hand.len() {
            self.hand.clear();
            self.next = 0;
            // No call of the allocator's but behind a peek.
            self.hand.shrink_to(CHECKED_MESSAGE_BYTES);
        }
        bytes
    }
}

impl<L: LoadPort, S: CreditSink> WindowPath for CheckedReader<L, S> {
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, WindowLost> {
        let mut filled = self.give(out);
        while filled < out.len() {
            match self.next_message(offset + filled as u64, &mut out[filled..]) {
                Ok(None) => break,
                Ok(Some(0)) => filled += self.give(&mut out[filled..]),
                Ok(Some(direct)) => filled += direct,
                // The next call says it again.
                Err(WindowLost) if filled > 0 => break,
                Err(lost) => return Err(lost),
            }
        }
        Ok(filled)
    }

    fn peek(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, WindowLost> {
        loop {
            let held = self.hand.len() - self.next;
            if held >= out.len() {
                break;
            }
            // To the hand, since there is no room anywhere else.
            match self.next_message(offset + held as u64, &mut []) {
                Ok(Some(_)) => {}
                Err(lost) if held == 0 => return Err(lost),
                Ok(None) | Err(WindowLost) => break,
            }
        }
        Ok(self.show(out))
    }
}
