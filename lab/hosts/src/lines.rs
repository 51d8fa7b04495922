//! The lines of a window between hosts, as `host/window` stores and loads them: a core's stores across, and its loads of its own memory.

use beeline_contract_memory::{Line, LoadPort, StorePort};
use beeline_link_sim::machine::hosts::Region;

use crate::programs::Core;
use crate::wiring::LINE_BYTES;

/// Lines of a window in the memory of another host.
pub(crate) struct Stores {
    pub core: Core,
    /// Of its first line.
    pub address: u64,
    pub lines: u32,
}

impl StorePort for Stores {
    fn lines(&self) -> u32 {
        self.lines
    }

    fn store_line(&mut self, line: u32, words: &Line) {
        self.core.store_line(self.address + u64::from(line) * LINE_BYTES as u64, words);
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        self.core.store_word(self.address + u64::from(line) * LINE_BYTES as u64 + u64::from(word) * 8, value);
    }

    fn fence(&mut self) {
        self.core.fence();
    }

    beeline_contract_memory::store_port_default! { composed, hints, wake_receiver, progress }
}

/// Lines of a window in this host's memory.
pub(crate) struct Loads {
    pub core: Core,
    pub region: Region,
    /// Of its first line.
    pub offset: usize,
    pub lines: u32,
}

impl Loads {
    fn at(&self, line: u32, word: usize) -> usize {
        self.offset + line as usize * LINE_BYTES + word * 8
    }
}

impl LoadPort for Loads {
    beeline_contract_memory::group_line_by_line! {}

    fn lines(&self) -> u32 {
        self.lines
    }

    fn load_word(&self, line: u32, word: u32) -> u64 {
        self.core.load(self.region, self.at(line, word as usize))
    }

    fn load_line(&mut self, line: u32) -> Line {
        let mut bytes = [0; LINE_BYTES];
        self.core.copy_out(self.region, self.at(line, 0), &mut bytes);
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        words
    }

    fn blank_line(&mut self, line: u32, blank: u64) {
        (0..8).for_each(|word| self.core.store(self.region, self.at(line, word), blank));
    }
}
