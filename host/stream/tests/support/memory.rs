//! Memory of a connection: words and windows of both directions.

use std::sync::atomic::{Ordering, fence};

use beeline_contract_adapter::{PublishPort, Unconfirmed, ViewPort};
use beeline_contract_memory::{CreditSink, CreditSource};
use beeline_ledger::{RECEIVER_WORDS, SENDER_WORDS};
use beeline_mmio::{LoadWindow, MemoryOptions, Region, SharedMemory, StoreKernel, StoreWindow, Word};
use beeline_spec::escape::blank_from_random;
use beeline_window::{Receiver, WindowConfig, Writer};

const WINDOW_LINES: u32 = 128;
pub const WINDOW_BYTES: usize = WINDOW_LINES as usize * 64;
/// Windows that a direction can have one after the other.
const WINDOWS: u64 = 400;

// Of a direction: ledger, receiver's words, the count of windows offered, then a line of credits and a line with the blank for each window.
const RECEIVER_AT: usize = 128;
const OFFERED_AT: usize = 256;
const SEEN_AT: usize = 320;
const LINES_AT: usize = 384;
const WINDOWS_AT: usize = 1 << 16;
const DIRECTION_BYTES: usize = WINDOWS_AT + WINDOWS as usize * WINDOW_BYTES;

pub struct Memory(Region);

impl Memory {
    pub fn new() -> Self {
        let options = MemoryOptions::default();
        Memory(
            SharedMemory::create("beeline-test-stream", 2 * DIRECTION_BYTES, options).unwrap().map().unwrap(),
        )
    }

    pub fn direction(&self, number: usize) -> Direction {
        Direction { region: self.0.clone(), start: number * DIRECTION_BYTES, made: 0 }
    }

    pub fn region(&self) -> Region {
        self.0.clone()
    }
}

/// Words that one end publishes.
pub struct Words(beeline_mmio::Words);
/// Words that the other end publishes.
pub struct Theirs(beeline_mmio::Words);

impl PublishPort for Words {
    fn publish(&mut self, word: u32, value: u64) {
        self.0.store_release(word as usize, value);
    }

    fn barrier(&mut self) -> Result<(), Unconfirmed> {
        fence(Ordering::SeqCst);
        Ok(())
    }
}

impl ViewPort for Theirs {
    fn load(&self, word: u32) -> u64 {
        self.0.load_acquire(word as usize)
    }
}

/// The count of freed lines of a window.
pub struct Pushed(Word);

impl CreditSource for Pushed {
    fn freed_lines(&mut self) -> u64 {
        self.0.load_acquire()
    }
}

impl CreditSink for Pushed {
    fn publish(&mut self, freed_lines: u64) {
        self.0.store_release(freed_lines);
    }
}

pub struct Direction {
    region: Region,
    start: usize,
    /// Windows that this end has made, if it receives.
    made: u64,
}

impl Direction {
    pub fn sender_words(&self) -> Words {
        Words(self.region.words(self.start, SENDER_WORDS as usize))
    }

    pub fn receiver_words(&self) -> Words {
        Words(self.region.words(self.start + RECEIVER_AT, RECEIVER_WORDS as usize))
    }

    pub fn theirs_of_sender(&self) -> Theirs {
        Theirs(self.receiver_words().0)
    }

    pub fn theirs_of_receiver(&self) -> Theirs {
        Theirs(self.sender_words().0)
    }

    /// A count that the sender's end says to whoever looks.
    pub fn said(&self) -> Word {
        self.region.word(self.start + SEEN_AT)
    }

    fn offered_word(&self) -> Word {
        self.region.word(self.start + OFFERED_AT)
    }

    fn line(&self, window: u64) -> usize {
        self.start + LINES_AT + window as usize * 128
    }

    fn window_at(&self, window: u64) -> usize {
        self.start + WINDOWS_AT + window as usize * WINDOW_BYTES
    }

    /// Where window `number`, counted from 1, lies in the memory.
    pub fn window_bytes(&self, number: u64) -> Option<usize> {
        number.checked_sub(1).map(|window| self.window_at(window))
    }

    /// The count of lines that the receiver of window `number`, counted from 1, has freed.
    pub fn credit_word(&self, number: u64) -> Word {
        self.region.word(self.line(number - 1))
    }

    /// The receiving end of the next window.
    pub fn next_window(&mut self, random: u64) -> Option<Receiver<LoadWindow, Pushed>> {
        let window = self.made;
        if window == WINDOWS {
            return None;
        }
        self.made += 1;
        let blank = blank_from_random(random);
        self.region.fill(self.window_at(window), WINDOW_BYTES, blank);
        self.region.word(self.line(window) + 64).store(blank);
        let port = self.region.load_window(self.window_at(window), WINDOW_LINES);
        Some(Receiver::new(port, Pushed(self.region.word(self.line(window))), WindowConfig::blank(blank, 0)))
    }

    pub fn tell_offered(&self) {
        self.offered_word().store_release(self.made);
    }

    /// The last window that was offered, if it is behind number `taken`, and the sending end of it.
    pub fn offered(&self, taken: u64) -> Option<(u64, Writer<StoreWindow, Pushed>)> {
        let number = self.offered_word().load_acquire();
        let window = number.checked_sub(1).filter(|_| number > taken)?;
        let blank = self.region.word(self.line(window) + 64).load();
        // Every other one by stores that nothing orders.
        let kernel = if window % 2 == 0 { StoreKernel::Cached } else { StoreKernel::Nt8 };
        let port = self.region.store_window(self.window_at(window), WINDOW_LINES, kernel);
        let config = WindowConfig::blank(blank, 0);
        Some((number, Writer::new(port, Pushed(self.region.word(self.line(window))), config)))
    }
}
