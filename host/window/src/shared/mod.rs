//! Several threads that receive from one window: each message goes to one of them, and is read where it lies.
//!
//! A [`Receiver`] owns its window, so a message is in one pair of hands at a time. Here the position of the next message
//! is claimed by compare-and-swap ([`Ledger`]), so several are in hands at once, one for each [`SharedReceiver`], and
//! they are finished in any order. What a message is, how it is read, un-escaped and freed is [`Receiver`]'s and
//! [`Message`]'s, which each thread has for itself; this file only decides which message is whose. The note behind seed
//! paper "RAMCloud/HiStar" asks for it: several server threads, requests processed in the ring, and no lock.
//!
//! Not here: batches (a batch has one owner), waiting, a dead sender's remains. Who finds its sender dead drops all
//! receivers.

mod ledger;

use beeline_contract_memory::{CreditSink, LoadPort};
use beeline_spec::header::lines_of;
use beeline_spec::{Header, Kind};

use crate::delivery::Delivery;
use crate::error::ReceiveError;
use crate::message::Message;
use crate::payload::HEAD_BYTES;
use crate::phase::Phase;
use crate::sync::{Arc, Ordering, fence};
use crate::{COALESCE_PARTS, Position, Receiver, WindowConfig};

use ledger::{KEPT, Ledger};

/// A blank window that several threads receive from; [`SharedWindow::receiver`] gives each its end.
#[derive(Debug)]
pub struct SharedWindow<S> {
    ledger: Arc<Ledger<S>>,
    config: WindowConfig,
    lines: u32,
}

impl<S> Clone for SharedWindow<S> {
    fn clone(&self) -> Self {
        SharedWindow { ledger: Arc::clone(&self.ledger), config: self.config, lines: self.lines }
    }
}

impl<S: CreditSink> SharedWindow<S> {
    /// A fresh window of `lines` lines, for at most `receivers` receivers. One alone pays for no atomic operation.
    ///
    /// # Panics
    /// If `lines` is not a power of two, or the window has no blank.
    pub fn new(lines: u32, sink: S, config: WindowConfig, receivers: usize) -> Self {
        assert!(config.blank != 0, "only a window in memory, with a blank, can be shared");
        config.check(lines);
        let ledger = Ledger::new(sink, lines, lines / COALESCE_PARTS, receivers <= 1);
        SharedWindow { ledger: Arc::new(ledger), config, lines }
    }

    /// A receiver for one thread, over a port of its own onto the window's memory.
    ///
    /// # Panics
    /// If the port has another number of lines, or the window was made for one receiver and has it.
    pub fn receiver<L: LoadPort>(&self, port: L) -> SharedReceiver<L, S> {
        assert_eq!(port.lines(), self.lines, "every port shows the same window");
        let is_free = !self.ledger.is_sole || Arc::strong_count(&self.ledger) == 1;
        assert!(is_free, "the window was made for one receiver, which exists");
        let sink = Finished { ledger: Arc::clone(&self.ledger), start: NOTHING };
        SharedReceiver {
            receiver: Receiver::new(port, sink, self.config).with_coalescing(1),
            in_hand: Delivery::plain(0, 0),
            keeps: false,
        }
    }
}

/// Start of the message in hand when there is none.
const NOTHING: u64 = u64::MAX;

/// The sink of a thread's own receiver: "freed" there means "finished" here.
#[derive(Debug)]
pub struct Finished<S> {
    ledger: Arc<Ledger<S>>,
    start: u64,
}

impl<S: CreditSink> CreditSink for Finished<S> {
    #[inline(always)]
    fn publish(&mut self, end: u64) {
        self.ledger.finish(core::mem::replace(&mut self.start, NOTHING), end);
    }
}

/// A message of a shared window, in the hands of one thread.
pub type SharedMessage<'r, L, S> = Message<'r, L, Finished<S>>;

/// One thread's end of a window that several threads receive from.
#[derive(Debug)]
pub struct SharedReceiver<L: LoadPort, S: CreditSink> {
    /// Reads, un-escapes and blanks; where it stands is set for each message.
    receiver: Receiver<L, Finished<S>>,
    /// The last message taken, to give it again when its handle was forgotten.
    in_hand: Delivery,
    keeps: bool,
}

impl<L: LoadPort, S: CreditSink> SharedReceiver<L, S> {
    /// The next message, if it is complete and no other thread takes it first.
    ///
    /// `None` also when another thread was faster, or keeps the window ([`SharedReceiver::poll_where`]); poll again.
    /// Costs one compare-and-swap to take and one to free, none of them when the window was made for one receiver. A
    /// handle that was forgotten is given again, as by [`Receiver::poll`].
    ///
    /// # Errors
    /// [`ReceiveError`], for good and for every receiver of the window.
    #[inline(always)]
    pub fn poll(&mut self) -> Result<Option<SharedMessage<'_, L, S>>, ReceiveError> {
        self.poll_where(|_| false)
    }

    /// As [`SharedReceiver::poll`]. `keep` is asked with the first word of a message that is about to be taken (0 if it
    /// has less); when it says `true`, no other thread takes the messages behind it, which this one gets in order, until
    /// [`SharedReceiver::give_up`]. For a unit of several messages.
    ///
    /// # Errors
    /// As [`SharedReceiver::poll`].
    #[inline(always)]
    pub fn poll_where(
        &mut self,
        keep: impl FnOnce(u64) -> bool,
    ) -> Result<Option<SharedMessage<'_, L, S>>, ReceiveError> {
        Ok(self.take(keep)?.map(|delivery| Message::new(&mut self.receiver, delivery)))
    }

    /// Whether this thread keeps the window to itself.
    pub fn keeps(&self) -> bool {
        self.keeps
    }

    /// Ends what [`SharedReceiver::poll_where`] began. Nothing happens when nothing was kept.
    pub fn give_up(&mut self) {
        if core::mem::take(&mut self.keeps) {
            self.receiver.sink().ledger.give_up();
        }
    }

    /// Whether a poll would find a message, or an error. For a thread that is about to sleep, or that may not take a message
    /// yet: its sender wakes it when the rest of an incomplete one has come.
    pub fn has_work(&mut self) -> bool {
        let sink = self.receiver.sink();
        if sink.start != NOTHING {
            return true;
        }
        let ledger = &sink.ledger;
        let (claim, freed) = (ledger.claim(), ledger.freed());
        if claim & KEPT != 0 && !self.keeps {
            return ledger.has_failed();
        }
        let start = claim & !KEPT;
        if start.wrapping_sub(freed) > self.receiver.mask {
            return false;
        }
        self.receiver.next_start = start;
        let line = self.receiver.line(0);
        let (arrived, word) = self.receiver.head(line);
        if arrived & 1 == 0 {
            return false;
        }
        match Header::decode(word, self.lines(), self.receiver.epoch) {
            Ok(header) => self.has_all(header.lines()),
            Err(_) => true,
        }
    }

    /// Lines of the window.
    pub fn lines(&self) -> u32 {
        self.receiver.lines()
    }

    #[inline(always)]
    fn take(&mut self, keep: impl FnOnce(u64) -> bool) -> Result<Option<Delivery>, ReceiveError> {
        let sink = self.receiver.sink();
        if sink.start != NOTHING {
            return Ok(Some(self.in_hand));
        }
        let ledger = &sink.ledger;
        let claim = ledger.claim();
        if claim & KEPT != 0 && (!self.keeps || ledger.has_failed()) {
            ledger.idle();
            return self.nothing();
        }
        let (start, freed) = (claim & !KEPT, ledger.freed());
        // Lines at and after `freed` plus a window still hold what was there a lap ago, in another thread's hands. If
        // the claim is old, `freed` may even be past it.
        if start.wrapping_sub(freed) > self.receiver.mask {
            ledger.idle();
            return self.nothing();
        }
        self.receiver.next_start = start;
        let line = self.receiver.line(0);
        // One word first, as `Receiver::advance` does.
        if !self.receiver.has_begun_at(line) {
            self.receiver.sink().ledger.idle();
            return self.nothing();
        }
        let (arrived, header) = self.receiver.head(line);
        let length_bytes = self.receiver.plain_length(header);
        if arrived == 0xff && length_bytes <= HEAD_BYTES as u64 {
            self.receiver.prefetch(start);
            self.receiver.expected_lines = 1;
            let next = self.next(start + 1, line, length_bytes, keep);
            if !self.receiver.sink().ledger.take(claim, next) {
                return Ok(None);
            }
            return Ok(Some(self.adopt(start, next, Delivery::plain(line, length_bytes))));
        }
        if arrived == 0xff && length_bytes <= self.receiver.max_payload_bytes {
            return self.take_lines(claim, freed, line, length_bytes as u32, keep);
        }
        // Another thread may have taken and freed it since.
        if arrived & 1 == 0 {
            return Ok(None);
        }
        self.take_long(claim, freed, header, keep)
    }

    /// The claim after a message, kept or not.
    #[inline(always)]
    fn next(&mut self, end: u64, line: u32, length_bytes: u64, keep: impl FnOnce(u64) -> bool) -> u64 {
        let first = if length_bytes == 0 { 0 } else { self.receiver.port.load_word(line, 1) };
        if self.keeps || keep(first) { end | KEPT } else { end }
    }

    /// A plain message of several lines, of which the first has arrived, at the position that is set.
    #[inline(never)]
    fn take_lines(
        &mut self,
        claim: u64,
        freed: u64,
        line: u32,
        length_bytes: u32,
        keep: impl FnOnce(u64) -> bool,
    ) -> Result<Option<Delivery>, ReceiveError> {
        let (start, lines) = (claim & !KEPT, lines_of(length_bytes));
        if !self.is_within(start, lines, freed) || !self.receiver.has_rest(length_bytes) {
            self.receiver.sink().ledger.idle();
            return self.nothing();
        }
        let next = self.next(start + u64::from(lines), line, u64::from(length_bytes), keep);
        if !self.receiver.sink().ledger.take(claim, next) {
            return Ok(None);
        }
        Ok(Some(self.adopt(start, next, Delivery::plain(line, u64::from(length_bytes)))))
    }

    /// Whether a message may reach so far: an honest sender had credits for all of it before it stored the first word, and the
    /// count that we saw may be older than that.
    #[inline(always)]
    fn is_within(&self, start: u64, lines: u32, freed: u64) -> bool {
        start + u64::from(lines) <= freed + self.receiver.mask + 1
    }

    /// What is more than a plain message, at the position that is set.
    #[inline(never)]
    fn take_long(
        &mut self,
        claim: u64,
        freed: u64,
        word: u64,
        keep: impl FnOnce(u64) -> bool,
    ) -> Result<Option<Delivery>, ReceiveError> {
        let start = claim & !KEPT;
        let header = match Header::decode(word, self.lines(), self.receiver.epoch) {
            Ok(header) => header,
            Err(error) => {
                let position = Position(start);
                return self.malformed(claim, ReceiveError::Header { position, error });
            }
        };
        if header.kind == Kind::Batch {
            return self.malformed(claim, ReceiveError::SharedBatch { position: Position(start) });
        }
        let lines = header.lines();
        if !self.is_within(start, lines, freed) || !self.has_all(lines) {
            self.receiver.sink().ledger.idle();
            return self.nothing();
        }
        let line = self.receiver.line(0);
        let next = self.next(start + u64::from(lines), line, u64::from(header.length_bytes), keep);
        if !self.receiver.sink().ledger.take(claim, next) {
            return Ok(None);
        }
        if self.receiver.plain_length(word) == u64::from(header.length_bytes) {
            // Its first line was not whole when it was looked at.
            let delivery = Delivery::plain(line, u64::from(header.length_bytes));
            return Ok(Some(self.adopt(start, next, delivery)));
        }
        self.adopt_special(start, next, header)
    }

    /// Whether every line of the message at the next start has arrived; the last one is looked at first.
    fn has_all(&mut self, lines: u32) -> bool {
        if self.receiver.look(lines - 1) != 0xff {
            return false;
        }
        (0..lines).all(|ahead| {
            self.receiver.prefetch(self.receiver.next_start + u64::from(ahead));
            self.receiver.look(ahead) == 0xff
        })
    }

    /// A void or an escaped message that is now ours.
    #[cold]
    fn adopt_special(
        &mut self,
        start: u64,
        next: u64,
        header: Header,
    ) -> Result<Option<Delivery>, ReceiveError> {
        let delivery = self.adopt(start, next, Delivery::message(header.length_bytes));
        self.receiver.phase = Phase::Delivered { header };
        if header.kind == Kind::Void {
            self.receiver.release_long();
            return Ok(None);
        }
        match self.receiver.find_escapes(header.escape_last) {
            Ok(()) => Ok(Some(delivery)),
            Err(error) => {
                self.receiver.sink_mut().start = NOTHING;
                self.receiver.sink().ledger.fail();
                Err(error)
            }
        }
    }

    /// The message that starts here is in this thread's hands; `next` is the claim it left.
    #[inline(always)]
    fn adopt(&mut self, start: u64, next: u64, delivery: Delivery) -> Delivery {
        self.keeps = next & KEPT != 0;
        self.receiver.start_at(start);
        self.receiver.sink_mut().start = start;
        self.in_hand = delivery;
        delivery
    }

    /// Something that no sender stores stands at the claim, unless another thread has moved the claim meanwhile and we
    /// have read the middle of a later message.
    #[cold]
    fn malformed(&mut self, claim: u64, error: ReceiveError) -> Result<Option<Delivery>, ReceiveError> {
        let ledger = &self.receiver.sink().ledger;
        // The look at the claim must come after the loads of the message; pairs with `take` of the thread that moved it.
        fence(Ordering::Acquire);
        if ledger.claim() != claim {
            return Ok(None);
        }
        ledger.fail();
        Err(self.receiver.poison(error))
    }

    /// Nothing to take: or an end, that this receiver or another one has found.
    #[inline]
    fn nothing(&mut self) -> Result<Option<Delivery>, ReceiveError> {
        if !self.receiver.sink().ledger.has_failed() {
            return Ok(None);
        }
        self.receiver.check_alive()?;
        Err(self.receiver.poison(ReceiveError::SharedFailed))
    }
}

/// A thread that goes in the middle of a unit of several messages leaves half of it, and one that forgot a handle leaves
/// lines that nobody frees: the window is of no use any more.
impl<L: LoadPort, S: CreditSink> Drop for SharedReceiver<L, S> {
    fn drop(&mut self) {
        let sink = self.receiver.sink();
        if self.keeps || sink.start != NOTHING {
            sink.ledger.fail();
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
