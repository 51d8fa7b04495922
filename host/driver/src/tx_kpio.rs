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

use beeline_link_contract::{CreditSource, DmaMemory, StorePort, Tolerance};
use beeline_spec::regs::queue as r;
use beeline_spec::{Interface, LINE_BYTES, Line, WORD_BYTES, WORDS_PER_LINE};
use beeline_window::Sent;

use crate::config::KpioConfig;
use crate::credits::DmaCredits;
use crate::error::TxError;
use crate::half::{QueueHalf, TxIdentity, window_registers};
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

    /// Looks for a word that would be taken for an end of packet, or for a word that has not arrived. First by the
    /// upper halves alone, which a plain vector compare can do and which decides all but one frame in millions.
    #[inline]
    fn check_marks(&self, frame: &[u8]) -> Result<(), TxError> {
        // An observed window has no blank; the signature stands in for it, so that there is no branch in the loop.
        let blank = if self.blank == 0 { self.eop } else { self.blank };
        let (eop_half, blank_half) = ((self.eop >> 32) as u32, (blank >> 32) as u32);
        let is_half = |half: u32| u32::from((half == eop_half) | (half == blank_half));
        let (halves, _) = frame.as_chunks::<4>();
        let (runs, rest) = halves.as_chunks::<HALVES>();
        // Sixteen sums instead of one: so the compiler makes vectors of them.
        let mut found = [0; HALVES];
        for run in runs {
            for (found, half) in found.iter_mut().zip(run) {
                *found |= is_half(u32::from_le_bytes(*half));
            }
        }
        let in_rest = rest.iter().fold(0, |found, half| found | is_half(u32::from_le_bytes(*half)));
        let in_last = is_half((last_word(frame) >> 32) as u32);
        let may_be = found.iter().fold(in_rest | in_last, |all, found| all | found);
        if may_be == 0 { Ok(()) } else { self.find_mark(frame, blank) }
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
    fn store(&mut self, frame: &[u8]) {
        let whole_bytes = frame.len() & !(LINE_BYTES - 1);
        let (whole, rest) = frame.split_at(whole_bytes);
        let line = (self.stored & (self.lines - 1)) as u32;
        let to_end = (self.lines - u64::from(line)) as usize * LINE_BYTES;
        if whole.len() <= to_end {
            self.port.store_lines(line, whole);
        } else {
            let (front, back) = whole.split_at(to_end);
            self.port.store_lines(line, front);
            self.port.store_lines(0, back);
        }
        self.stored += (whole_bytes / LINE_BYTES) as u64;
        // The last line: what is left of the frame, padded to a word, then signatures; all signatures if nothing is.
        let mut words = [self.eop; WORDS_PER_LINE];
        let (full, tail) = rest.as_chunks::<WORD_BYTES>();
        for (word, bytes) in words.iter_mut().zip(full) {
            *word = u64::from_le_bytes(*bytes);
        }
        if !tail.is_empty() {
            words[full.len()] = last_word(frame);
            if full.len() == WORDS_PER_LINE - 1 {
                self.store_next(&words);
                words = [self.eop; WORDS_PER_LINE];
            }
        }
        self.store_next(&words);
        self.port.progress();
    }

    #[inline]
    fn store_next(&mut self, words: &Line) {
        self.port.store_line((self.stored & (self.lines - 1)) as u32, words);
        self.stored += 1;
    }
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
        self.check_marks(frame)?;
        let lines = lines_of(frame.len());
        if self.stored + lines - self.freed > self.lines {
            self.refresh()?;
            if self.stored + lines - self.freed > self.lines {
                self.port.progress();
                return Ok(Sent::Full);
            }
        }
        self.store(frame);
        Ok(Sent::Sent)
    }

    #[inline]
    fn try_send_burst(&mut self, frames: &[&[u8]]) -> Result<usize, TxError> {
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
        Declared { interface: Interface::Kpio, tolerance: Some(TOLERANCE), frame_multiple_bytes: WORD_BYTES }
    }
}
