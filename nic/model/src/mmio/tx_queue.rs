//! One queue of the reorder unit: where its frontier and its next start are, and its lines in the pool.
//!
//! Positions are lines since the queue was started and never wrap; a window line is a position modulo the window.
//! Lines enter the list in order of position when they are whole; the front of the list are complete messages, the rest
//! the front of the earliest incomplete one. Not here: lines that are not whole ([`super::reorder_unit`]) and the
//! inside of messages ([`super::message`]). HotOS'25 §3.1 ("Length Address Register", "NextStartAddress").
//!
//! The common message, plain data without escapes, is known by one comparison of its header word and is opened without
//! reading the pool again; everything else takes the checked way through `spec`.

use beeline_spec::formats::{MIN_FRAME_BYTES, header as f};
use beeline_spec::header::lines_of;
use beeline_spec::{Header, HeaderError, Kind, LINE_BYTES};

use crate::engine::{Cause, Counters, QueueSettings};

use super::buffer_pool::{Account, BufferPool, NONE, PoolLine};
use super::message::{BatchWalk, Frame};
use super::reorder_unit::ContextId;

/// Where a window line lies as seen from the frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineState {
    /// So many lines from the frontier's line on, inside the span.
    Ahead(u32),
    /// Inside the window but beyond the span: how many lines ahead.
    BeyondSpan(u32),
    /// On a line that has arrived and is not free yet.
    NotFree,
}

/// So many lines went from the window to the pool, and perhaps a message ended with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Appended {
    pub lines: u32,
    /// The last of them is the last one of its message.
    pub is_whole: bool,
}

/// A queue's state.
#[derive(Debug)]
pub(crate) struct TxQueue {
    /// The first line that has not wholly arrived.
    pub frontier: u64,
    /// Start of the earliest incomplete message; the Length Address Register is 64 times this, because the length is
    /// in a message's first word.
    pub next_start: u64,
    /// Lines whose credit was returned, all of them before the frontier.
    pub freed: u64,
    /// Header word of the earliest incomplete message, meaningless while `missing_lines` is 0.
    incoming: u64,
    /// Header word of plain data in this epoch, with length 0.
    plain: u64,
    /// Lines the earliest incomplete message still lacks; 0: its header has not arrived.
    missing_lines: u32,
    /// The line in which it starts.
    incoming_first: u32,
    /// The list: its first line, its last one, and how many lines of it are complete messages.
    first: u32,
    complete_lines: u32,
    last: u32,
    /// Pool lines set aside for the earliest incomplete message: the next one, and how many are left.
    aside: u32,
    aside_lines: u32,
    window_lines: u32,
    max_frame_bytes: u32,
    /// The frame that goes out next, if any, and the lines of the message it is in.
    frame: Frame,
    head_lines: u32,
    /// That message, when it is a batch.
    batch: Option<BatchWalk>,
    /// Lines with which the frame of an incomplete message may begin; 0: it never does.
    cut_through_lines: u32,
    /// Start of the message whose frame began before it was complete: it does so once.
    begun_at: Option<u64>,
    /// Whether the frame that was begun is on the wire.
    is_open: bool,
    /// Its reorder context, while something incomplete is held.
    pub context: Option<ContextId>,
    /// Where its lines and contexts are taken from.
    pub account: Account,
    /// The queue was started and not stopped since.
    pub started: bool,
    /// The queue takes writes.
    pub active: bool,
    epoch: u8,
    /// The blank of the window; 0 for an observed one.
    pub blank: u64,
    /// How long a hole may stand, in ns; 0: for ever.
    pub hole_timeout_ns: u64,
}

/// The length in a header word.
#[inline]
const fn length_of(word: u64) -> u32 {
    (word >> f::LENGTH_BYTES_LSB & f::LENGTH_BYTES_MASK) as u32
}

/// A header word without its length.
#[inline]
const fn without_length(word: u64) -> u64 {
    word & !(f::LENGTH_BYTES_MASK << f::LENGTH_BYTES_LSB)
}

impl TxQueue {
    /// A queue that was never started.
    pub(crate) fn new() -> Self {
        TxQueue {
            frontier: 0,
            next_start: 0,
            freed: 0,
            incoming: 0,
            plain: 0,
            missing_lines: 0,
            incoming_first: NONE,
            first: NONE,
            complete_lines: 0,
            last: NONE,
            aside: NONE,
            aside_lines: 0,
            window_lines: 1,
            max_frame_bytes: 0,
            frame: Frame::NONE,
            head_lines: 0,
            batch: None,
            cut_through_lines: 0,
            begun_at: None,
            is_open: false,
            context: None,
            account: Account::Shared,
            started: false,
            active: false,
            epoch: 0,
            blank: 0,
            hole_timeout_ns: 0,
        }
    }

    /// Starts with an empty window. A data message may have `max_frame_bytes`.
    pub(crate) fn start(&mut self, settings: &QueueSettings, max_frame_bytes: u32) {
        *self = TxQueue {
            plain: Header::new(Kind::Data, 0, settings.epoch).encode(),
            window_lines: settings.window_lines,
            max_frame_bytes,
            account: if settings.backpressure { Account::Shared } else { Account::Reserved },
            started: true,
            active: true,
            epoch: settings.epoch,
            blank: settings.blank,
            hole_timeout_ns: settings.hole_timeout_ns,
            cut_through_lines: settings.cut_through_lines,
            ..TxQueue::new()
        };
    }

    pub(crate) fn window_lines(&self) -> u32 {
        self.window_lines
    }

    /// Where a line of the window lies.
    #[inline]
    pub(crate) fn locate(&self, line: u32, span_lines: u32) -> LineState {
        let ahead = line.wrapping_sub(self.frontier as u32) & (self.window_lines - 1);
        // The same line in the lap before is this far behind the frontier; it is free unless it waits in the pool.
        let behind = self.window_lines - ahead;
        if u64::from(behind) <= self.frontier - self.freed {
            LineState::NotFree
        } else if ahead >= span_lines {
            LineState::BeyondSpan(ahead)
        } else {
            LineState::Ahead(ahead)
        }
    }

    /// Takes whole lines, the first of which is the one at the frontier, into the pool: all of `lines`, or fewer, one at least,
    /// and none behind the end of their message. How many that were, and whether the last of them ends its message. When it fails, the cause was
    /// counted and the frontier has not moved.
    #[inline]
    pub(crate) fn append(
        &mut self,
        pool: &mut BufferPool,
        lines: &[PoolLine],
        counters: &mut Counters,
    ) -> Result<Appended, Cause> {
        let is_first = self.missing_lines == 0;
        if is_first {
            let header = lines.first().and_then(|line| line.first_chunk());
            let word = u64::from_le_bytes(*header.expect("a line is longer than a word"));
            self.missing_lines = self.open(word, counters)?;
            self.incoming = word;
            if lines.len() < self.missing_lines as usize && self.account == Account::Reserved {
                // The rest comes later, and others' lines meanwhile. No more than the window has free: that was reserved.
                let count = self.missing_lines.min(self.free_window_lines());
                if let Some(first) = pool.set_aside(count) {
                    (self.aside, self.aside_lines) = (first, count);
                }
            }
        }
        let mut count = (lines.len() as u32).min(self.missing_lines);
        let list = if self.aside_lines != 0 {
            count = count.min(self.aside_lines);
            self.aside_lines -= count;
            let list = pool.fill_aside(self.aside, &lines[..count as usize]);
            self.aside += count;
            list
        } else {
            let Some(list) = pool.take(self.account, &lines[..count as usize]) else {
                counters.no_pool += 1;
                return Err(Cause::NoPool);
            };
            list
        };
        if is_first && self.complete_lines == 0 {
            self.first = list.first;
        } else {
            pool.link(self.last, list.first);
        }
        if is_first {
            self.incoming_first = list.first;
        }
        self.last = list.last;
        self.frontier += u64::from(count);
        self.missing_lines -= count;
        Ok(Appended { lines: count, is_whole: self.missing_lines == 0 })
    }

    /// The lines of the message whose header word this is.
    #[inline]
    fn open(&self, word: u64, counters: &mut Counters) -> Result<u32, Cause> {
        let length_bytes = length_of(word);
        if without_length(word) == self.plain && length_bytes <= self.max_frame_bytes {
            let lines = lines_of(length_bytes);
            if lines <= self.window_lines {
                return Ok(lines);
            }
        }
        self.open_special(word, counters)
    }

    #[cold]
    fn open_special(&self, word: u64, counters: &mut Counters) -> Result<u32, Cause> {
        let header = match Header::decode(word, self.window_lines, self.epoch) {
            Ok(header) => header,
            Err(HeaderError::TooLong { .. }) => {
                counters.bad_lengths += 1;
                return Err(Cause::BadLength);
            }
            Err(_) => {
                counters.bad_headers += 1;
                return Err(Cause::BadHeader);
            }
        };
        if header.kind == Kind::Data && header.length_bytes > self.max_frame_bytes {
            counters.bad_lengths += 1;
            return Err(Cause::BadLength);
        }
        // Only a window with a blank has anything to escape.
        if header.escape_last != 0 && self.blank == 0 {
            counters.bad_headers += 1;
            return Err(Cause::BadHeader);
        }
        Ok(header.lines())
    }

    /// Whether the message whose last line was appended is data without escapes, long enough to be sent.
    #[inline]
    pub(crate) fn incoming_is_plain(&self) -> bool {
        without_length(self.incoming) == self.plain && length_of(self.incoming) as usize >= MIN_FRAME_BYTES
    }

    /// The header of that message, and the pool line in which it starts.
    pub(crate) fn incoming(&self) -> (Header, u32) {
        (self.decode(self.incoming), self.incoming_first)
    }

    /// Decodes a header that was checked when its line arrived.
    fn decode(&self, word: u64) -> Header {
        Header::decode(word, self.window_lines, self.epoch)
            .expect("the header was checked when its line arrived")
    }

    /// That message is good: the next start moves behind it. Returns its lines.
    #[inline]
    pub(crate) fn complete_message(&mut self) -> u32 {
        let lines = (self.frontier - self.next_start) as u32;
        self.next_start = self.frontier;
        self.complete_lines += lines;
        lines
    }

    /// The same for plain data: if nothing is at the head, its frame is, without a look at the pool.
    #[inline]
    pub(crate) fn complete_plain(&mut self) -> u32 {
        let lines = self.complete_message();
        if self.frame.bytes == 0 {
            self.head_lines = lines;
            self.frame = Frame::of_data(self.incoming_first, length_of(self.incoming));
        }
        lines
    }

    /// Whether the frame of the earliest incomplete message may begin: it is plain data, nothing is in front of it, and
    /// enough of it is there.
    #[inline]
    pub(crate) fn can_begin(&self) -> bool {
        self.cut_through_lines != 0
            && self.complete_lines == 0
            && self.missing_lines != 0
            && self.incoming_lines() >= self.cut_through_lines
            && self.begun_at != Some(self.next_start)
            && self.incoming_is_plain()
    }

    /// Lines of the earliest incomplete message that are there.
    fn incoming_lines(&self) -> u32 {
        (self.frontier - self.next_start) as u32
    }

    /// Bytes of the frame of the earliest incomplete message.
    pub(crate) fn incoming_bytes(&self) -> u32 {
        length_of(self.incoming)
    }

    /// Begins the frame that is whole.
    pub(crate) fn begin(&mut self) {
        self.begun_at = Some(self.next_start);
        self.is_open = true;
    }

    /// The frame that began early is no longer on the wire.
    pub(crate) fn close(&mut self) {
        self.is_open = false;
    }

    /// What is there of a frame that began early: all of it, or the beats whose last bytes, which lie in the next line,
    /// are there too. `None` when its message is gone.
    pub(crate) fn open_frame(&self) -> Option<Frame> {
        if !self.is_open {
            return None;
        }
        if self.frame.bytes != 0 {
            return Some(self.frame);
        }
        let whole_beats = (self.incoming_lines() - 1) * LINE_BYTES as u32;
        Some(Frame::of_data(self.incoming_first, whole_beats))
    }

    /// If `line` is the window's line at the frontier and nothing incomplete is held: how many lines from it on are free.
    /// Otherwise none.
    #[inline]
    pub(crate) fn next_lines(&self, line: u32) -> u32 {
        let is_next =
            self.active && self.context.is_none() && line == self.frontier as u32 & (self.window_lines - 1);
        if is_next { self.free_window_lines() } else { 0 }
    }

    /// Lines that the earliest incomplete message lacks, if `line` is the first of them; 0 where its frame may begin without
    /// them.
    #[inline]
    pub(crate) fn awaited_lines(&self, line: u32) -> u32 {
        let waits = self.cut_through_lines == 0 && self.next_lines(line) != 0;
        if waits { self.missing_lines } else { 0 }
    }

    /// Lines of the window that hold nothing, or a part of a line.
    #[inline]
    fn free_window_lines(&self) -> u32 {
        self.window_lines - (self.frontier - self.freed) as u32
    }

    /// Opens complete messages until one has a frame; gives the others back. Returns the lines given back.
    #[inline]
    pub(crate) fn settle_head(&mut self, pool: &mut BufferPool) -> u32 {
        let mut given_back = 0;
        while self.frame.bytes == 0 && self.complete_lines > 0 {
            let word = pool.word(self.first, 0);
            if without_length(word) == self.plain && length_of(word) as usize >= MIN_FRAME_BYTES {
                self.head_lines = lines_of(length_of(word));
                self.frame = Frame::of_data(self.first, length_of(word));
            } else {
                given_back += self.open_head(pool, word);
            }
        }
        given_back
    }

    /// Opens a message at the head that is not plain data; gives it back at once if nothing in it can be sent.
    #[inline(never)]
    fn open_head(&mut self, pool: &mut BufferPool, word: u64) -> u32 {
        let header = self.decode(word);
        self.head_lines = header.lines();
        match header.kind {
            Kind::Data if header.length_bytes as usize >= MIN_FRAME_BYTES => {
                self.frame = Frame::of_data(self.first, header.length_bytes);
            }
            Kind::Data | Kind::Void => {}
            Kind::Batch => {
                let mut walk = BatchWalk::new(pool, self.first, &header);
                self.frame = walk.next_frame(pool);
                self.batch = Some(walk);
            }
        }
        if self.frame.bytes == 0 { self.give_back_head(pool) } else { 0 }
    }

    /// The frame that goes out next; its `bytes` are 0 when there is none.
    #[inline]
    pub(crate) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The frame at the head has gone: moves on. Returns the lines given back.
    #[inline]
    pub(crate) fn pop(&mut self, pool: &mut BufferPool) -> u32 {
        if self.frame.bytes == 0 {
            return 0;
        }
        if let Some(walk) = &mut self.batch {
            self.frame = walk.next_frame(pool);
            if self.frame.bytes != 0 {
                return 0;
            }
        }
        self.leave_head(pool)
    }

    /// Whether the frame at the head is in a batch whose frames can be given one after the other.
    #[inline]
    pub(crate) fn has_run_of_frames(&self) -> bool {
        self.frame.bytes != 0 && self.batch.as_ref().is_some_and(BatchWalk::is_run)
    }

    /// Gives `wire` frames of the batch at the head, one at least, until it takes no other or the batch ends. Returns the lines
    /// given back.
    #[inline(always)]
    pub(crate) fn leave_from_batch(&mut self, pool: &mut BufferPool, wire: impl FnMut(&[u8]) -> bool) -> u32 {
        if let Some(walk) = &mut self.batch {
            self.frame = walk.leave(pool, self.frame, wire);
            if self.frame.bytes != 0 {
                return 0;
            }
        }
        self.leave_head(pool)
    }

    /// The last frame of the message at the head has gone: moves on. Returns the lines given back.
    #[inline]
    fn leave_head(&mut self, pool: &mut BufferPool) -> u32 {
        let given_back = self.give_back_head(pool);
        given_back + self.settle_head(pool)
    }

    #[inline]
    fn give_back_head(&mut self, pool: &mut BufferPool) -> u32 {
        self.first = pool.give_back(self.account, self.first, self.head_lines);
        if self.batch.is_some() {
            self.batch = None;
        }
        self.frame.bytes = 0;
        self.is_open = false;
        self.complete_lines -= self.head_lines;
        self.head_lines
    }

    /// Gives back the lines of the earliest incomplete message.
    pub(crate) fn drop_incomplete(&mut self, pool: &mut BufferPool) {
        let lines = self.incoming_lines();
        pool.put_back(self.aside, std::mem::take(&mut self.aside_lines));
        pool.give_back(self.account, self.incoming_first, lines);
        if self.complete_lines == 0 {
            self.is_open = false;
        }
        self.missing_lines = 0;
        self.frontier = self.next_start;
    }

    /// Gives back the lines of complete messages. Returns how many.
    pub(crate) fn drop_complete(&mut self, pool: &mut BufferPool) -> u32 {
        self.first = pool.give_back(self.account, self.first, self.complete_lines);
        (self.frame, self.batch) = (Frame::NONE, None);
        std::mem::take(&mut self.complete_lines)
    }
}
