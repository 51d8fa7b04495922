//! `kpio`: whole lines in order, beside lines in pieces, out of order, twice, and without an end.

use beeline_contract_device::Enables;
use beeline_spec::formats::KPIO_EOP_DEFAULT;
use beeline_spec::regs::queue;
use beeline_spec::{Interface, LINE_BYTES};

use super::{Bench, Owner, QueueResources, Store};
use crate::Random;

/// The owner.
#[derive(Debug)]
pub struct Kpio {
    resources: QueueResources,
    stored: u64,
}

impl Kpio {
    /// An owner of a queue that is not started.
    pub fn new(resources: QueueResources) -> Self {
        Kpio { resources, stored: 0 }
    }
}

impl Owner for Kpio {
    fn interface(&self) -> Interface {
        Interface::Kpio
    }

    fn set_up(&self, bench: &mut dyn Bench) {
        bench.store(self.resources.credits, &[0; 8]);
        bench.set_of(self.resources.queue, queue::KPIO_EOP, KPIO_EOP_DEFAULT);
    }

    fn begin(&mut self, _epoch: u8) {
        *self = Kpio { resources: self.resources, stored: 0 };
    }

    fn send(&mut self, bench: &mut dyn Bench, _random: &mut Random, frame: &[u8]) -> Option<Vec<Store>> {
        let mut raw = self.on_the_wire(frame);
        // A frame that fills its last line is followed by a line of signatures.
        let lines = raw.len() / LINE_BYTES + 1;
        let freed = bench.load(self.resources.credits);
        if self.stored + lines as u64 - freed > self.resources.window_lines {
            return None;
        }
        while raw.len() < lines * LINE_BYTES {
            raw.extend_from_slice(&KPIO_EOP_DEFAULT.to_le_bytes());
        }
        let stores = raw.as_chunks::<LINE_BYTES>().0.iter().map(|line| {
            let offset = self.resources.line(self.stored);
            self.stored += 1;
            Store::whole(offset, line)
        });
        Some(stores.collect())
    }

    fn is_done(&self, bench: &dyn Bench) -> bool {
        bench.load(self.resources.credits) == self.stored
    }

    fn on_the_wire(&self, frame: &[u8]) -> Vec<u8> {
        let mut padded = frame.to_vec();
        padded.resize(frame.len().next_multiple_of(8), 0);
        padded
    }

    fn break_rules(&mut self, _bench: &mut dyn Bench, random: &mut Random) -> Vec<Store> {
        let mut line = [0xee; LINE_BYTES];
        if random.below(2) == 0 {
            line[32..].as_chunks_mut::<8>().0.fill(KPIO_EOP_DEFAULT.to_le_bytes());
        }
        let offset = self.resources.line(self.stored + [0, 0, 0, 1, 5, 63][random.below(6)]);
        let store = match random.below(4) {
            0 => Store { offset, data: line.to_vec(), enables: Enables::Mask(random.word()) },
            1 => Store::whole(offset + 8, &line[8..8 + 1 + random.below(50)]),
            _ => Store::whole(offset, &line),
        };
        self.stored += u64::from(random.below(3) > 0);
        vec![store]
    }
}
