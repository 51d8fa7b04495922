//! A device that takes every write and says when it came: memory of a card or of a peer.

use std::collections::VecDeque;

use beeline_contract_device::{Accept, Device, DmaError, DmaTag, ReadTag, SimTime, Want, Write};

/// A write that the logic has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub at: SimTime,
    /// Offset of its first byte.
    pub offset_bytes: u64,
    pub length_bytes: u32,
}

/// Memory of a device. It answers loads with zeros: what is measured is when.
#[derive(Debug, Default)]
pub struct Sink {
    now: SimTime,
    seen: VecDeque<Seen>,
    /// Bytes that came.
    pub bytes: u64,
    answers: VecDeque<ReadTag>,
}

impl Sink {
    /// The oldest write that nobody has looked at.
    pub fn take(&mut self) -> Option<Seen> {
        self.seen.pop_front()
    }
}

impl Device for Sink {
    fn write_arrived(&mut self, write: Write<'_>) -> Accept {
        let length_bytes = write.data.len() as u32;
        self.bytes += u64::from(length_bytes);
        self.seen.push_back(Seen { at: self.now, offset_bytes: write.offset_bytes, length_bytes });
        Accept::Taken
    }

    fn read_arrived(&mut self, _offset_bytes: u64, tag: ReadTag) {
        self.answers.push_back(tag);
    }

    fn dma_completed(&mut self, _tag: DmaTag, _data: Result<&[u8], DmaError>) {}

    fn frame_arrived(&mut self, _frame: &[u8]) -> Accept {
        Accept::Taken
    }

    fn time_passed(&mut self, now: SimTime) {
        self.now = now;
    }

    fn wire_ready(&mut self, _ready: bool) {}

    fn next(&mut self) -> Option<Want<'_>> {
        let tag = self.answers.pop_front()?;
        Some(Want::ReadCompletion { tag, value: 0 })
    }

    fn wake_at(&self) -> Option<SimTime> {
        None
    }
}
