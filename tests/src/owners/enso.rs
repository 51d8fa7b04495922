//! `enso`: frames back to back in a pipe, beside a pipe of garbage whose tail runs away.

use beeline_spec::regs::queue;
use beeline_spec::{Interface, pipe};

use super::{Bench, Owner, QueueResources, Store};
use crate::Random;

const LINES: u64 = 128;
const PIPE_AT: u64 = 64;

/// The owner.
#[derive(Debug)]
pub struct Enso {
    resources: QueueResources,
    tail: u64,
}

impl Enso {
    /// An owner of a queue that is not started.
    pub fn new(resources: QueueResources) -> Self {
        Enso { resources, tail: 0 }
    }

    fn put(&mut self, bench: &mut dyn Bench, raw: &[u8]) {
        for line in raw.as_chunks::<64>().0 {
            bench.store(self.resources.memory + PIPE_AT + self.tail % LINES * 64, line);
            self.tail = self.tail.wrapping_add(1);
        }
    }
}

impl Owner for Enso {
    fn interface(&self) -> Interface {
        Interface::Enso
    }

    fn set_up(&self, bench: &mut dyn Bench) {
        bench.store(self.resources.memory, &[0; 8]);
        bench.set_of(self.resources.queue, queue::TX_RING_ADDRESS, self.resources.memory + PIPE_AT);
        bench.set_of(self.resources.queue, queue::TX_RING_ENTRIES, LINES);
        bench.set_of(self.resources.queue, queue::TX_HEAD_ADDRESS, self.resources.memory);
    }

    fn begin(&mut self, _epoch: u8) {
        *self = Enso { resources: self.resources, tail: 0 };
    }

    fn send(&mut self, bench: &mut dyn Bench, _random: &mut Random, frame: &[u8]) -> Option<Vec<Store>> {
        let lines = u64::from(pipe::lines_of(frame.len() as u32));
        if self.tail + lines - bench.load(self.resources.memory) > LINES {
            return None;
        }
        let mut raw = pipe::header(frame.len() as u16).to_le_bytes().to_vec();
        raw.extend_from_slice(frame);
        raw.resize(lines as usize * 64, 0);
        self.put(bench, &raw);
        Some(vec![self.resources.doorbell(self.tail)])
    }

    fn is_done(&self, bench: &dyn Bench) -> bool {
        bench.load(self.resources.memory) == self.tail
    }

    fn break_rules(&mut self, bench: &mut dyn Bench, random: &mut Random) -> Vec<Store> {
        let mut line = [0xee; 64];
        let word =
            [pipe::header(56), pipe::header(120), 0, pipe::header(9999), random.word()][random.below(5)];
        line[..8].copy_from_slice(&word.to_le_bytes());
        self.put(bench, &line);
        let tail = match random.below(12) {
            0 => random.word(),
            1 => self.tail.wrapping_sub(1),
            2 => self.tail.wrapping_add(2 * LINES),
            _ => self.tail,
        };
        vec![self.resources.doorbell(tail)]
    }
}
