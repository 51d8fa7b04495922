//! Reads of a window of the link: each word is asked for by itself, in order, and travels behind what was stored before.

use beeline_contract_device::Device;
use beeline_contract_link::{ReadPort, WindowRead};
use beeline_contract_memory::Line;
use beeline_spec::{LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};

use crate::MemoryLink;
use crate::bus::{Bus, Posted};

/// Reads of one window that may be outstanding: two entries of the longest kind.
const OUTSTANDING: usize = 8;

/// Reads of the window of a queue.
pub struct MemoryReads<D> {
    link: MemoryLink<D>,
    queue: u32,
    /// The tags of the words that are outstanding, for each read.
    reads: [Option<[u16; WORDS_PER_LINE]>; OUTSTANDING],
    words: [u32; OUTSTANDING],
}

impl<D> MemoryReads<D> {
    pub(crate) fn new(link: MemoryLink<D>, queue: u32) -> Self {
        MemoryReads { link, queue, reads: [None; OUTSTANDING], words: [0; OUTSTANDING] }
    }

    fn forget(&mut self) {
        let mut bus = self.link.bus.borrow_mut();
        for (read, words) in self.reads.iter_mut().zip(self.words) {
            for tag in read.take().iter().flat_map(|tags| &tags[..words as usize]) {
                if bus.answers.remove(tag).is_none() {
                    bus.forgotten.add(*tag);
                }
            }
        }
    }
}

impl<D: Device> Bus<D> {
    /// Asks for a word.
    pub(crate) fn post_read(&mut self, offset_bytes: u64) -> u16 {
        let tag = self.next_read;
        self.next_read = tag.wrapping_add(1);
        self.posted.push_back(Posted::Read { offset_bytes, tag });
        tag
    }
}

impl<D: Device> ReadPort for MemoryReads<D> {
    fn lines(&self) -> u32 {
        self.link.bus.borrow().aperture.window_lines
    }

    fn start_read(&mut self, line: u32, first_word: u32, words: u32) -> Option<WindowRead> {
        let is_inside = line < self.lines() && words >= 1 && first_word + words <= WORDS_PER_LINE as u32;
        assert!(is_inside, "a read of {words} words from {first_word} of line {line}");
        let index = self.reads.iter().position(Option::is_none)?;
        let mut tags = [0; WORDS_PER_LINE];
        self.link.with_bus(|bus| {
            let window = bus.aperture.offset_bytes + u64::from(self.queue) * bus.aperture.stride_bytes;
            for (word, tag) in (first_word..first_word + words).zip(&mut tags) {
                let within = u64::from(line) * LINE_BYTES as u64 + u64::from(word) * WORD_BYTES as u64;
                *tag = bus.post_read(window + within);
            }
        });
        (self.reads[index], self.words[index]) = (Some(tags), words);
        Some(WindowRead(index as u16))
    }

    fn poll_read(&mut self, read: WindowRead, into: &mut Line) -> bool {
        let index = usize::from(read.0);
        let tags = self.reads[index].expect("the read is outstanding");
        let tags = &tags[..self.words[index] as usize];
        let mut bus = self.link.bus.borrow_mut();
        if !tags.iter().all(|tag| bus.answers.contains_key(tag)) {
            return false;
        }
        for (word, tag) in into.iter_mut().zip(tags) {
            *word = bus.answers.remove(tag).expect("it was there");
        }
        self.reads[index] = None;
        true
    }

    fn abandon(&mut self) {
        self.forget();
    }
}

impl<D> Drop for MemoryReads<D> {
    fn drop(&mut self) {
        self.forget();
        self.link.bus.borrow_mut().readers_taken[self.queue as usize] = false;
    }
}
