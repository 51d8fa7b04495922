//! The receiver's end: messages out of stores that arrive in any order.
//!
//! The receiver looks at the *next start*, the place where the earliest message not yet delivered begins. Its header
//! word, whenever it comes, gives the length; the message is complete when every word of every one of its lines has
//! arrived (the length address register and the test vector of HotOS'25 §3.1). It is then handed out where it lies
//! ([`Message`]) and freed when the handle is dropped: its lines are made free again, and then, by and by, their
//! credits are pushed. Void messages are skipped; a batch is handed out record by record.
//!
//! Nothing that the sender writes is trusted: the header is read once and checked, chains and records are bounded by
//! it, and every access stays inside the window whatever changes meanwhile. What is malformed is final. Stores come
//! from [`crate::Writer`] in another process or thread; messages go to the caller. Waiting is in `wait.rs`.

use beeline_link_contract::{CreditSink, Line, LoadPort};
use beeline_spec::batch::Cursor;
use beeline_spec::header::words_of;
use beeline_spec::{Header, Kind, WORDS_PER_LINE, escape};

use crate::arrival::{ArrivalTest, Blank};
use crate::error::{ReceiveError, Torn};
use crate::message::{Delivery, Message};
use crate::{Position, WindowConfig};

/// Lines that are hinted to be loaded ahead of the one that was freed, unless told otherwise; found by measurement.
pub const PREFETCH_LINES: u32 = 16;
/// Freed lines whose credits are pushed together, unless told otherwise; found by measurement.
pub const COALESCE_LINES: u32 = 64;

/// What the receiver is in the middle of.
#[derive(Clone, Debug)]
enum Phase {
    /// Nothing known about the message at the next start.
    Start,
    /// Its header is known and this many of its lines have arrived.
    Arriving { header: Header, arrived_lines: u32 },
    /// It is in the caller's hands.
    Delivered { lines: u32 },
    /// It is a batch, of which records are being handed out.
    Batch { lines: u32, cursor: Cursor },
    /// Final.
    Failed(ReceiveError),
}

/// The receiver's end of a window in memory (`A` = [`Blank`]) or of an observed one ([`crate::Observed`]).
#[derive(Debug)]
pub struct Receiver<L, S, A = Blank> {
    pub(crate) port: L,
    pub(crate) test: A,
    sink: S,
    /// Lines of the window less one: a power of two less one.
    mask: u64,
    epoch: u8,
    /// A header of a data message without escapes, length 0: what most headers look like above the length.
    plain_header: u64,
    /// Start of the message that is next, or in the caller's hands. All lines before it are free.
    next_start: u64,
    published: u64,
    coalesce_lines: u64,
    prefetch_lines: u64,
    phase: Phase,
    sender_gone: bool,
    /// Which words of the message in hand are escapes, a byte for each line of the window; zero where none are.
    escaped: Box<[u8]>,
    has_escapes: bool,
}

impl<L: LoadPort, S: CreditSink> Receiver<L, S> {
    /// The receiver's end of a fresh blank window: every word of `port` holds the blank.
    ///
    /// # Panics
    /// If the port's lines are not a power of two, or the blank could be mistaken for a header, or is 0.
    pub fn new(port: L, sink: S, config: WindowConfig) -> Self {
        assert!(config.blank != 0, "a window in memory needs a blank; without one it is an observed window");
        Receiver::with_test(port, sink, Blank::new(config.blank), config)
    }
}

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Receiver<L, S, A> {
    /// A receiver with an arrival test of its own.
    pub fn with_test(port: L, sink: S, test: A, config: WindowConfig) -> Self {
        let lines = port.lines();
        config.check(lines);
        Receiver {
            port,
            test,
            sink,
            mask: u64::from(lines) - 1,
            epoch: config.epoch,
            plain_header: Header::new(Kind::Data, 0, config.epoch).encode(),
            next_start: 0,
            published: 0,
            coalesce_lines: u64::from(COALESCE_LINES.min(lines / 4).max(1)),
            prefetch_lines: u64::from(PREFETCH_LINES.min(lines / 2)),
            phase: Phase::Start,
            sender_gone: false,
            escaped: vec![0; lines as usize].into_boxed_slice(),
            has_escapes: false,
        }
    }

    /// Hints lines this far ahead of the freed ones; 0 for none. More than half the window is cut to that.
    #[must_use]
    pub fn with_prefetch(mut self, lines: u32) -> Self {
        self.prefetch_lines = u64::from(lines.min(self.lines() / 2));
        self
    }

    /// Pushes credits when this many lines are freed (and whenever nothing is there to receive). More than half the
    /// window is cut to that, so that the sender always has lines to go on with.
    #[must_use]
    pub fn with_coalescing(mut self, lines: u32) -> Self {
        self.coalesce_lines = u64::from(lines.clamp(1, (self.lines() / 2).max(1)));
        self
    }

    /// The next message, if it is complete. Void messages are skipped, a batch comes record by record.
    ///
    /// When there is none, credits held back are pushed, so that a polling receiver never starves its sender.
    ///
    /// # Errors
    /// [`ReceiveError`], for good: a malformed message, or after [`Receiver::sender_gone`] the end.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<Message<'_, L, S, A>>, ReceiveError> {
        Ok(self.advance()?.map(|delivery| Message::new(self, delivery)))
    }

    /// [`Receiver::poll`] up to the handle: what the caller gets must become one.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<Option<Delivery>, ReceiveError> {
        if !matches!(self.phase, Phase::Start) {
            return self.resume();
        }
        let (arrived, words) = self.look(0);
        // A whole line whose header is plain and short enough is a message; that is most of them. Length is the
        // lowest field of the header, so one subtraction and one comparison check every other field too.
        let length_bytes = words[0].wrapping_sub(self.plain_header);
        if arrived == 0xff && length_bytes <= crate::payload::HEAD_BYTES as u64 {
            self.phase = Phase::Delivered { lines: 1 };
            return Ok(Some(Delivery::message(length_bytes as u32)));
        }
        if arrived & 1 == 0 {
            return self.idle();
        }
        self.begin(words[0])
    }

    /// Start of the earliest message that is not complete or not yet freed (HotOS'25 §3.1).
    pub fn next_start(&self) -> Position {
        Position(self.next_start)
    }

    /// The first byte not yet arrived, counted from the making of the window. Looks at every line from the next start
    /// on that has arrived; for diagnosis, not for every message.
    pub fn frontier(&mut self) -> u64 {
        for ahead in 0..=self.mask {
            let line = self.line(ahead as u32);
            let bytes = self.test.prefix_bytes(&mut self.port, line);
            if bytes < 64 {
                return (self.next_start + ahead) * 64 + u64::from(bytes);
            }
        }
        (self.next_start + self.mask + 1) * 64
    }

    /// Lines of the window.
    pub fn lines(&self) -> u32 {
        (self.mask + 1) as u32
    }

    /// Tells the receiver that the kernel has shown the sender to be dead, so nothing more will arrive. Complete
    /// messages are still delivered; then [`ReceiveError::Torn`] once if words of another one are there, and
    /// [`ReceiveError::Gone`] from then on.
    pub fn sender_gone(&mut self) {
        self.sender_gone = true;
    }

    /// Pushes the credits of everything freed.
    pub fn push_credits(&mut self) {
        if self.published != self.next_start {
            self.published = self.next_start;
            self.sink.publish(self.published);
        }
    }

    /// The port, the credits and the arrival test.
    pub fn into_parts(self) -> (L, S, A) {
        (self.port, self.sink, self.test)
    }

    /// The window's line that is `ahead` lines after the next start.
    #[inline(always)]
    pub(crate) fn line(&self, ahead: u32) -> u32 {
        ((self.next_start + u64::from(ahead)) & self.mask) as u32
    }

    /// What has arrived of the line that is `ahead` lines after the next start.
    #[inline(always)]
    fn look(&mut self, ahead: u32) -> (u8, Line) {
        let line = self.line(ahead);
        self.test.arrived(&mut self.port, line)
    }

    /// Word `index` of the message at the next start, un-escaped.
    #[inline]
    pub(crate) fn message_word(&mut self, index: u32) -> u64 {
        let line = self.line(index / WORDS_PER_LINE as u32);
        let slot = index % WORDS_PER_LINE as u32;
        if self.is_escaped(line, slot) {
            return self.test.blank().unwrap_or_default();
        }
        self.port.load_word(line, slot)
    }

    /// Whether the message in hand has escapes at all.
    #[inline(always)]
    pub(crate) fn has_escapes(&self) -> bool {
        self.has_escapes
    }

    /// Whether word `slot` of a window line is an escape of the message in hand.
    #[inline(always)]
    pub(crate) fn is_escaped(&self, line: u32, slot: u32) -> bool {
        self.has_escapes && self.escaped[line as usize] >> slot & 1 == 1
    }

    /// The caller is done with what was delivered.
    #[inline]
    pub(crate) fn release(&mut self) {
        match &self.phase {
            Phase::Delivered { lines } => {
                let lines = *lines;
                self.phase = Phase::Start;
                self.free(lines);
            }
            Phase::Batch { lines, cursor } if cursor.is_done() => {
                let lines = *lines;
                self.phase = Phase::Start;
                self.free(lines);
            }
            _ => {}
        }
    }

    /// Remembers an error for good.
    #[cold]
    pub(crate) fn poison(&mut self, error: ReceiveError) -> ReceiveError {
        self.phase = Phase::Failed(error);
        error
    }

    /// The error that ended this receiver, if any.
    pub(crate) fn check_alive(&self) -> Result<(), ReceiveError> {
        match &self.phase {
            Phase::Failed(error) => Err(*error),
            _ => Ok(()),
        }
    }

    /// Goes on with what a poll found unfinished.
    #[inline(never)]
    fn resume(&mut self) -> Result<Option<Delivery>, ReceiveError> {
        match &mut self.phase {
            Phase::Start => self.advance(),
            Phase::Arriving { header, arrived_lines } => {
                let (header, arrived_lines) = (*header, *arrived_lines);
                self.scan(header, arrived_lines)
            }
            Phase::Delivered { .. } => {
                // The handle was forgotten instead of dropped.
                self.release();
                self.advance()
            }
            Phase::Batch { .. } => match self.next_record()? {
                Some(delivery) => Ok(Some(delivery)),
                None => self.advance(),
            },
            Phase::Failed(ReceiveError::Torn(_)) => {
                self.phase = Phase::Failed(ReceiveError::Gone);
                Err(ReceiveError::Gone)
            }
            Phase::Failed(error) => Err(*error),
        }
    }

    /// A header word arrived that is not that of a complete plain one-line message.
    #[inline(never)]
    fn begin(&mut self, mut word: u64) -> Result<Option<Delivery>, ReceiveError> {
        // Void messages and empty batches are skipped here rather than by calling ourselves, and in one poll hardly
        // more than a window of them, so that a sender of nothing else cannot keep the caller here. A dead sender has
        // left a window of them at most, so its end is always found.
        let last = self.next_start + self.mask + 1;
        loop {
            let position = Position(self.next_start);
            let header = match Header::decode(word, self.lines(), self.epoch) {
                Ok(header) => header,
                Err(error) => return Err(self.poison(ReceiveError::Header { position, error })),
            };
            self.phase = Phase::Arriving { header, arrived_lines: 0 };
            if let Some(delivery) = self.scan(header, 0)? {
                return Ok(Some(delivery));
            }
            if !matches!(self.phase, Phase::Start) || self.next_start > last {
                return Ok(None);
            }
            let (arrived, words) = self.look(0);
            if arrived & 1 == 0 {
                return self.idle();
            }
            word = words[0];
        }
    }

    /// Looks for the rest of a message whose header is known. Gives nothing with [`Phase::Arriving`] when it is not
    /// complete, and nothing with [`Phase::Start`] when it was skipped.
    fn scan(&mut self, header: Header, mut arrived_lines: u32) -> Result<Option<Delivery>, ReceiveError> {
        let lines = header.lines();
        while arrived_lines < lines {
            if self.look(arrived_lines).0 != 0xff {
                self.phase = Phase::Arriving { header, arrived_lines };
                return self.idle();
            }
            arrived_lines += 1;
        }
        self.complete(header)
    }

    /// A message is complete.
    fn complete(&mut self, header: Header) -> Result<Option<Delivery>, ReceiveError> {
        let lines = header.lines();
        if header.kind == Kind::Void {
            self.phase = Phase::Start;
            self.free(lines);
            return Ok(None);
        }
        if header.escape_last != 0 {
            self.find_escapes(header.escape_last)?;
        }
        if header.kind == Kind::Data {
            self.phase = Phase::Delivered { lines };
            return Ok(Some(Delivery::message(header.length_bytes)));
        }
        self.phase = Phase::Batch { lines, cursor: Cursor::new(header.length_bytes) };
        self.next_record()
    }

    /// The next record of the batch in hand; after the last one the batch is freed.
    fn next_record(&mut self) -> Result<Option<Delivery>, ReceiveError> {
        let Phase::Batch { lines, mut cursor } = self.phase.clone() else { return Ok(None) };
        match cursor.next(|payload_word| self.message_word(1 + payload_word)) {
            Ok(Some(record)) => {
                self.phase = Phase::Batch { lines, cursor };
                Ok(Some(Delivery::record(record)))
            }
            Ok(None) => {
                self.phase = Phase::Start;
                self.free(lines);
                Ok(None)
            }
            Err(error) => Err(self.poison(ReceiveError::Batch { position: Position(self.next_start), error })),
        }
    }

    /// Follows the chain of escapes once and marks the words it goes through.
    #[cold]
    #[inline(never)]
    fn find_escapes(&mut self, escape_last: u32) -> Result<(), ReceiveError> {
        let position = Position(self.next_start);
        if self.test.blank().is_none() {
            return Err(self.poison(ReceiveError::UnexpectedEscape { position, index: escape_last }));
        }
        self.has_escapes = true;
        let (start, mask) = (self.next_start, self.mask);
        let place = |index: u32| {
            let line = (start + u64::from(index) / WORDS_PER_LINE as u64) & mask;
            (line as u32, index % WORDS_PER_LINE as u32)
        };
        let (port, escaped) = (&mut self.port, &mut self.escaped);
        let load = |index| {
            let (line, slot) = place(index);
            port.load_word(line, slot)
        };
        let mark = |index| {
            let (line, slot) = place(index);
            escaped[line as usize] |= 1 << slot;
        };
        match escape::walk(escape_last, load, mark) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.poison(ReceiveError::Escape { position, error })),
        }
    }

    /// Nothing to deliver: what is held back for the sender is pushed.
    #[inline]
    fn idle(&mut self) -> Result<Option<Delivery>, ReceiveError> {
        self.push_credits();
        if self.sender_gone {
            return Err(self.end());
        }
        Ok(None)
    }

    /// The sender is dead and the message at the next start incomplete.
    #[cold]
    fn end(&mut self) -> ReceiveError {
        let words_seen = (0..=self.mask)
            .map(|ahead| {
                let line = self.line(ahead as u32);
                u64::from(self.test.touched(&mut self.port, line).count_ones())
            })
            .sum();
        let words_expected = match &self.phase {
            Phase::Arriving { header, .. } => Some(words_of(header.length_bytes)),
            _ => None,
        };
        let torn = Torn { position: Position(self.next_start), words_seen, words_expected };
        self.poison(if words_seen == 0 { ReceiveError::Gone } else { ReceiveError::Torn(torn) })
    }

    /// Makes the first `lines` lines free again and moves the next start past them.
    #[inline]
    fn free(&mut self, lines: u32) {
        if self.has_escapes {
            self.forget_escapes(lines);
        }
        for _ in 0..lines {
            self.port.prefetch(((self.next_start + self.prefetch_lines) & self.mask) as u32);
            let line = self.line(0);
            self.test.free(&mut self.port, line);
            self.next_start += 1;
        }
        if self.next_start - self.published >= self.coalesce_lines {
            self.push_credits();
        }
    }

    #[cold]
    fn forget_escapes(&mut self, lines: u32) {
        for ahead in 0..lines {
            let line = self.line(ahead);
            self.escaped[line as usize] = 0;
        }
        self.has_escapes = false;
    }
}

#[cfg(test)]
mod tests;
