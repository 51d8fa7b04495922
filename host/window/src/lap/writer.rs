//! The sender's end of a lap window: messages become plain stores that several receivers load.

use beeline_contract_memory::{CreditSource, Line, StorePort, fill_words};
use beeline_spec::lap::{
    GROUP_LINES, GROUP_PAYLOAD_WORDS, LapHeader, lap_of, lines_of, payload_bytes_of, stored, top,
};
use beeline_spec::{LINE_BYTES, WORD_BYTES};

use super::error::LapSendError;
use super::reader_id::ReaderId;
use super::readers::Readers;
use crate::payload::HEAD_BYTES;
use crate::{Position, Sent};

/// Payload bytes of a whole group of lines behind a message's first.
const GROUP_BYTES: usize = GROUP_PAYLOAD_WORDS * WORD_BYTES;

/// The sender's end of a lap window. It stores every line whole, once a lap, in ascending order, and reads nothing but the
/// counts that receivers push into its own memory.
#[derive(Debug)]
#[repr(align(128))]
pub struct LapWriter<P, C> {
    port: P,
    readers: Readers<C>,
    /// Lines of the window, a power of two.
    lines: u32,
    epoch: u8,
    max_payload_bytes: u32,
}

impl<P: StorePort, C: CreditSource> LapWriter<P, C> {
    /// The sender's end of a fresh window, every word of which is zero. Nobody receives yet ([`LapWriter::join`]).
    ///
    /// # Panics
    /// If the port's lines are not a power of two.
    pub fn new(port: P, epoch: u8) -> Self {
        let lines = port.lines();
        assert!(lines.is_power_of_two(), "a window of {lines} lines: the number must be a power of two");
        LapWriter {
            port,
            readers: Readers::new(lines),
            lines,
            epoch,
            max_payload_bytes: payload_bytes_of(lines),
        }
    }

    /// Takes in a receiver, whose count of freed lines is 0 now. It gets every message from the position on that is
    /// returned, which it must be told ([`super::LapReceiver::new`]) by something that comes after this call, as a socket does.
    ///
    /// This fences, against the principle and once a receiver: laps alternate, so it must not meet a word that was stored two
    /// laps ago and is yet to be replaced by the last lap's. The other receivers are known to have seen that, this one is not.
    pub fn join(&mut self, credits: C) -> (ReaderId, Position) {
        self.port.fence();
        (self.readers.join(credits), self.position())
    }

    /// Lets a receiver go, so that the others need not wait for it, and returns its count; `None` if it was removed before.
    ///
    /// Only on evidence that it does not read any more (the kernel's, that its process is dead), or when it pushed a count
    /// that cannot be. One that reads on gets no error, and messages that never were.
    pub fn remove(&mut self, reader: ReaderId) -> Option<C> {
        self.readers.remove(reader)
    }

    /// The receiver that the sender waits for when the window is full, and the first position that it has not freed, as last
    /// seen: whose life to look at when [`LapWriter::try_send`] keeps returning [`Sent::Full`].
    pub fn slowest(&self) -> Option<(ReaderId, Position)> {
        self.readers.slowest().map(|(reader, position)| (reader, Position(position)))
    }

    /// Sends one message to every receiver, if there is room.
    ///
    /// Up to 56 bytes are one line and one line store. Costs no fence and, unless credits seem out, no look at them.
    ///
    /// # Errors
    /// [`LapSendError`]. Nothing was stored then.
    #[inline]
    pub fn try_send(&mut self, payload: &[u8]) -> Result<Sent, LapSendError> {
        if payload.len() > HEAD_BYTES {
            return self.send_lines(payload);
        }
        if !self.readers.has(1) && !self.find_room(1)? {
            return Ok(Sent::Full);
        }
        let position = self.readers.next();
        self.store_head(position, payload.len() as u32, payload);
        self.readers.spend(1);
        self.port.wake_receiver();
        Ok(Sent::Sent)
    }

    /// Lines that can be stored before credits must be looked at again.
    pub fn free_lines(&self) -> u32 {
        self.readers.known_free()
    }

    /// Looks at the credits and says how many lines can be stored: all of them when every receiver has freed everything.
    ///
    /// # Errors
    /// As [`LapWriter::try_send`].
    pub fn refresh(&mut self) -> Result<u32, LapSendError> {
        self.readers.refresh(0)?;
        Ok(self.readers.known_free())
    }

    /// Lines of the window.
    pub fn lines(&self) -> u32 {
        self.lines
    }

    /// Longest payload of one message in bytes.
    pub fn max_payload_bytes(&self) -> usize {
        self.max_payload_bytes as usize
    }

    /// Returns the position of the next message.
    pub fn position(&self) -> Position {
        Position(self.readers.next())
    }

    /// The port, to look at what it counts.
    pub fn port(&self) -> &P {
        &self.port
    }

    /// As [`StorePort::progress`]: for whoever waits without sending.
    pub fn progress(&mut self) {
        self.port.progress();
    }

    #[cold]
    #[inline(never)]
    fn find_room(&mut self, lines: u32) -> Result<bool, LapSendError> {
        if self.readers.refresh(lines)? {
            return Ok(true);
        }
        self.port.progress();
        Ok(false)
    }

    /// A message of several lines.
    #[inline(never)]
    fn send_lines(&mut self, payload: &[u8]) -> Result<Sent, LapSendError> {
        let (bytes, max_bytes) = (payload.len(), self.max_payload_bytes as usize);
        if bytes > max_bytes {
            return Err(LapSendError::TooLong { bytes, max_bytes });
        }
        let lines = lines_of(bytes as u32);
        if !self.readers.has(lines) && !self.find_room(lines)? {
            return Ok(Sent::Full);
        }
        let start = self.readers.next();
        let (head, rest) = payload.split_at(HEAD_BYTES);
        self.store_head(start, bytes as u32, head);
        for (position, group) in (start + 1..).step_by(GROUP_LINES).zip(rest.chunks(GROUP_BYTES)) {
            self.store_group(position, group);
        }
        self.readers.spend(lines);
        self.port.wake_receiver();
        Ok(Sent::Sent)
    }

    /// Stores the first line of a message: its header, at most 56 bytes of payload, zeros.
    #[inline(always)]
    fn store_head(&mut self, position: u64, length_bytes: u32, head: &[u8]) {
        let mut words: Line = [0; 8];
        fill_words(&mut words[1..], head);
        let tops = tops_of(words[1..].iter().copied()) as u8;
        words[0] = LapHeader { length_bytes, tops, epoch: self.epoch }.encode();
        self.store(position, words);
    }

    /// Stores a group of lines: the word of tops, and the payload that these are of.
    fn store_group(&mut self, position: u64, payload: &[u8]) {
        // Lines are stored whole and in ascending order, so the payload, which is in the first-level cache then, is looked
        // through for its tops before the first of them.
        // A word that the payload ends inside of is padded with zeros, its top among them.
        let words = payload.as_chunks::<WORD_BYTES>().0;
        let tops = tops_of(words.iter().map(|word| u64::from_le_bytes(*word)));
        let (first, rest) = payload.split_at(payload.len().min(LINE_BYTES - WORD_BYTES));
        let mut line: Line = [0; 8];
        line[0] = tops;
        fill_words(&mut line[1..], first);
        self.store(position, line);
        for (position, bytes) in (position + 1..).zip(rest.chunks(LINE_BYTES)) {
            let mut line: Line = [0; 8];
            fill_words(&mut line, bytes);
            self.store(position, line);
        }
    }

    /// Stores a whole line with the lap of its position.
    #[inline(always)]
    fn store(&mut self, position: u64, words: Line) {
        let lap = lap_of(position, self.lines);
        let line = (position & u64::from(self.lines - 1)) as u32;
        self.port.store_line(line, &words.map(|word| stored(word, lap)));
    }
}

/// Bit 63 of each word, bit i for word i.
#[inline(always)]
fn tops_of(words: impl Iterator<Item = u64>) -> u64 {
    words.enumerate().fold(0, |tops, (bit, word)| tops | top(word) << bit)
}
