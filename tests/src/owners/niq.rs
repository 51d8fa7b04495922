//! `niq`: whole entries in order, beside entries in pieces, of other epochs, and at places whose turn has not come.

use beeline_contract_device::Enables;
use beeline_spec::Interface;
use beeline_spec::regs::field::entry as queue_entry;
use beeline_spec::regs::queue;

use super::entry::{bad_entry, entry, room};
use super::{Bench, Owner, QueueResources, Store};
use crate::Random;

const ENTRY_LINES: u64 = 2;
const BUFFERS_AT: u64 = 4096;
const BUFFER_BYTES: u64 = 2048;

/// The owner.
#[derive(Debug)]
pub struct Niq {
    resources: QueueResources,
    epoch: u8,
    tail: u64,
}

impl Niq {
    /// An owner of a queue that is not started.
    pub fn new(resources: QueueResources) -> Self {
        Niq { resources, epoch: 0, tail: 0 }
    }

    fn entries(&self) -> u64 {
        self.resources.window_lines / ENTRY_LINES
    }

    fn at(&self, position: u64) -> u64 {
        self.resources.window + position % self.entries() * ENTRY_LINES * 64
    }

    fn stores(&self, position: u64, entry: &[u8]) -> Vec<Store> {
        let lines = entry.as_chunks::<64>().0.iter().enumerate();
        lines.map(|(line, bytes)| Store::whole(self.at(position) + 64 * line as u64, bytes)).collect()
    }
}

impl Owner for Niq {
    fn interface(&self) -> Interface {
        Interface::Niq
    }

    fn set_up(&self, bench: &mut dyn Bench) {
        bench.store(self.resources.memory, &[0; 8]);
        bench.set_of(self.resources.queue, queue::TX_HEAD_ADDRESS, self.resources.memory);
        bench.set_of(self.resources.queue, queue::ENTRY, (ENTRY_LINES - 1) << queue_entry::LINES_LOG2_LSB);
    }

    fn begin(&mut self, epoch: u8) {
        *self = Niq { resources: self.resources, epoch, tail: 0 };
    }

    fn send(&mut self, bench: &mut dyn Bench, _random: &mut Random, frame: &[u8]) -> Option<Vec<Store>> {
        if self.tail - bench.load(self.resources.memory) == self.entries() {
            return None;
        }
        let buffer = self.resources.memory + BUFFERS_AT + self.tail % self.entries() * BUFFER_BYTES;
        let is_whole = frame.len() <= room(ENTRY_LINES as usize);
        if !is_whole {
            bench.store(buffer, frame);
        }
        let address = (!is_whole).then_some(buffer);
        let entry = entry(frame, address, self.epoch, self.tail, ENTRY_LINES as usize);
        self.tail += 1;
        Some(self.stores(self.tail - 1, &entry))
    }

    fn is_done(&self, bench: &dyn Bench) -> bool {
        bench.load(self.resources.memory) == self.tail
    }

    fn break_rules(&mut self, _bench: &mut dyn Bench, random: &mut Random) -> Vec<Store> {
        let memory = self.resources.memory + BUFFERS_AT;
        let entry = bad_entry(random, self.epoch, self.tail, memory, ENTRY_LINES as usize);
        let position = self.tail + [0, 0, 0, 1, 7, self.entries() - 1][random.below(6)];
        self.tail += u64::from(random.below(3) > 0);
        match random.below(5) {
            0 => vec![Store {
                offset: self.at(position),
                data: entry[..64].to_vec(),
                enables: Enables::Mask(random.word()),
            }],
            1 => vec![Store::whole(self.at(position) + 64, &entry[64..])],
            _ => self.stores(position, &entry),
        }
    }
}
