//! `mmio`: messages in any order inside the span, beside pieces at every wrong place.

use beeline_contract_device::Enables;
use beeline_spec::header::lines_of;
use beeline_spec::{Header, Interface, Kind, LINE_BYTES};

use super::{Bench, Owner, QueueResources, Store};
use crate::Random;

/// The owner.
#[derive(Debug)]
pub struct Mmio {
    resources: QueueResources,
    epoch: u8,
    /// Position behind the last line that was laid out.
    end: u64,
}

impl Mmio {
    /// An owner of a queue that is not started.
    pub fn new(resources: QueueResources) -> Self {
        Mmio { resources, epoch: 0, end: 0 }
    }

    /// A line of a message of one line, whoever's epoch it has.
    fn message(&self, epoch: u8, bytes: u32) -> [u8; LINE_BYTES] {
        let mut line = [0xee; LINE_BYTES];
        line[..8].copy_from_slice(&Header::new(Kind::Data, bytes, epoch).encode().to_le_bytes());
        line
    }
}

impl Owner for Mmio {
    fn interface(&self) -> Interface {
        Interface::Mmio
    }

    fn set_up(&self, bench: &mut dyn Bench) {
        bench.store(self.resources.credits, &[0; 8]);
    }

    fn begin(&mut self, epoch: u8) {
        *self = Mmio { resources: self.resources, epoch, end: 0 };
    }

    fn send(&mut self, bench: &mut dyn Bench, random: &mut Random, frame: &[u8]) -> Option<Vec<Store>> {
        let lines = u64::from(lines_of(frame.len() as u32));
        let freed = bench.load(self.resources.credits);
        if self.end + lines - freed > self.resources.window_lines {
            return None;
        }
        let mut raw = Header::new(Kind::Data, frame.len() as u32, self.epoch).encode().to_le_bytes().to_vec();
        raw.extend_from_slice(frame);
        raw.resize(lines as usize * LINE_BYTES, 0);
        let mut stores = Vec::new();
        for (at, line) in raw.as_chunks::<LINE_BYTES>().0.iter().enumerate() {
            let offset = self.resources.line(self.end + at as u64);
            let cut = random.below(128).min(LINE_BYTES);
            let pieces = [(0, cut), (cut, LINE_BYTES)];
            for (from, to) in pieces.into_iter().filter(|(from, to)| from < to) {
                stores.push(Store::whole(offset + from as u64, &line[from..to]));
            }
        }
        for i in (1..stores.len()).rev() {
            stores.swap(i, random.below(i + 1));
        }
        self.end += lines;
        Some(stores)
    }

    fn is_done(&self, bench: &dyn Bench) -> bool {
        bench.load(self.resources.credits) == self.end
    }

    fn break_rules(&mut self, _bench: &mut dyn Bench, random: &mut Random) -> Vec<Store> {
        let mut stores = Vec::new();
        for _ in 0..1 + random.below(4) {
            let good = self.message(self.epoch, 56);
            let ahead = [0, 0, 1, 2, 15, 16, 31, 32, 33, 63][random.below(10)];
            let offset = self.resources.line(self.end + ahead);
            let (from, to) = [(0, 64), (0, 8), (8, 64), (20, 30)][random.below(4)];
            match random.below(6) {
                0 | 1 => {
                    stores.push(Store::whole(self.resources.line(self.end), &good));
                    self.end += 1;
                }
                2 => {
                    // A line just written, again.
                    let behind = self.resources.line(self.end.wrapping_sub(1 + random.below(4) as u64));
                    stores.push(Store::whole(behind + from as u64, &good[from..to]));
                }
                3 => stores.push(Store::whole(offset, &self.message(self.epoch.wrapping_add(1), 9999))),
                4 => {
                    stores.push(Store { offset, data: good.to_vec(), enables: Enables::Mask(random.word()) })
                }
                _ => stores.push(Store::whole(offset + from as u64, &good[from..to])),
            }
        }
        stores
    }
}
