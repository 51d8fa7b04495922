//! Windows of the link: observed ones, whose stores travel as writes, and blank ones in cells that a scanner reads
//! (`cells.rs`).

use beeline_contract_device::Device;
use beeline_contract_memory::{Line, StorePort};
use beeline_spec::{LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};

use crate::MemoryLink;
use crate::bus::Posted;

/// The transmit window of a queue.
pub struct MemoryWindow<D> {
    link: MemoryLink<D>,
    queue: u32,
    lines: u32,
}

impl<D> MemoryWindow<D> {
    pub(crate) fn new(link: MemoryLink<D>, queue: u32, lines: u32) -> Self {
        MemoryWindow { link, queue, lines }
    }
}

impl<D: Device> StorePort for MemoryWindow<D> {
    fn lines(&self) -> u32 {
        self.lines
    }

    fn store_line(&mut self, line: u32, words: &Line) {
        assert!(line < self.lines, "a store outside the window");
        self.link.with_bus(|bus| {
            if bus.aperture.is_blank {
                for (i, word) in words.iter().enumerate() {
                    bus.cells[self.queue as usize].store(line, i, *word);
                }
                return;
            }
            let data = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let window = bus.aperture.offset_bytes + u64::from(self.queue) * bus.aperture.stride_bytes;
            let offset_bytes = window + u64::from(line) * LINE_BYTES as u64;
            bus.posted.push_back(Posted::Write { offset_bytes, data });
        });
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        assert!(line < self.lines && word < WORDS_PER_LINE as u32, "a store outside the window");
        self.link.with_bus(|bus| {
            if bus.aperture.is_blank {
                return bus.cells[self.queue as usize].store(line, word as usize, value);
            }
            let window = bus.aperture.offset_bytes + u64::from(self.queue) * bus.aperture.stride_bytes;
            let within = u64::from(line) * LINE_BYTES as u64 + u64::from(word) * WORD_BYTES as u64;
            let data = value.to_le_bytes().to_vec();
            bus.posted.push_back(Posted::Write { offset_bytes: window + within, data });
        });
    }

    fn fence(&mut self) {}

    // The device runs in the sender's thread, so it does not sleep.
    beeline_contract_memory::store_port_default! { composed, hints, wake_receiver, progress }
}

impl<D> Drop for MemoryWindow<D> {
    fn drop(&mut self) {
        self.link.bus.borrow_mut().windows_taken[self.queue as usize] = false;
    }
}
