//! `inline`: entries in a ring, pushed or announced, beside pushes and rings of garbage.

use beeline_spec::Interface;
use beeline_spec::entry::PUSH_HALF_LINES;
use beeline_spec::regs::queue;

use super::entry::{bad_entry, entry, room};
use super::{Bench, Owner, QueueResources, Store};
use crate::Random;

const RING_LINES: u64 = 64;
const RING_AT: u64 = 128;
const BUFFERS_AT: u64 = 0x4000;
const BUFFER_BYTES: u64 = 2048;

/// The owner.
#[derive(Debug)]
pub struct Inline {
    resources: QueueResources,
    epoch: u8,
    tail: u64,
    pushes: u64,
}

impl Inline {
    /// An owner of a queue that is not started.
    pub fn new(resources: QueueResources) -> Self {
        Inline { resources, epoch: 0, tail: 0, pushes: 0 }
    }

    fn put(&mut self, bench: &mut dyn Bench, entry: &[u8]) {
        for line in entry.as_chunks::<64>().0 {
            bench.store(self.resources.memory + RING_AT + self.tail % RING_LINES * 64, line);
            self.tail = self.tail.wrapping_add(1);
        }
    }

    /// The writes of a push, one line each, into the half whose turn it is.
    fn push(&mut self, entry: &[u8]) -> Vec<Store> {
        let half = self.pushes % 2 * u64::from(PUSH_HALF_LINES) * 64;
        self.pushes += 1;
        let lines = entry.as_chunks::<64>().0.iter().enumerate();
        lines.map(|(at, line)| Store::whole(self.resources.window + half + 64 * at as u64, line)).collect()
    }
}

impl Owner for Inline {
    fn interface(&self) -> Interface {
        Interface::Inline
    }

    fn set_up(&self, bench: &mut dyn Bench) {
        bench.store(self.resources.memory, &[0; 8]);
        bench.set_of(self.resources.queue, queue::HOLE_TIMEOUT_NS, 1000);
        bench.set_of(self.resources.queue, queue::TX_RING_ADDRESS, self.resources.memory + RING_AT);
        bench.set_of(self.resources.queue, queue::TX_RING_ENTRIES, RING_LINES);
        bench.set_of(self.resources.queue, queue::TX_HEAD_ADDRESS, self.resources.memory);
    }

    fn begin(&mut self, epoch: u8) {
        *self = Inline { resources: self.resources, epoch, tail: 0, pushes: 0 };
    }

    fn send(&mut self, bench: &mut dyn Bench, _random: &mut Random, frame: &[u8]) -> Option<Vec<Store>> {
        let is_whole = frame.len() <= room(8);
        let buffer = self.resources.memory + BUFFERS_AT + self.tail % RING_LINES * BUFFER_BYTES;
        let entry = entry(frame, (!is_whole).then_some(buffer), self.epoch, self.tail, 1);
        let lines = entry.len() as u64 / 64;
        if self.tail + lines - bench.load(self.resources.memory) > RING_LINES {
            return None;
        }
        if !is_whole {
            bench.store(buffer, frame);
        }
        self.put(bench, &entry);
        if lines > PUSH_HALF_LINES.into() {
            return Some(vec![self.resources.doorbell(self.tail)]);
        }
        Some(self.push(&entry))
    }

    fn is_done(&self, bench: &dyn Bench) -> bool {
        bench.load(self.resources.memory) == self.tail
    }

    fn break_rules(&mut self, bench: &mut dyn Bench, random: &mut Random) -> Vec<Store> {
        let entry = bad_entry(random, self.epoch, self.tail, self.resources.memory + BUFFERS_AT, 1);
        self.put(bench, &entry);
        match random.below(6) {
            0 => vec![self.resources.doorbell(random.word())],
            1 => vec![self.resources.doorbell(self.tail)],
            2 => {
                // A half that is written in pieces, twice, and not to its end.
                let at = self.resources.window + random.below(8 * 64) as u64;
                vec![Store::whole(at, &entry[..1 + random.below(60)]), Store::whole(at, &entry[..64])]
            }
            _ => self.push(&entry),
        }
    }
}
