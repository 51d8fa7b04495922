//! A receiver's end of a lap window: it only loads.
//!
//! As in `receiver.rs`, the receiver looks at the next start, the header gives the length, and a message is complete when
//! every word of every one of its lines has arrived, in whatever order. What differs: a word has arrived when its bit 63 is
//! the lap of its line's position; nothing is made free in the window, only counted and pushed to the sender. Whatever a hostile
//! sender stores, a header is read once a look and checked, and every access stays inside the window.

use beeline_contract_memory::{CreditSink, ReadOnlyPort};
use beeline_spec::header::{HeaderError, words_of};
use beeline_spec::lap::{LapHeader, lap_of, payload_bytes_of};

use super::delivery::Delivery;
use crate::error::{ReceiveError, Torn};
use crate::{COALESCE_PARTS, Position};

/// A receiver's end of a lap window. There may be any number of them, each with credits of its own.
#[derive(Debug)]
#[repr(align(128))]
pub struct LapReceiver<L, S> {
    pub(super) port: L,
    sink: S,
    /// Lines of the window, a power of two.
    lines: u32,
    epoch: u8,
    max_payload_bytes: u32,
    /// Where this receiver joined: what it counts begins there.
    start: u64,
    /// Start of the message that is next, or in the caller's hands. All lines before it are free.
    next_start: u64,
    /// Lines of the message at the next start that are known to have arrived, the last one not among them.
    arrived_lines: u32,
    published: u64,
    coalesce_lines: u64,
    sender_gone: bool,
    failed: Option<ReceiveError>,
}

impl<L: ReadOnlyPort, S: CreditSink> LapReceiver<L, S> {
    /// The receiver's end of a window that it joins at `start` ([`super::LapWriter::join`]); `sink` has had no count pushed.
    ///
    /// # Panics
    /// If the port's lines are not a power of two, or `start` is 2^62 or more, where no window comes: whoever is told it by a
    /// peer that is not trusted checks it.
    pub fn new(port: L, sink: S, epoch: u8, start: Position) -> Self {
        let lines = port.lines();
        assert!(lines.is_power_of_two(), "a window of {lines} lines: the number must be a power of two");
        assert!(start.0 < 1 << 62, "a window that begins at {start}");
        LapReceiver {
            port,
            sink,
            lines,
            epoch,
            max_payload_bytes: payload_bytes_of(lines),
            start: start.0,
            next_start: start.0,
            arrived_lines: 0,
            published: start.0,
            coalesce_lines: 0,
            sender_gone: false,
            failed: None,
        }
        .with_coalescing(lines / COALESCE_PARTS)
    }

    /// Pushes credits when this many lines are freed (and whenever nothing is there to receive). More than half the
    /// window is cut to that, so that the sender always has lines to go on with.
    #[must_use]
    pub fn with_coalescing(mut self, lines: u32) -> Self {
        self.coalesce_lines = u64::from(lines.clamp(1, (self.lines / 2).max(1)));
        self
    }

    /// Start of the earliest message that is not complete or not yet freed (HotOS'25 §3.1).
    pub fn next_start(&self) -> Position {
        Position(self.next_start)
    }

    /// Lines of the window.
    pub fn lines(&self) -> u32 {
        self.lines
    }

    /// Tells the receiver that the kernel has shown the sender to be gone, so nothing more will arrive. Complete
    /// messages are still delivered; then [`ReceiveError::Torn`] once if words of another one are there, and
    /// [`ReceiveError::Gone`] from then on.
    pub fn sender_gone(&mut self) {
        self.sender_gone = true;
    }

    /// Pushes the credits of everything freed.
    #[inline(never)]
    pub fn push_credits(&mut self) {
        if self.published != self.next_start {
            self.published = self.next_start;
            self.sink.publish(self.published - self.start);
        }
    }

    /// The port and the credits.
    pub fn into_parts(self) -> (L, S) {
        (self.port, self.sink)
    }

    /// `LapReceiver::poll` up to the handle: what the caller gets must become one.
    #[inline(always)]
    pub(super) fn advance(&mut self) -> Result<Option<Delivery>, ReceiveError> {
        let (arrived, head) = self.look(0);
        if arrived & 1 == 0 || self.failed.is_some() {
            return self.idle();
        }
        let delivery = match LapHeader::decode(head, self.max_payload_bytes, self.epoch) {
            Ok(header) => Delivery::new(header),
            Err(error) => return Err(self.malformed(error)),
        };
        let is_complete = arrived == 0xff && (delivery.is_one_line() || self.has_rest(delivery.lines()));
        if is_complete { Ok(Some(delivery)) } else { self.idle() }
    }

    /// The word at the next start is no header.
    #[cold]
    #[inline(never)]
    fn malformed(&mut self, error: HeaderError) -> ReceiveError {
        let position = Position(self.next_start);
        self.fail(ReceiveError::Header { position, error })
    }

    /// Whether lines 1 to `lines` of a message have arrived. Its last line is looked at first: senders mostly store in
    /// ascending order, and a line that is looked at before it is stored must be fetched back by the sender.
    #[inline(never)]
    fn has_rest(&mut self, lines: u32) -> bool {
        if self.look(lines - 1).0 != 0xff {
            return false;
        }
        self.arrived_lines = self.arrived_lines.max(1);
        while self.arrived_lines < lines - 1 {
            if self.look(self.arrived_lines).0 != 0xff {
                return false;
            }
            self.arrived_lines += 1;
        }
        true
    }

    /// Which words have arrived of the line that is `ahead` lines after the next start, and its word 0.
    #[inline(always)]
    fn look(&mut self, ahead: u32) -> (u8, u64) {
        let position = self.next_start + u64::from(ahead);
        let (tops, head) = self.port.load_tops(self.line(position));
        let due = (lap_of(position, self.lines) >> 63) as u8;
        // 0xff where the lap is 1, and 0 where it is 0: a bit of the result is set where a top is the lap.
        (!(tops ^ due.wrapping_neg()), head)
    }

    /// The window's line at a position.
    #[inline(always)]
    fn line(&self, position: u64) -> u32 {
        position as u32 & (self.lines - 1)
    }

    /// Word `index` of the message at the next start, as it was stored.
    #[inline(always)]
    pub(super) fn message_word(&self, index: usize) -> u64 {
        let line = self.line(self.next_start + (index / 8) as u64);
        self.port.load_word(line, (index % 8) as u32)
    }

    /// The caller is done with the message at the next start.
    ///
    /// A message of one line has a branch of its own, which is predicted: were the lines reckoned from the header, the place of
    /// the next message would be known only when this line has come over, and no two lines would be on their way at a time.
    #[inline(always)]
    pub(super) fn release(&mut self, delivery: Delivery) {
        if delivery.is_one_line() {
            self.release_lines(1);
        } else {
            self.release_long(delivery);
        }
    }

    #[inline(never)]
    fn release_long(&mut self, delivery: Delivery) {
        self.release_lines(delivery.lines());
    }

    #[inline(always)]
    fn release_lines(&mut self, lines: u32) {
        self.next_start += u64::from(lines);
        self.arrived_lines = 0;
        if self.next_start - self.published >= self.coalesce_lines {
            self.push_credits();
        }
    }

    /// Nothing to deliver: what is held back for the sender is pushed.
    #[inline(always)]
    fn idle(&mut self) -> Result<Option<Delivery>, ReceiveError> {
        if self.next_start == self.published && !self.sender_gone && self.failed.is_none() {
            return Ok(None);
        }
        self.idle_long()
    }

    #[inline(never)]
    fn idle_long(&mut self) -> Result<Option<Delivery>, ReceiveError> {
        self.push_credits();
        match self.failed {
            Some(ReceiveError::Torn(_)) => Err(self.fail(ReceiveError::Gone)),
            Some(error) => Err(error),
            None if self.sender_gone => Err(self.end()),
            None => Ok(None),
        }
    }

    /// Forgets an error that the caller has not been told: the next look finds it again.
    #[cold]
    pub(super) fn forget_error(&mut self) {
        self.failed = None;
    }

    /// Remembers an error for good.
    #[cold]
    fn fail(&mut self, error: ReceiveError) -> ReceiveError {
        self.failed = Some(error);
        error
    }

    /// The sender is gone and the message at the next start incomplete.
    #[cold]
    fn end(&mut self) -> ReceiveError {
        let words_seen = (0..self.lines).map(|ahead| u64::from(self.look(ahead).0.count_ones())).sum();
        let (arrived, head) = self.look(0);
        let header = LapHeader::decode(head, self.max_payload_bytes, self.epoch);
        let words_expected =
            header.ok().filter(|_| arrived & 1 == 1).map(|header| words_of(header.length_bytes));
        let torn = Torn::new(Position(self.next_start), words_seen, words_expected);
        self.fail(if words_seen == 0 { ReceiveError::Gone } else { ReceiveError::Torn(torn) })
    }
}
