//! The cells of blank windows, and the scanner that reads them.
//!
//! The scanner loads lines from the frontier on, a few lines past an incomplete one, hands each newly arrived run of
//! words of a line to the device as one write with byte enables, and re-blanks a line when all of it was handed over.
//! That is what a NIC behind shared memory does; here it also finds what real memory hides: a store to a word that was
//! not free.

use beeline_contract_device::{Accept, Device, Enables, Write};
use beeline_contract_memory::Line;
use beeline_spec::{LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};

/// Lines past an incomplete frontier line that the scanner looks at.
const LOOK_AHEAD_LINES: u64 = 4;

/// The cells of a blank window.
#[derive(Debug)]
pub(crate) struct Cells {
    words: Vec<Line>,
    /// For each line, the words that were handed to the device and not yet passed by the frontier.
    delivered: Vec<u8>,
    /// Lines handed over whole, from the start on.
    frontier: u64,
    /// The blank while the queue runs; 0: nothing is scanned.
    blank: u64,
}

impl Cells {
    pub(crate) fn new(lines: u32) -> Self {
        let lines = lines as usize;
        Cells { words: vec![[0; WORDS_PER_LINE]; lines], delivered: vec![0; lines], frontier: 0, blank: 0 }
    }

    /// The queue starts: every word is free.
    pub(crate) fn start(&mut self, blank: u64) {
        self.words.fill([blank; WORDS_PER_LINE]);
        self.delivered.fill(0);
        (self.frontier, self.blank) = (0, blank);
    }

    /// The queue stops: what is stored from now on goes nowhere.
    pub(crate) fn stop(&mut self) {
        self.blank = 0;
    }

    pub(crate) fn store(&mut self, line: u32, word: usize, value: u64) {
        let cell = &mut self.words[line as usize][word];
        if self.blank != 0 {
            assert_eq!(*cell, self.blank, "word {word} of line {line} is stored to and not free");
        }
        *cell = value;
    }

    /// Hands over what has arrived; `true` if anything had.
    pub(crate) fn scan(&mut self, base: u64, device: &mut impl Device) -> bool {
        let mut has_progressed = false;
        let mut ahead = 0;
        while self.blank != 0 && ahead <= LOOK_AHEAD_LINES.min(self.words.len() as u64 - 1) {
            let line = (self.frontier + ahead) as usize % self.words.len();
            match self.scan_line(line, base, device) {
                Some(progressed) => has_progressed |= progressed,
                None => return has_progressed,
            }
            if ahead == 0 && self.delivered[line] == u8::MAX {
                self.delivered[line] = 0;
                self.frontier += 1;
            } else {
                ahead += 1;
            }
        }
        has_progressed
    }

    /// `None`: the device refused.
    fn scan_line(&mut self, line: usize, base: u64, device: &mut impl Device) -> Option<bool> {
        if self.delivered[line] == u8::MAX {
            return Some(false);
        }
        let words = self.words[line];
        let arrived =
            words.iter().enumerate().fold(0u8, |mask, (i, w)| mask | u8::from(*w != self.blank) << i);
        let new = arrived & !self.delivered[line];
        if new == 0 {
            return Some(false);
        }
        let mut bytes = [0; LINE_BYTES];
        for (chunk, word) in bytes.as_chunks_mut::<WORD_BYTES>().0.iter_mut().zip(words) {
            *chunk = word.to_le_bytes();
        }
        let enables = (0..WORDS_PER_LINE)
            .filter(|i| new >> i & 1 == 1)
            .fold(0, |mask, i| mask | 0xff << (i * WORD_BYTES));
        let offset_bytes = base + (line * LINE_BYTES) as u64;
        let write = Write { offset_bytes, data: &bytes, enables: Enables::Mask(enables) };
        if device.write_arrived(write) == Accept::Refused {
            return None;
        }
        self.delivered[line] |= new;
        if self.delivered[line] == u8::MAX {
            // Before the device is asked what it wants, so before the credit for this line can be pushed.
            self.words[line] = [self.blank; WORDS_PER_LINE];
        }
        Some(true)
    }
}
