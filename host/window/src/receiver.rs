//! The receiver's end: messages out of stores that arrive in any order.
//!
//! The receiver looks at the *next start*, the place where the earliest message not yet delivered begins. Its header
//! word, whenever it comes, gives the length; the message is complete when every word of every one of its lines has
//! arrived (the length address register and the test vector of HotOS'25 §3.1). It is then handed out where it lies
//! ([`crate::Message`]) and freed when the handle is dropped: its lines are made free again, and then, by and by, their
//! credits are pushed.
//!
//! This file is the short way: a whole plain message, of one line or of several. Everything else (messages of which
//! lines are missing, void and escaped ones, batches, what is malformed, the sender's death) is in `order.rs`. Stores
//! come from [`crate::Writer`] in another process or thread; messages go to the caller. Waiting is in `wait.rs`.

use alloc::boxed::Box;
use alloc::vec;

use beeline_contract_memory::{CreditSink, GROUP_LINES, LoadPort};
use beeline_spec::header::lines_of;
use beeline_spec::{Header, Kind, WORDS_PER_LINE};

use crate::arrival::{ArrivalTest, Blank};
use crate::delivery::Delivery;
use crate::error::ReceiveError;
use crate::pace::Pace;
use crate::payload::{HEAD_BYTES, payload_bytes_of};
use crate::phase::Phase;
use crate::{Position, WindowConfig};

/// How many lines ahead a receiver prefetches unless told otherwise; found by measurement.
pub const PREFETCH_LINES: u32 = 32;
/// Credits are pushed when this fraction of a window is freed, unless told otherwise; found by measurement.
pub const COALESCE_PARTS: u32 = 8;

/// Lines of the next message that a waiting receiver looks at, when the last one had as many.
pub(crate) const WATCHED_LINES: u32 = 4;

/// How often the last line of a message that has begun is looked at before a poll gives up; loom and Miri need no more than two.
const LOOKS_AT_REST: u32 = if cfg!(any(loom, miri)) { 2 } else { 32 };

/// The receiver's end of a window in memory (`A` = [`Blank`]) or of an observed one ([`crate::Observed`]). It has cache
/// lines of its own, as [`crate::Writer`] has.
#[derive(Debug)]
#[repr(align(128))]
pub struct Receiver<L, S, A = Blank> {
    pub(crate) port: L,
    pub(crate) test: A,
    sink: S,
    /// Lines of the window less one: a power of two less one.
    pub(crate) mask: u64,
    pub(crate) epoch: u8,
    /// Whether a poll has to take the long way (`order.rs`).
    pub(crate) is_long: bool,
    /// A header of a data message without escapes, length 0: what most headers look like above the length.
    pub(crate) plain_header: u64,
    /// Longest payload that a message of this window can have.
    pub(crate) max_payload_bytes: u64,
    /// Start of the message that is next, or in the caller's hands. All lines before it are free.
    pub(crate) next_start: u64,
    published: u64,
    /// The next start from which on credits are pushed.
    pub(crate) push_at: u64,
    coalesce_lines: u64,
    pub(crate) pace: Pace,
    /// Lines of the last message, [`WATCHED_LINES`] at most.
    pub(crate) expected_lines: u32,
    /// The position from which on it is worth looking for whole groups of lines (`drain.rs`).
    pub(crate) groups_from: u64,
    pub(crate) sender_gone: bool,
    /// What the receiver is in the middle of, on the long way.
    pub(crate) phase: Phase,
    /// Which words of the message in hand are escapes, a byte for each line of the window; zero where none are.
    pub(crate) escaped: Box<[u8]>,
    pub(crate) has_escapes: bool,
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
            is_long: false,
            plain_header: Header::new(Kind::Data, 0, config.epoch).encode(),
            max_payload_bytes: u64::from(payload_bytes_of(lines)),
            next_start: 0,
            published: 0,
            push_at: 0,
            coalesce_lines: 0,
            pace: Pace::new(PREFETCH_LINES, lines),
            expected_lines: 1,
            groups_from: 0,
            sender_gone: false,
            phase: Phase::Start,
            escaped: vec![0; lines as usize].into_boxed_slice(),
            has_escapes: false,
        }
        .with_coalescing(lines / COALESCE_PARTS)
    }

    /// Prefetches lines this far ahead while the sender is well in front (`prefetch.rs`); 0 for never. More than an eighth
    /// of the window is cut to that.
    #[must_use]
    pub fn with_prefetch(mut self, lines: u32) -> Self {
        self.set_prefetch(lines);
        self
    }

    /// As [`Receiver::with_prefetch`], for a receiver that runs.
    pub fn set_prefetch(&mut self, lines: u32) {
        self.pace = Pace::new(lines, self.lines());
    }

    /// Pushes credits when this many lines are freed (and whenever nothing is there to receive). More than half the
    /// window is cut to that, so that the sender always has lines to go on with.
    #[must_use]
    pub fn with_coalescing(mut self, lines: u32) -> Self {
        self.set_coalescing(lines);
        self
    }

    /// As [`Receiver::with_coalescing`], for a receiver that runs.
    pub fn set_coalescing(&mut self, lines: u32) {
        self.coalesce_lines = u64::from(lines.clamp(1, (self.lines() / 2).max(1)));
        self.push_at = self.published + self.coalesce_lines;
    }

    /// Whether [`Receiver::drain`] tests and frees lines in groups of eight where it can; it does unless told otherwise.
    #[must_use]
    pub fn with_groups(mut self, in_groups: bool) -> Self {
        self.set_groups(in_groups);
        self
    }

    /// As [`Receiver::with_groups`], for a receiver that runs.
    pub fn set_groups(&mut self, in_groups: bool) {
        self.groups_from = if in_groups { 0 } else { u64::MAX };
    }

    /// [`Receiver::poll`] up to the handle: what the caller gets must become one (`message.rs`).
    #[inline(always)]
    pub(crate) fn advance(&mut self) -> Result<Option<Delivery>, ReceiveError> {
        if !self.is_long {
            let line = self.line(0);
            // Most polls of who waits find nothing: they look at one word and go. So does the poll that finds something: the branch
            // that was guessed wrong is known some cycles sooner than by a test of the whole line, and those are in every round
            // trip. Whoever is in the middle of a stream still holds credits back, and needs no such look.
            if self.next_start == self.published && !self.sender_gone && !self.has_begun_at(line) {
                return Ok(None);
            }
            let (arrived, header) = self.test.arrived_head(&mut self.port, line);
            // A whole line whose header is plain and short enough is a message; that is most of them. Length is the
            // lowest field of a header, so one subtraction and one comparison check every other field too.
            let length_bytes = self.plain_length(header);
            if arrived == 0xff {
                if length_bytes <= HEAD_BYTES as u64 {
                    self.expected_lines = 1;
                    self.prefetch(self.next_start);
                    return Ok(Some(Delivery::plain(line, length_bytes)));
                }
                if length_bytes <= self.max_payload_bytes && self.has_rest(length_bytes as u32) {
                    return Ok(Some(Delivery::plain(line, length_bytes)));
                }
            }
        }
        self.resume()
    }

    /// Whether a message has begun in this line, the one at the next start. Where the last message had several lines, the next
    /// ones are looked at too, so that they come over together with the first and not after it.
    #[inline(always)]
    pub(crate) fn has_begun_at(&mut self, line: u32) -> bool {
        let mut has_begun = self.test.has_begun(&mut self.port, line);
        if self.expected_lines > 1 {
            has_begun &= self.watch();
        }
        has_begun
    }

    /// Looks at the lines behind the next start that a message like the last one has; always `true`, but only after the looks.
    #[inline]
    fn watch(&mut self) -> bool {
        let mut seen = false;
        for ahead in 1..self.expected_lines {
            let line = self.line(ahead);
            seen |= self.test.has_begun(&mut self.port, line);
        }
        core::hint::black_box(seen);
        true
    }

    /// Whether every line after the first of a plain message has arrived. Its last line is looked at first: senders mostly
    /// store in ascending order, and a line that is looked at before it is stored must be fetched back by the sender.
    #[inline]
    pub(crate) fn has_rest(&mut self, length_bytes: u32) -> bool {
        let (start, last) = (self.next_start, lines_of(length_bytes) - 1);
        let mut looks = 1;
        while self.look(last) != 0xff {
            // It most often comes some nanoseconds after the first line: to go away and come back takes longer.
            if looks == LOOKS_AT_REST {
                return false;
            }
            looks += 1;
        }
        self.prefetch(start);
        let Some(ahead) = (if last > GROUP_LINES { self.has_groups(last) } else { Some(1) }) else {
            return false;
        };
        for ahead in ahead..last {
            if self.look(ahead) != 0xff {
                return false;
            }
            self.prefetch(start + u64::from(ahead));
        }
        self.prefetch(start + u64::from(last));
        self.expected_lines = (last + 1).min(WATCHED_LINES);
        true
    }

    /// Tests lines 1 to `last` of a message in groups, up to the end of the window. Returns the first that is in none, unless
    /// one of a group has not arrived. Not inlined: short messages have no use for it.
    #[inline(never)]
    fn has_groups(&mut self, last: u32) -> Option<u32> {
        let mut ahead = 1;
        while self.is_group(ahead, last - ahead) {
            let line = self.line(ahead);
            if !self.test.arrived_group(&mut self.port, line) {
                return None;
            }
            (0..GROUP_LINES).for_each(|next| self.prefetch(self.next_start + u64::from(ahead + next)));
            ahead += GROUP_LINES;
        }
        Some(ahead)
    }

    /// Whether `lines` lines from the one `ahead` of the next start on begin with a group that does not reach past the end of
    /// the window.
    #[inline(always)]
    fn is_group(&self, ahead: u32, lines: u32) -> bool {
        lines >= GROUP_LINES && u64::from(self.line(ahead)) + u64::from(GROUP_LINES) <= self.mask + 1
    }

    /// Whether a poll may find a message, or an error: its header has arrived, and once a poll has found the rest missing, the
    /// rest too. So who polls when this says so, and sleeps when it does not, is not kept awake by a sender that stops in the
    /// middle of a message. For who waits for several receivers; pushes no credits.
    #[inline]
    pub fn has_begun(&mut self) -> bool {
        if !self.is_long {
            return self.look(0) & 1 == 1;
        }
        let Phase::Arriving { header, arrived_lines } = &self.phase else { return true };
        let missing = *arrived_lines..header.lines();
        self.sender_gone || missing.rev().all(|ahead| self.look(ahead) == 0xff)
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
            self.push_at = self.published + self.coalesce_lines;
            self.sink.publish(self.published);
        }
    }

    /// The port, to change how it loads. Who frees lines through it takes messages away.
    pub fn port_mut(&mut self) -> &mut L {
        &mut self.port
    }

    /// The port, the credits and the arrival test.
    pub fn into_parts(self) -> (L, S, A) {
        (self.port, self.sink, self.test)
    }

    /// Payload bytes of a message with this header; more than any message has if the header is not a plain one.
    #[inline(always)]
    pub(crate) fn plain_length(&self, header: u64) -> u64 {
        header.wrapping_sub(self.plain_header)
    }

    /// The window's line that is `ahead` lines after the next start.
    #[inline(always)]
    pub(crate) fn line(&self, ahead: u32) -> u32 {
        ((self.next_start + u64::from(ahead)) & self.mask) as u32
    }

    /// What has arrived of the line that is `ahead` lines after the next start.
    #[inline(always)]
    pub(crate) fn look(&mut self, ahead: u32) -> u8 {
        let line = self.line(ahead);
        self.test.arrived_words(&mut self.port, line)
    }

    /// Word `index` of the message at the next start, un-escaped.
    #[inline]
    pub(crate) fn message_word(&self, index: u32) -> u64 {
        let line = self.line(index / WORDS_PER_LINE as u32);
        let slot = index % WORDS_PER_LINE as u32;
        if self.is_escaped(line, slot) {
            return self.test.blank().unwrap_or_default();
        }
        self.port.load_word(line, slot)
    }

    /// Whether word `slot` of a window line is an escape of the message in hand.
    #[inline(always)]
    pub(crate) fn is_escaped(&self, line: u32, slot: u32) -> bool {
        self.has_escapes && self.escaped[line as usize] >> slot & 1 == 1
    }

    /// The caller is done with a plain message of one line.
    #[inline(always)]
    pub(crate) fn release_line(&mut self, line: u32) {
        self.free_line(line);
        self.push_when_due();
    }

    /// The caller is done with a message of several lines, of which nothing is escaped any more.
    #[inline]
    pub(crate) fn release_lines(&mut self, lines: u32) {
        let left = if lines < GROUP_LINES { lines } else { self.free_groups(lines) };
        for _ in 0..left {
            self.free_line(self.line(0));
        }
        self.push_when_due();
    }

    /// As [`Receiver::free_line`] for lines from the next start on, in groups up to the end of the window; returns how many are
    /// left. Not inlined: short messages have no use for it.
    #[inline(never)]
    fn free_groups(&mut self, lines: u32) -> u32 {
        let mut left = lines;
        while self.is_group(0, left) {
            let line = self.line(0);
            self.test.free_group(&mut self.port, line);
            self.next_start += u64::from(GROUP_LINES);
            left -= GROUP_LINES;
        }
        left
    }

    /// Makes `line`, the one at the next start, free again and moves the next start past it.
    #[inline(always)]
    pub(crate) fn free_line(&mut self, line: u32) {
        self.test.free(&mut self.port, line);
        self.next_start += 1;
    }

    /// Pushes credits when enough have gathered.
    #[inline(always)]
    pub(crate) fn push_when_due(&mut self) {
        if self.next_start >= self.push_at {
            self.push_credits();
        }
    }
}

/// What several receivers of one window need of theirs (`shared/`).
#[cfg(feature = "std")]
impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Receiver<L, S, A> {
    /// Returns the sink that credits are pushed to.
    #[inline(always)]
    pub(crate) fn sink(&self) -> &S {
        &self.sink
    }

    /// Returns the sink that credits are pushed to.
    #[inline(always)]
    pub(crate) fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Which words of a line have arrived, and word 0.
    #[inline(always)]
    pub(crate) fn head(&mut self, line: u32) -> (u8, u64) {
        self.test.arrived_head(&mut self.port, line)
    }

    /// Takes a message in hand that starts here, wherever the last one was.
    #[inline(always)]
    pub(crate) fn start_at(&mut self, position: u64) {
        self.next_start = position;
        self.published = position;
        self.push_at = position + self.coalesce_lines;
    }
}

#[cfg(test)]
mod tests;
