//! `descriptor`: a ring and its doorbell, beside descriptors without sense and tails that run away.

use beeline_spec::Interface;
use beeline_spec::formats::tx_descriptor as f;
use beeline_spec::regs::queue;

use super::{Bench, Owner, QueueResources, Store};
use crate::Random;

const ENTRIES: u64 = 32;
const RING_AT: u64 = 64;
const BUFFERS_AT: u64 = 4096;
const BUFFER_BYTES: u64 = 2048;

/// The owner.
#[derive(Debug)]
pub struct Descriptor {
    resources: QueueResources,
    tail: u64,
}

impl Descriptor {
    /// An owner of a queue that is not started.
    pub fn new(resources: QueueResources) -> Self {
        Descriptor { resources, tail: 0 }
    }

    fn put(&self, bench: &mut dyn Bench, address: u64, length: u64) {
        let at = self.resources.memory + RING_AT + self.tail % ENTRIES * f::BYTES as u64;
        bench.store(at + f::ADDRESS_OFFSET as u64, &address.to_le_bytes());
        bench.store(at + f::LENGTH_BYTES_OFFSET as u64, &length.to_le_bytes());
    }
}

impl Owner for Descriptor {
    fn interface(&self) -> Interface {
        Interface::Descriptor
    }

    fn set_up(&self, bench: &mut dyn Bench) {
        bench.store(self.resources.memory, &[0; 8]);
        bench.set_of(self.resources.queue, queue::TX_RING_ADDRESS, self.resources.memory + RING_AT);
        bench.set_of(self.resources.queue, queue::TX_RING_ENTRIES, ENTRIES);
        bench.set_of(self.resources.queue, queue::TX_HEAD_ADDRESS, self.resources.memory);
    }

    fn begin(&mut self, _epoch: u8) {
        *self = Descriptor { resources: self.resources, tail: 0 };
    }

    fn send(&mut self, bench: &mut dyn Bench, _random: &mut Random, frame: &[u8]) -> Option<Vec<Store>> {
        if self.tail - bench.load(self.resources.memory) == ENTRIES {
            return None;
        }
        let address = self.resources.memory + BUFFERS_AT + self.tail % ENTRIES * BUFFER_BYTES;
        bench.store(address, frame);
        self.put(bench, address, frame.len() as u64);
        self.tail += 1;
        Some(vec![self.resources.doorbell(self.tail)])
    }

    fn is_done(&self, bench: &dyn Bench) -> bool {
        bench.load(self.resources.memory) == self.tail
    }

    fn break_rules(&mut self, bench: &mut dyn Bench, random: &mut Random) -> Vec<Store> {
        let address = [self.resources.memory + BUFFERS_AT, random.word(), u64::MAX - 7][random.below(3)];
        let length = [60, 300, 0, 5, 1515, 65_535, random.word()][random.below(7)];
        self.put(bench, address, length);
        self.tail = match random.below(12) {
            0 => random.word(),
            1 => self.tail.wrapping_sub(1),
            2 => self.tail.wrapping_add(2 * ENTRIES),
            _ => self.tail.wrapping_add(1),
        };
        vec![self.resources.doorbell(self.tail)]
    }
}
