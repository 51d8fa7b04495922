//! Receiving by reads: the host polls the next entry in the BAR, and the device holds the read until a frame comes.
//!
//! One read is outstanding while nothing comes, so that a short frame costs one crossing of the link, and none is made
//! in vain but one for each time that the device gives a read up (it answers zero, and the host asks again). The read
//! brings an entry's first line; further lines of a longer frame are then there and are read at once. While a frame is
//! used the read of the next entry is under way, unless [`RxNiqConfig::reads_ahead`] says otherwise. What was read is
//! kept here and looked at nowhere else: a device can change nothing behind a check. Longer frames lie in memory
//! (`long_frames.rs`), and their entry says so.
//!
//! A read is a state, never a wait: [`Receive::poll`] starts it, and later finds the answer or does not. On a processor
//! that stalls in an uncached load, that is the link's affair.
//!
//! From: the device's answers. To: the caller ([`RxFrame`]). The queue's entries are sent by [`crate::TxNiq`].
//! Flajslik & Rosenblum, ATC'13 (NIQ), custom polling.

use beeline_contract_link::{DmaMemory, Doorbell, ReadPort, WindowRead};
use beeline_contract_memory::Line;
use beeline_spec::entry::{EntryHeader, EntryKind, NIQ_MAX_LINES, lines_of, position_of};
use beeline_spec::formats::ENTRY_HEAD_BYTES;
use beeline_spec::regs::field::{entry as f, rx_mode};
use beeline_spec::regs::queue as r;
use beeline_spec::{LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};

use crate::error::RxError;
use crate::niq::long_frames::LongFrames;
use crate::niq::settings::RxNiqConfig;
use crate::port::half::{Epoch, QueueHalf, moderation};
use crate::receive::{FrameOwner, FrameSpan, Receive, RxFrame};

/// Lines of the longest entry.
const ENTRY_LINES: usize = NIQ_MAX_LINES as usize;
/// Words in front of the frame of an entry.
const HEAD_WORDS: usize = ENTRY_HEAD_BYTES / WORD_BYTES;

/// Progress of the entry at `next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its first line is asked for, or will be.
    Awaited,
    /// Its head was checked; lines from the second on are on their way.
    Arriving { length_bytes: usize, lines: u32 },
    /// The frame of the entry is read whole.
    Whole { length_bytes: usize },
    /// The frame of the entry is the next one in memory.
    InMemory { length_bytes: usize },
}

/// Entries read through `R`, freed ones told through doorbell `D`, long frames in memory `M`.
#[derive(Debug)]
pub struct RxNiq<R, M, D> {
    reads: R,
    freed: D,
    long: LongFrames<M, D>,
    queue: u32,
    config: RxNiqConfig,
    entries: u64,
    max_frame_bytes: usize,
    coalesce: u64,
    /// Absolute count of entries done with.
    next: u64,
    /// Count of freed entries that the device was told last.
    told: u64,
    state: State,
    /// The read of the first line of entry `next`, or of the one behind it while the frame of `next` is used.
    first: Option<WindowRead>,
    /// Reads of the further lines of entry `next`, by line, and how many of its lines were asked for.
    further: [Option<WindowRead>; ENTRY_LINES],
    asked: u32,
    /// The entry as it was read.
    entry: [Line; ENTRY_LINES],
    broken: Option<RxError>,
}

impl<R: ReadPort, M: DmaMemory, D: Doorbell> RxNiq<R, M, D> {
    /// Entries of a queue that was never started.
    ///
    /// # Panics
    /// If the window holds less than two entries: the port checks that.
    pub(crate) fn new(
        (reads, freed): (R, D),
        long: LongFrames<M, D>,
        queue: u32,
        config: RxNiqConfig,
        max_frame_bytes: usize,
    ) -> Self {
        let entries = reads.lines() >> config.entry_lines_log2;
        assert!(entries >= 2, "{entries} entries");
        let coalesce = if config.freed_coalesce == 0 { entries / 4 } else { config.freed_coalesce }.max(1);
        RxNiq {
            reads,
            freed,
            long,
            queue,
            config,
            entries: entries.into(),
            max_frame_bytes,
            coalesce: coalesce.into(),
            next: 0,
            told: 0,
            state: State::Awaited,
            first: None,
            further: [None; ENTRY_LINES],
            asked: 0,
            entry: [[0; WORDS_PER_LINE]; ENTRY_LINES],
            broken: None,
        }
    }

    /// Frames received so far.
    pub fn frames(&self) -> u64 {
        self.next
    }

    /// The first line of an entry in the window.
    fn line_of(&self, index: u64) -> u32 {
        ((index & (self.entries - 1)) as u32) << self.config.entry_lines_log2
    }

    #[inline]
    fn tell(&mut self) {
        if self.told != self.next {
            self.told = self.next;
            self.freed.ring(self.next);
        }
    }

    /// Asks for the first line of an entry, unless that was done.
    ///
    /// The entry must lie less than a lap past what the device was told is free, or the read would name an older one:
    /// frees are told after at most half a lap.
    #[inline]
    fn ask_first(&mut self, index: u64) {
        debug_assert!(index - self.told < self.entries, "entry {index} of a later lap");
        if self.first.is_none() {
            self.first = self.reads.start_read(self.line_of(index), 0, WORDS_PER_LINE as u32);
        }
    }

    /// What the head of entry `next` says, checked; `None` when its word is zero: the device gave the read up.
    fn head(&self) -> Result<Option<State>, RxError> {
        let word = self.entry[0][0];
        if word == 0 {
            return Ok(None);
        }
        let bad = RxError::BadEntry { entry: self.next, word };
        let head = EntryHeader::decode(word, self.config.epoch).map_err(|_| bad)?;
        if head.position != position_of(self.next) {
            return Err(bad);
        }
        let length_bytes = usize::from(head.length_bytes);
        let room = (LINE_BYTES << self.config.entry_lines_log2) - ENTRY_HEAD_BYTES;
        let (max_bytes, state) = match (head.kind, &self.long) {
            (EntryKind::Whole, _) => {
                let lines = lines_of(head.length_bytes);
                (room.min(self.max_frame_bytes), State::Arriving { length_bytes, lines })
            }
            (EntryKind::Address, LongFrames::Dropped) | (EntryKind::Nothing, _) => return Err(bad),
            (EntryKind::Address, _) => (self.max_frame_bytes, State::InMemory { length_bytes }),
        };
        if length_bytes > max_bytes {
            let (bytes, max_bytes) = (head.length_bytes.into(), max_bytes as u32);
            return Err(RxError::BadLength { frame: self.next, bytes, max_bytes });
        }
        Ok(Some(state))
    }

    /// Takes the first line of entry `next` if it is there, and asks for it if it is not asked for.
    fn take_first(&mut self) -> Result<(), RxError> {
        self.ask_first(self.next);
        let Some(read) = self.first else { return Ok(()) };
        if !self.reads.poll_read(read, &mut self.entry[0]) {
            return Ok(());
        }
        self.first = None;
        match self.head()? {
            Some(state) => (self.state, self.asked) = (state, 1),
            None => {
                // Nothing came for as long as a read is held: time to say what was freed.
                self.tell();
                self.ask_first(self.next);
            }
        }
        Ok(())
    }

    /// Asks for the lines of entry `next` behind the first and takes those that have come; all of them are there.
    fn take_further(&mut self, length_bytes: usize, lines: u32) {
        let words = (HEAD_WORDS + length_bytes.div_ceil(WORD_BYTES)) as u32;
        let (first_line, per_line) = (self.line_of(self.next), WORDS_PER_LINE as u32);
        while self.asked < lines {
            let count = (words - self.asked * per_line).min(per_line);
            let Some(read) = self.reads.start_read(first_line + self.asked, 0, count) else { break };
            self.further[self.asked as usize] = Some(read);
            self.asked += 1;
        }
        for (read, line) in self.further.iter_mut().zip(&mut self.entry) {
            if read.is_some_and(|read| self.reads.poll_read(read, line)) {
                *read = None;
            }
        }
        if self.asked == lines && self.further.iter().all(Option::is_none) {
            self.state = State::Whole { length_bytes };
        }
    }

    /// Where the frame of entry `next` lies in memory, if the device has got so far there.
    fn find_in_memory(&mut self, length_bytes: usize) -> Result<Option<FrameSpan>, RxError> {
        let Some(span) = self.long.look()? else { return Ok(None) };
        if span.length_bytes != length_bytes {
            let (entry_bytes, found_bytes) = (length_bytes as u32, span.length_bytes as u32);
            return Err(RxError::OtherLength { entry: self.next, entry_bytes, found_bytes });
        }
        Ok(Some(span))
    }

    fn step(&mut self) -> Result<Option<FrameSpan>, RxError> {
        if self.state == State::Awaited {
            self.take_first()?;
        }
        if let State::Arriving { length_bytes, lines } = self.state {
            self.take_further(length_bytes, lines);
        }
        let span = match self.state {
            State::Awaited | State::Arriving { .. } => None,
            State::Whole { length_bytes } => Some(FrameSpan { first_byte: 0, length_bytes }),
            State::InMemory { length_bytes } => self.find_in_memory(length_bytes)?,
        };
        if span.is_some() && self.config.reads_ahead {
            self.ask_first(self.next + 1);
        }
        Ok(span)
    }

    /// Returns the span of the next frame, or `None` if the device has not delivered one.
    #[inline]
    fn look(&mut self) -> Result<Option<FrameSpan>, RxError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        self.step().inspect_err(|error| self.broken = Some(*error))
    }
}

impl<R: ReadPort, M: DmaMemory, D: Doorbell> QueueHalf for RxNiq<R, M, D> {
    fn queue(&self) -> u32 {
        self.queue
    }

    fn window_lines(&self) -> Option<u32> {
        Some(self.reads.lines())
    }

    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        let reads = 1 << rx_mode::READS_LSB;
        set(r::RX_MODE, reads);
        self.long.registers(&mut |register, value| match register {
            r::RX_MODE => set(register, value | reads),
            _ => set(register, value),
        });
        set(r::RX_MODERATION, moderation(self.config.interrupts));
    }

    fn control(&self) -> u64 {
        0
    }

    fn epoch(&self) -> Epoch {
        Epoch::Carried(self.config.epoch)
    }

    fn entry_register(&self) -> Option<u64> {
        let (lines_log2, hold_ns) = (self.config.entry_lines_log2, self.config.hold_ns);
        Some(u64::from(lines_log2) << f::LINES_LOG2_LSB | u64::from(hold_ns) << f::HOLD_NS_LSB)
    }

    fn restarted(mut self) -> Self {
        // The device has answered what it held; an answer that is still on its way is of the old life.
        self.reads.abandon();
        RxNiq {
            config: RxNiqConfig { epoch: self.config.epoch.wrapping_add(1), ..self.config },
            long: self.long.restarted(),
            next: 0,
            told: 0,
            state: State::Awaited,
            first: None,
            further: [None; ENTRY_LINES],
            asked: 0,
            broken: None,
            ..self
        }
    }
}

impl<R: ReadPort, M: DmaMemory, D: Doorbell> Receive for RxNiq<R, M, D> {
    #[inline]
    fn poll(&mut self) -> Result<Option<RxFrame<'_>>, RxError> {
        let span = self.look()?;
        Ok(span.map(|span| RxFrame::new(self, span)))
    }

    /// Never: the read that the device holds is the wait of this interface, and one that is on its way may bring a frame
    /// whose interrupt came before the caller was armed.
    fn wants_interrupt(&mut self) -> Result<bool, RxError> {
        self.look().map(|_| false)
    }
}

impl<R: ReadPort, M: DmaMemory, D: Doorbell> FrameOwner for RxNiq<R, M, D> {
    #[inline]
    fn frame_word(&mut self, span: FrameSpan, index: usize) -> u64 {
        if let (State::InMemory { .. }, Some(owner)) = (self.state, self.long.owner()) {
            return owner.frame_word(span, index);
        }
        let word = HEAD_WORDS + index;
        self.entry[word / WORDS_PER_LINE][word % WORDS_PER_LINE]
    }

    fn frame_copy_out(&mut self, span: FrameSpan, bytes: &mut [u8]) {
        if let (State::InMemory { .. }, Some(owner)) = (self.state, self.long.owner()) {
            return owner.frame_copy_out(span, bytes);
        }
        let words = self.entry.as_flattened()[HEAD_WORDS..].iter();
        for (chunk, word) in bytes.chunks_mut(WORD_BYTES).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
    }

    #[inline]
    fn frame_freed(&mut self, span: FrameSpan) {
        if let (State::InMemory { .. }, Some(owner)) = (self.state, self.long.owner()) {
            owner.frame_freed(span);
        }
        self.next += 1;
        self.state = State::Awaited;
        if self.next - self.told >= self.coalesce {
            self.tell();
        }
    }
}
