//! The sender's end: messages become plain stores into a window.
//!
//! A message whose payload is at hand ([`Writer::try_send`]) is searched for blanks first, so that its header is known
//! and every line is stored whole, once, in ascending order; one that is built piece by piece is a [`crate::Reservation`].
//! Nothing is fenced (HotOS'25 §3) unless a fence policy asks for it, nothing is read from the window, and wrapping
//! needs no fence either: a line is stored again only after a credit shows that all 64 bytes of it had arrived.
//!
//! The writer does not wait (see [`crate::WaitPolicy`]), does not know what memory is behind its port, and there is
//! one of it for a window: whoever hands out the port sees to that. Payload comes from the caller; lines go to
//! [`StorePort`], into a peer's memory or a NIC's BAR.

use beeline_contract_memory::{CreditSource, Line, StorePort};
use beeline_spec::formats::header;
use beeline_spec::header::lines_of;
use beeline_spec::{Header, Kind, LINE_BYTES, WORD_BYTES, WORDS_PER_LINE, escape};

use crate::credit::Credits;
use crate::error::SendError;
use crate::payload::{self, HEAD_BYTES, payload_bytes_of};
use crate::receiver::WATCHED_LINES;
use crate::sent::Sent;
use crate::stream::Stream;
use crate::{FencePolicy, Position, WindowConfig};

/// A word that payloads seldom have, with bit 63 set as every blank.
const UNLIKELY: u64 = 0xd1ce_ba11_5eed_f00d;

/// The sender's end of a window.
///
/// It has cache lines of its own (two, since cores fetch lines in pairs): with the other end next to it in one line,
/// as two local variables easily are, a message would cost ten times as much.
#[derive(Debug)]
#[repr(align(128))]
pub struct Writer<P, C> {
    pub(crate) port: P,
    pub(crate) credits: Credits<C>,
    config: WindowConfig,
    /// How far ahead of its stores the port wants to be told of them, if at all (`credit.rs`).
    prefetch_lines: u64,
    /// What a one-line message is searched for: the blank. In an observed window, where nothing is escaped, any word
    /// will do; so no message pays for the question of which kind the window is.
    pub(crate) sought: u64,
    /// The epoch where it stands in a header.
    pub(crate) epoch_bits: u64,
    pub(crate) fence_masks: FenceMasks,
    /// Lines of the window less one: a power of two less one.
    pub(crate) mask: u64,
    max_payload_bytes: u32,
    pub(crate) max_reservation_bytes: u32,
    pub(crate) stream: Stream,
}

impl<P: StorePort, C: CreditSource> Writer<P, C> {
    /// The sender's end of a fresh window: every word free, no line ever sent.
    ///
    /// # Panics
    /// If the port's lines are not a power of two, or the blank could be mistaken for a header.
    pub fn new(port: P, credits: C, config: WindowConfig) -> Self {
        let lines = port.lines();
        config.check(lines);
        let max_payload_bytes = payload_bytes_of(lines);
        let prefetch_lines = port.prefetch_lines().min(lines / 2);
        Writer {
            credits: Credits::new(credits, lines, prefetch_lines),
            config,
            prefetch_lines: u64::from(prefetch_lines),
            sought: if config.blank == 0 { UNLIKELY } else { config.blank },
            epoch_bits: u64::from(config.epoch) << header::EPOCH_LSB,
            fence_masks: FenceMasks::new(config.fence_policy, u64::from(lines) - 1),
            mask: u64::from(lines) - 1,
            max_payload_bytes,
            max_reservation_bytes: max_payload_bytes,
            stream: Stream::default(),
            port,
        }
    }

    /// For a receiver that holds at most `span_lines` lines out of order: reservations and batches, whose header
    /// word is stored last, are limited to that many lines. [`Writer::try_send`] is not.
    #[must_use]
    pub fn with_reorder_span(mut self, span_lines: u32) -> Self {
        let lines = span_lines.clamp(1, self.port.lines());
        self.max_reservation_bytes = payload_bytes_of(lines).min(self.max_payload_bytes);
        self
    }

    /// Sends one message, if there is room.
    ///
    /// Up to 56 bytes are one line and one line store; nothing is staged in memory. Costs no fence, no read across
    /// the link and, unless credits seem out, no look at them.
    ///
    /// # Errors
    /// [`SendError::TooLong`] for a message that can never fit; [`SendError::Credits`] when the receiver cannot be
    /// believed. Nothing was stored then.
    #[inline]
    pub fn try_send(&mut self, payload: &[u8]) -> Result<Sent, SendError> {
        self.send_kind(Kind::Data, payload)
    }

    /// Sends a batch whose records the caller has packed as `beeline_spec::batch` says, if there is room. Unlike
    /// [`Writer::batch`] it has its header first and every line whole and in ascending order; records are not checked.
    ///
    /// # Errors
    /// As [`Writer::try_send`].
    #[inline]
    pub fn try_send_packed(&mut self, records: &[u8]) -> Result<Sent, SendError> {
        self.send_kind(Kind::Batch, records)
    }

    /// Sends one message of two parts, if there is room: `head`, then `rest`. For a layer that puts a header of its own
    /// before a payload and would otherwise have to copy the payload behind it. What [`HEAD_BYTES`] says is then all
    /// that is copied: the header and the payload's first bytes.
    ///
    /// # Errors
    /// As [`Writer::try_send`].
    ///
    /// # Panics
    /// If `rest` has bytes and `head` is not [`HEAD_BYTES`] long, so that `rest` would not start on a line; or if `head`
    /// is longer.
    #[inline]
    pub fn try_send_parts(&mut self, head: &[u8], rest: &[u8]) -> Result<Sent, SendError> {
        if rest.is_empty() {
            assert!(
                head.len() <= HEAD_BYTES,
                "a head of {} bytes; a first line takes {HEAD_BYTES}",
                head.len()
            );
            return self.send_kind(Kind::Data, head);
        }
        assert!(
            head.len() == HEAD_BYTES,
            "{} bytes before the rest; a first line takes {HEAD_BYTES}",
            head.len()
        );
        self.send_lines(Kind::Data, head, rest)
    }

    /// Sends one message whose first payload word is `prefix`, then `payload`, if there is room: for a layer whose header
    /// is one word. Up to 48 bytes go straight from `payload` into the line.
    ///
    /// # Errors
    /// As [`Writer::try_send`].
    #[inline(always)]
    pub fn try_send_prefixed(&mut self, prefix: u64, payload: &[u8]) -> Result<Sent, SendError> {
        if payload.len() > PREFIXED_BYTES {
            return self.send_prefixed_lines(prefix, payload);
        }
        if !self.credits.has(1) && !self.find_room(1)? {
            return Ok(Sent::Full);
        }
        let length_bytes = (WORD_BYTES + payload.len()) as u32;
        let header = Header::new(Kind::Data, length_bytes, 0).encode() | self.epoch_bits;
        let line = (self.credits.next() & self.mask) as u32;
        if !self.port.store_prefixed_line_unless(line, header, prefix, payload, self.sought) {
            self.send_prefixed_sought(prefix, payload);
        }
        self.finish_line();
        Ok(Sent::Sent)
    }

    #[inline(never)]
    fn send_prefixed_lines(&mut self, prefix: u64, payload: &[u8]) -> Result<Sent, SendError> {
        let (first, rest) = payload.split_at(PREFIXED_BYTES);
        let bytes = HEAD_BYTES + rest.len();
        let Some(lines) = self.room_for(bytes)? else { return Ok(Sent::Full) };
        let (start, header) = (self.credits.next(), self.header(Kind::Data, bytes as u32).encode());
        let line = (start & self.mask) as u32;
        if self.escapes(rest)
            || !self.port.store_prefixed_line_unless(line, header, prefix, first, self.sought)
        {
            self.send_sought(Kind::Data, &joined(prefix, first), rest);
        } else {
            self.fence_after(start);
            self.store_rest(start + 1, rest);
        }
        self.finish(lines);
        Ok(Sent::Sent)
    }

    /// Lines of a message of so many bytes, more than one, if there is room for them, which are then prefetched.
    #[inline(always)]
    fn room_for(&mut self, bytes: usize) -> Result<Option<u32>, SendError> {
        let max_bytes = self.max_payload_bytes as usize;
        if bytes > max_bytes {
            return Err(SendError::TooLong { bytes, max_bytes });
        }
        let lines = lines_of(bytes as u32);
        if !self.credits.has(lines) && !self.find_room(lines)? {
            return Ok(None);
        }
        self.will_send(lines);
        self.prefetch_for(lines);
        Ok(Some(lines))
    }

    #[cold]
    #[inline(never)]
    fn send_prefixed_sought(&mut self, prefix: u64, payload: &[u8]) {
        self.send_sought(Kind::Data, &joined(prefix, payload)[..WORD_BYTES + payload.len()], &[]);
    }

    /// Inlined into its callers, so that the kind is a constant in each.
    #[inline(always)]
    fn send_kind(&mut self, kind: Kind, payload: &[u8]) -> Result<Sent, SendError> {
        if let Some((head, rest)) = payload.split_at_checked(HEAD_BYTES)
            && !rest.is_empty()
        {
            return self.send_lines(kind, head, rest);
        }
        if !self.credits.has(1) && !self.find_room(1)? {
            return Ok(Sent::Full);
        }
        let header = Header::new(kind, payload.len() as u32, 0).encode() | self.epoch_bits;
        let position = self.credits.next();
        if !self.port.store_head_line_unless((position & self.mask) as u32, header, payload, self.sought) {
            self.send_sought(kind, payload, &[]);
        }
        self.finish_line();
        Ok(Sent::Sent)
    }

    /// Says that a message of about so many lines will be sent in a moment: its first lines are asked for, as far as they are
    /// known to be free, while the caller still makes the message. For who answers, and the receiver waits: a line at which it
    /// looks has to be fetched back from there before the message leaves the core.
    #[inline(always)]
    pub fn will_send(&mut self, lines: u32) {
        if self.prefetch_lines == 0 {
            return;
        }
        for ahead in 0..lines.min(WATCHED_LINES) {
            if !self.credits.has(ahead + 1) {
                return;
            }
            self.port.prefetch(((self.credits.next() + u64::from(ahead)) & self.mask) as u32);
        }
    }

    /// After the store of a message of one line.
    #[inline(always)]
    fn finish_line(&mut self) {
        let position = self.credits.next();
        self.credits.spend(1);
        if self.credits.may_prefetch_after(0) {
            self.port.prefetch(((position + self.prefetch_lines) & self.mask) as u32);
        }
        self.fence_after_message(position);
        self.port.wake_receiver();
    }

    /// After the message of one line at `position`.
    #[inline(always)]
    pub(crate) fn fence_after_message(&mut self, position: u64) {
        if self.fence_masks.is_due(position) {
            self.port.fence();
        }
    }

    /// Lines that can be stored before credits must be looked at again.
    pub fn free_lines(&self) -> u32 {
        self.credits.known_free()
    }

    /// Looks at the credits and says how many lines can be stored: all of them when everything sent was freed. For a
    /// sender that has nothing to send now; sending looks by itself.
    ///
    /// # Errors
    /// [`SendError::Credits`] when the receiver cannot be believed.
    pub fn refresh(&mut self) -> Result<u32, SendError> {
        self.abandon();
        self.credits.refresh(0)?;
        Ok(self.credits.known_free())
    }

    /// Lines of the window.
    pub fn lines(&self) -> u32 {
        self.port.lines()
    }

    /// Longest payload of one message in bytes.
    pub fn max_payload_bytes(&self) -> usize {
        self.max_payload_bytes as usize
    }

    /// Returns the position of the next message.
    pub fn position(&self) -> Position {
        Position(self.credits.next())
    }

    /// Returns the configuration that both ends use.
    pub fn config(&self) -> WindowConfig {
        self.config
    }

    /// The port, to look at what it counts.
    pub fn port(&self) -> &P {
        &self.port
    }

    /// The port, to change how it stores: with other instructions, say, from the next message on. Who stores to lines through it
    /// destroys messages.
    pub fn port_mut(&mut self) -> &mut P {
        &mut self.port
    }

    /// As [`StorePort::progress`]: for whoever waits without sending.
    pub fn progress(&mut self) {
        self.port.progress();
    }

    /// Makes everything sent so far visible before anything sent later, whatever the policy. For measuring stores
    /// alone and for switching to something that relies on order; messages do not need it.
    pub fn fence(&mut self) {
        self.port.fence();
    }

    /// The port and the credits; an open reservation becomes a void message.
    pub fn into_parts(mut self) -> (P, C) {
        self.abandon();
        (self.port, self.credits.source)
    }

    /// The slow half of finding room: ends a reservation that was forgotten (`mem::forget`) and looks at the credits.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_room(&mut self, lines: u32) -> Result<bool, SendError> {
        self.abandon();
        if self.credits.has(lines) || self.credits.refresh(lines)? {
            return Ok(true);
        }
        self.port.progress();
        Ok(false)
    }

    /// A message of several lines: `head` fills the first one.
    #[inline(never)]
    fn send_lines(&mut self, kind: Kind, head: &[u8], rest: &[u8]) -> Result<Sent, SendError> {
        let bytes = head.len() + rest.len();
        let Some(lines) = self.room_for(bytes)? else { return Ok(Sent::Full) };
        let start = self.credits.next();
        let header = self.header(kind, bytes as u32).encode();
        // The lines after the first one are searched before anything is stored, the first one while it is stored.
        if self.escapes(rest)
            || !self.port.store_head_line_unless((start & self.mask) as u32, header, head, self.sought)
        {
            self.send_sought(kind, head, rest);
        } else {
            self.fence_after(start);
            self.store_rest(start + 1, rest);
        }
        self.finish(lines);
        Ok(Sent::Sent)
    }

    /// Stores a message that has a word equal to the one that is sought.
    #[cold]
    #[inline(never)]
    fn send_sought(&mut self, kind: Kind, head: &[u8], rest: &[u8]) {
        if self.config.blank != 0 {
            self.send_escaped(kind, head, rest);
            return;
        }
        let header = self.header(kind, (head.len() + rest.len()) as u32).encode();
        let start = self.credits.next();
        self.port.store_head_line((start & self.mask) as u32, header, head);
        if !rest.is_empty() {
            self.fence_after(start);
            self.store_rest(start + 1, rest);
        }
    }

    /// Stores what a message has after its first line: whole lines, then the padded one.
    #[inline]
    fn store_rest(&mut self, position: u64, rest: &[u8]) {
        let (whole, tail) = rest.split_at(rest.len() - rest.len() % LINE_BYTES);
        if !whole.is_empty() {
            self.store_run(position, whole);
        }
        if !tail.is_empty() {
            let last = position + (whole.len() / LINE_BYTES) as u64;
            self.port.store_padded_line((last & self.mask) as u32, tail);
            self.fence_after(last);
        }
    }

    /// Prefetches as many lines as a message of several has, so far ahead as [`Writer::try_send`] does for one line: its
    /// own later lines and the first ones of its successor. Without that, stores of long messages take twice as long.
    #[inline]
    fn prefetch_for(&mut self, lines: u32) {
        let position = self.credits.next();
        for ahead in 0..u64::from(lines) {
            if !self.credits.may_prefetch_after(ahead) {
                break;
            }
            self.port.prefetch(((position + self.prefetch_lines + ahead) & self.mask) as u32);
        }
    }

    /// Stores a message some of whose words equal the blank. With a random blank and honest data this happens once
    /// in 2^64 words, so it is written for shortness.
    #[cold]
    #[inline(never)]
    fn send_escaped(&mut self, kind: Kind, head: &[u8], rest: &[u8]) {
        let blank = self.config.blank;
        let bytes = (head.len() + rest.len()) as u32;
        let last = match (payload::last_word(rest, blank), payload::last_word(head, blank)) {
            (Some(index), _) => (index + WORDS_PER_LINE) as u32,
            (None, Some(index)) => index as u32 + 1,
            (None, None) => 0,
        };
        let header = Header { escape_last: last, ..self.header(kind, bytes) }.encode();
        let mut previous = 0;
        for line in 0..lines_of(bytes) {
            let words: Line = core::array::from_fn(|slot| {
                let index = line * WORDS_PER_LINE as u32 + slot as u32;
                let word = match (line, slot) {
                    (0, 0) => header,
                    (0, slot) => payload::word_at(head, slot - 1),
                    _ => payload::word_at(rest, index as usize - WORDS_PER_LINE),
                };
                if word == blank { escape::link(core::mem::replace(&mut previous, index)) } else { word }
            });
            self.store(self.credits.next() + u64::from(line), &words);
        }
    }

    /// Whether some word of these bytes must be escaped.
    #[inline]
    pub(crate) fn escapes(&self, payload: &[u8]) -> bool {
        self.config.blank != 0 && self.port.has_word(payload, self.config.blank)
    }

    /// The header of a message without escapes.
    #[inline(always)]
    pub(crate) fn header(&self, kind: Kind, length_bytes: u32) -> Header {
        Header::new(kind, length_bytes, self.config.epoch)
    }

    /// Stores a whole line.
    #[inline(always)]
    pub(crate) fn store(&mut self, position: u64, words: &Line) {
        self.port.store_line((position & self.mask) as u32, words);
        self.fence_after(position);
    }

    /// Stores one word of a line.
    pub(crate) fn store_word(&mut self, position: u64, word: u32, value: u64) {
        self.port.store_word((position & self.mask) as u32, word, value);
    }

    /// Stores whole lines, one at least, straight from the caller's bytes, in one run up to the end of the window and one
    /// after it.
    pub(crate) fn store_run(&mut self, position: u64, bytes: &[u8]) {
        if self.config.fence_policy == FencePolicy::PerLine {
            for (position, line) in (position..).zip(bytes.chunks_exact(LINE_BYTES)) {
                self.port.store_lines((position & self.mask) as u32, line);
                self.fence_after(position);
            }
            return;
        }
        let first = position & self.mask;
        let to_wrap = (self.mask + 1 - first) as usize * LINE_BYTES;
        let (before, after) = bytes.split_at(to_wrap.min(bytes.len()));
        self.port.store_lines(first as u32, before);
        self.fence_after(position + (before.len() / LINE_BYTES) as u64 - 1);
        if !after.is_empty() {
            self.port.store_lines(0, after);
        }
    }

    /// After the line at `position` of a message of several lines.
    #[inline(always)]
    pub(crate) fn fence_after(&mut self, position: u64) {
        if position & self.fence_masks.line == self.fence_masks.line {
            self.port.fence();
        }
    }

    /// After the last store of a message.
    pub(crate) fn finish(&mut self, lines: u32) {
        let last = self.credits.next() + u64::from(lines) - 1;
        self.credits.spend(lines);
        if last & self.fence_masks.message == self.fence_masks.message {
            self.port.fence();
        }
        self.port.wake_receiver();
    }

    /// The value of a free word; 0 where nothing is escaped.
    #[inline]
    pub(crate) fn blank(&self) -> u64 {
        self.config.blank
    }
}

/// Payload bytes that share a line with the header word and a prefix.
const PREFIXED_BYTES: usize = HEAD_BYTES - WORD_BYTES;

/// A prefix and at most [`PREFIXED_BYTES`] bytes as one piece.
fn joined(prefix: u64, payload: &[u8]) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..WORD_BYTES].copy_from_slice(&prefix.to_le_bytes());
    head[WORD_BYTES..WORD_BYTES + payload.len()].copy_from_slice(payload);
    head
}

/// Where a policy fences, as masks: after a line, or after a message that ends with a line, whose position has every bit
/// of the mask set. So every policy costs the unfenced sender the same comparison, and no question which one it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FenceMasks {
    line: u64,
    message: u64,
    one_line: u64,
}

impl FenceMasks {
    const ALWAYS: u64 = 0;
    /// No window lives so long.
    const NEVER: u64 = u64::MAX;

    fn new(policy: FencePolicy, window: u64) -> Self {
        let (line, message) = match policy {
            FencePolicy::None => (Self::NEVER, Self::NEVER),
            FencePolicy::PerWrap => (window, Self::NEVER),
            FencePolicy::PerMessage => (Self::NEVER, Self::ALWAYS),
            FencePolicy::PerLine => (Self::ALWAYS, Self::NEVER),
        };
        // One of the two is `NEVER`, which has every bit of the other.
        FenceMasks { line, message, one_line: line & message }
    }

    /// Whether a fence is due after a message of one line at `position`.
    #[inline(always)]
    pub(crate) fn is_due(self, position: u64) -> bool {
        position & self.one_line == self.one_line
    }
}

#[cfg(test)]
pub(crate) mod tests;
