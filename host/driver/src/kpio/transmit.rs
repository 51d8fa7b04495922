//! kPIO+WC: whole lines in order, the end of a frame marked by EOP words.
//!
//! A frame is padded with zeros to a multiple of 8 bytes (the paper's dummy bytes) and the rest of its last line is
//! stuffed with an 8-byte end-of-packet signature; a frame that fills its last line is followed by a line of
//! signatures (packets A, B and C of its figure 3). Every line is stored whole and full, so its write-combining buffer
//! leaves by itself; that lines leave in the order in which they were filled is the paper's assumption, which this
//! interface declares and does not check. No fence.
//!
//! What the format cannot carry is refused here with a number instead of being lost on the way: a word equal to the
//! signature, and, where the window is memory, one equal to the blank. Credits are ours: the paper's queue counts on
//! PCIe back-pressure, which memory does not have.
//!
//! From: the caller's frame. To: the device's EOP filter. Larsen & Lee, NAS'15, §III.A and figure 3.

use beeline_contract_link::DmaMemory;
use beeline_contract_memory::{CreditSource, StorePort, Tolerance};
use beeline_spec::regs::queue as r;
use beeline_spec::{Interface, LINE_BYTES, Line, WORD_BYTES, WORDS_PER_LINE};
use beeline_window::{Sent, Taken};

use crate::error::TxError;
use crate::kpio::settings::KpioConfig;
use crate::port::half::{Epoch, QueueHalf, TxIdentity, window_registers};
use crate::transmit::credits::DmaCredits;
use crate::transmit::{Declared, Transmit, burst_of_singles, check_length};

/// A kPIO+WC transmit queue: window `P`, credits in memory `M`.
#[derive(Debug)]
pub struct TxKpio<P, M> {
    port: P,
    credits: DmaCredits<M>,
    identity: TxIdentity,
    config: KpioConfig,
    eop: u64,
    /// 0 for an observed window.
    blank: u64,
    max_frame_bytes: usize,
    lines: u64,
    /// Absolute count of lines stored.
    stored: u64,
    /// Absolute count of lines known to be free again.
    freed: u64,
}

/// Half words of a line.
const HALVES: usize = LINE_BYTES / 4;

/// What kPIO+WC bears: nothing. Lines whole, in order.
pub(crate) const TOLERANCE: Tolerance = Tolerance { span_lines: 0, split_lines: false };

impl<P: StorePort, M: DmaMemory> TxKpio<P, M> {
    /// A queue whose window starts empty at line 0.
    pub(crate) fn new(
        port: P,
        credits: DmaCredits<M>,
        identity: TxIdentity,
        blank: u64,
        config: KpioConfig,
        max_frame_bytes: usize,
    ) -> Self {
        let lines = u64::from(port.lines());
        // With its padding a frame must not be too long for the device, nor with its end of packet for the window.
        let max_frame_bytes =
            (max_frame_bytes & !(WORD_BYTES - 1)).min(lines as usize * LINE_BYTES - WORD_BYTES);
        TxKpio {
            port,
            credits,
            identity,
            config,
            eop: config.eop,
            blank,
            max_frame_bytes,
            lines,
            stored: 0,
            freed: 0,
        }
    }

    /// Absolute count of lines stored.
    pub fn stored_lines(&self) -> u64 {
        self.stored
    }

    /// Loads the credit count and checks it.
    fn refresh(&mut self) -> Result<(), TxError> {
        let found = self.credits.freed_lines();
        if found < self.freed || found > self.stored {
            return Err(TxError::WildCount { unit: "lines", found, low: self.freed, high: self.stored });
        }
        self.freed = found;
        Ok(())
    }

    /// Looks for a word that would be taken for an end of packet, or for a word that has not arrived. `whole` is the
    /// frame's whole lines, `last` the rest of it.
    #[inline]
    fn check_marks(&self, frame: &[u8], whole: &[u8], last: &LastLine) -> Result<(), TxError> {
        // An observed window has no blank; the signature stands in for it, so that there is no branch in the loops.
        let blank = if self.blank == 0 { self.eop } else { self.blank };
        let is_mark = |word: u64| (word == self.eop) | (word == blank);
        let marks =
            last.words.iter().enumerate().fold(0, |marks, (i, word)| marks | u32::from(is_mark(*word)) << i);
        let own = (1 << last.own_words) - 1;
        if marks & own != 0 || may_hold(whole, self.eop, blank) {
            return self.find_mark(frame, blank);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn find_mark(&self, frame: &[u8], blank: u64) -> Result<(), TxError> {
        let (words, tail) = frame.as_chunks::<WORD_BYTES>();
        let padded = (!tail.is_empty()).then(|| last_word(frame));
        let mut all = words.iter().map(|bytes| u64::from_le_bytes(*bytes)).chain(padded);
        match all.position(|word| word == self.eop || word == blank) {
            None => Ok(()),
            Some(index) => {
                let word = padded.filter(|_| index == words.len());
                let word = word.unwrap_or_else(|| u64::from_le_bytes(words[index]));
                Err(TxError::HoldsMark { at_byte: index * WORD_BYTES, word })
            }
        }
    }

    /// Stores the lines of a frame. There is room for all of them.
    #[inline]
    fn store(&mut self, whole: &[u8], last: &LastLine) {
        if !whole.is_empty() {
            let line = (self.stored & (self.lines - 1)) as u32;
            let to_end = (self.lines - u64::from(line)) as usize * LINE_BYTES;
            let (front, back) = whole.split_at(whole.len().min(to_end));
            self.port.store_lines(line, front);
            if !back.is_empty() {
                self.port.store_lines(0, back);
            }
            self.stored += (whole.len() / LINE_BYTES) as u64;
        }
        self.store_next(&last.words);
        if last.own_words == WORDS_PER_LINE {
            self.store_next(&[self.eop; WORDS_PER_LINE]);
        }
        self.port.wake_receiver();
    }

    #[inline]
    fn store_next(&mut self, words: &Line) {
        self.port.store_line((self.stored & (self.lines - 1)) as u32, words);
        self.stored += 1;
    }
}

/// What follows a frame's whole lines: the rest of it, padded to a word, then signatures. A frame without a rest has a
/// line of signatures; one whose rest fills the line has a line of signatures after it.
struct LastLine {
    words: Line,
    /// Words of the line that are the frame's.
    own_words: usize,
}

impl LastLine {
    #[inline]
    fn new(frame: &[u8], rest: &[u8], eop: u64) -> Self {
        let (full, tail) = rest.as_chunks::<WORD_BYTES>();
        let own_words = full.len() + usize::from(!tail.is_empty());
        let words = core::array::from_fn(|i| match full.get(i) {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None if i < own_words => last_word(frame),
            None => eop,
        });
        LastLine { words, own_words }
    }
}

/// Whether whole lines may hold a word equal to one of two: decided by upper halves alone, which a plain vector compare
/// can do, and which is wrong for one honest frame in millions.
#[inline]
fn may_hold(whole: &[u8], eop: u64, blank: u64) -> bool {
    let (eop_half, blank_half) = ((eop >> 32) as u32, (blank >> 32) as u32);
    // Sixteen sums instead of one: so the compiler makes vectors of them.
    let mut found = [0; HALVES];
    for line in whole.as_chunks::<4>().0.as_chunks::<HALVES>().0 {
        for (found, half) in found.iter_mut().zip(line) {
            let half = u32::from_le_bytes(*half);
            *found |= u32::from((half == eop_half) | (half == blank_half));
        }
    }
    found.iter().fold(0, |all, found| all | found) != 0
}

/// The last, partial word of a frame of at least a word, padded with zeros; 0 if the frame is whole words. Shifted out
/// of an overlapping load: a byte-wise copy to the stack would stall on store forwarding.
#[inline]
fn last_word(frame: &[u8]) -> u64 {
    let tail = frame.len() % WORD_BYTES;
    match frame.last_chunk::<WORD_BYTES>() {
        Some(last) if tail != 0 => u64::from_le_bytes(*last) >> (8 * (WORD_BYTES - tail)),
        _ => 0,
    }
}

/// Lines a frame takes, its end of packet included.
#[inline]
pub(crate) const fn lines_of(frame_bytes: usize) -> u64 {
    (frame_bytes.next_multiple_of(WORD_BYTES) / LINE_BYTES) as u64 + 1
}

impl<P: StorePort, M: DmaMemory> QueueHalf for TxKpio<P, M> {
    fn queue(&self) -> u32 {
        self.identity.queue
    }

    fn window_lines(&self) -> Option<u32> {
        Some(self.port.lines())
    }

    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        let hole_timeout_ns = self.identity.config.hole_timeout_ns;
        window_registers(set, self.blank, self.credits.address(), self.config.credits, hole_timeout_ns);
        set(r::KPIO_EOP, self.eop);
    }

    fn control(&self) -> u64 {
        self.identity.control()
    }

    fn epoch(&self) -> Epoch {
        self.identity.epoch()
    }

    fn flushed(mut self) -> Self {
        self.port.fence();
        self
    }

    fn restarted(mut self) -> Self {
        self.credits.restart();
        TxKpio { identity: self.identity.next_epoch(), stored: 0, freed: 0, ..self }
    }
}

impl<P: StorePort, M: DmaMemory> Transmit for TxKpio<P, M> {
    #[inline]
    fn try_send(&mut self, frame: &[u8]) -> Result<Sent, TxError> {
        check_length(frame.len(), self.max_frame_bytes)?;
        let (whole, rest) = frame.split_at(frame.len() - frame.len() % LINE_BYTES);
        let last = LastLine::new(frame, rest, self.eop);
        self.check_marks(frame, whole, &last)?;
        let lines = lines_of(frame.len());
        if self.stored + lines - self.freed > self.lines {
            self.refresh()?;
            if self.stored + lines - self.freed > self.lines {
                self.port.progress();
                return Ok(Sent::Full);
            }
        }
        self.store(whole, &last);
        Ok(Sent::Sent)
    }

    #[inline]
    fn try_send_burst(&mut self, frames: &[&[u8]]) -> Result<Taken, TxError> {
        // Lines cannot be shared and there is no doorbell: a burst is its frames.
        burst_of_singles(frames, |frame| self.try_send(frame))
    }

    fn progress(&mut self) -> Result<(), TxError> {
        self.port.progress();
        self.refresh()
    }

    fn max_frame_bytes(&self) -> usize {
        self.max_frame_bytes
    }

    fn is_idle(&self) -> bool {
        self.freed == self.stored
    }

    fn declared(&self) -> Declared {
        Declared { interface: Interface::Kpio, tolerance: Some(TOLERANCE) }
    }
}
