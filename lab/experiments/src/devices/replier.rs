//! A node of another host that polls a window of its memory and answers each message by a store to the sender's memory.

use std::collections::VecDeque;

use beeline_contract_device::{Accept, Device, DmaError, DmaTag, ReadTag, SimTime, Want, Write};

/// The node. What its host takes between a packet that is at its root complex and the answer that leaves it is one span.
#[derive(Debug, Default)]
pub struct Replier {
    /// From a message there to its answer leaving: visible, loaded, found by a poll, stored.
    turnaround: SimTime,
    /// Where its flag is in the sender's memory.
    pub flag_address: u64,
    now: SimTime,
    /// Answers that wait for their time.
    answers: VecDeque<(SimTime, [u8; 8])>,
    answer: [u8; 8],
}

impl Replier {
    /// A node that has answered nothing; its flag's address is to be told.
    pub fn new(turnaround: SimTime) -> Replier {
        Replier { turnaround, ..Replier::default() }
    }
}

impl Device for Replier {
    fn write_arrived(&mut self, write: Write<'_>) -> Accept {
        let mut value = [0; 8];
        let count = write.data.len().min(8);
        value[..count].copy_from_slice(&write.data[..count]);
        self.answers.push_back((SimTime(self.now.0 + self.turnaround.0), value));
        Accept::Taken
    }

    fn read_arrived(&mut self, _offset_bytes: u64, _tag: ReadTag) {}

    fn dma_completed(&mut self, _tag: DmaTag, _data: Result<&[u8], DmaError>) {}

    fn frame_arrived(&mut self, _frame: &[u8]) -> Accept {
        Accept::Taken
    }

    fn time_passed(&mut self, now: SimTime) {
        self.now = now;
    }

    fn wire_ready(&mut self, _ready: bool) {}

    fn next(&mut self) -> Option<Want<'_>> {
        let (at, value) = *self.answers.front()?;
        if at > self.now {
            return None;
        }
        self.answers.pop_front();
        self.answer = value;
        Some(Want::DmaWrite { address: self.flag_address, data: &self.answer })
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.answers.front().map(|(at, _)| *at)
    }
}
