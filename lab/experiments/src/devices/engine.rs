//! A device that reads and writes memory of the host, as cards do that measure PCI Express (Neugebauer et al., SIGCOMM
//! 2018): one transfer after the other, or as many as its tags allow.

use std::collections::VecDeque;

use beeline_contract_device::{Accept, Device, DmaError, DmaTag, ReadTag, SimTime, Want, Write};

/// Work that an [`Engine`] repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    Read,
    Write,
    /// Writes a place and reads it behind that.
    WriteRead,
    /// Reads and writes in turn, of different places.
    ReadAndWrite,
}

/// Reads and writes in turn that may be under way together, as one queue of commands keeps them: enough to cover the way there
/// and back of small ones, and neither direction runs away from the other.
const UNDER_WAY: u64 = 128;

/// The engine. It works through a range of memory, a transfer at each `stride_bytes`.
#[derive(Debug)]
pub struct Engine {
    job: Job,
    base: u64,
    bytes: u32,
    stride_bytes: u64,
    range_bytes: u64,
    /// Whether the next transfer begins when the one before is done, or as many as may are wanted at once.
    is_one_by_one: bool,
    left: u64,
    started: u64,
    starts_at: SimTime,
    now: SimTime,
    data: Vec<u8>,
    /// Steps of the engine that the link has not taken.
    wanted: VecDeque<Step>,
    /// From a write to the read that follows it, and the read that waits for that.
    read_after: SimTime,
    follows: Option<(SimTime, u64)>,
    begun: SimTime,
    /// How long each transfer took, one by one.
    pub round_trips: Vec<SimTime>,
    pub reads_done: u64,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Read(u64),
    Write(u64),
}

impl Engine {
    /// So many transfers of `bytes` in `range_bytes` of memory from `base` on, from `starts_at` on.
    pub fn new(
        job: Job,
        base: u64,
        range_bytes: u64,
        bytes: u32,
        transfers: u64,
        is_one_by_one: bool,
    ) -> Engine {
        let stride_bytes = u64::from(bytes).next_multiple_of(64);
        Engine {
            job,
            base,
            bytes,
            stride_bytes,
            range_bytes: range_bytes.max(stride_bytes),
            is_one_by_one,
            left: transfers,
            started: 0,
            starts_at: SimTime::from_ns(1000),
            now: SimTime(0),
            data: vec![0x5a; bytes as usize],
            wanted: VecDeque::new(),
            read_after: SimTime(0),
            follows: None,
            begun: SimTime(0),
            round_trips: Vec::new(),
            reads_done: 0,
        }
    }

    /// Where its memory is, once that is known.
    pub fn set_base(&mut self, base: u64) {
        self.base = base;
    }

    /// A read behind a write begins when the write has left the engine, so long after the write began.
    pub fn set_read_after(&mut self, span: SimTime) {
        self.read_after = span;
    }

    /// Whether everything has been wanted.
    pub fn is_done(&self) -> bool {
        self.left == 0 && self.wanted.is_empty()
    }

    /// Transfers of one direction all begin at once, and the device holds them back; those in turn keep each other's pace.
    fn may_begin(&self) -> bool {
        self.job != Job::ReadAndWrite || self.started < 2 * self.reads_done + UNDER_WAY
    }

    fn begin(&mut self) {
        let at = self.base + self.started * self.stride_bytes % self.range_bytes;
        self.left -= 1;
        self.started += 1;
        self.begun = self.now;
        match self.job {
            Job::Read => self.wanted.push_back(Step::Read(at)),
            Job::Write => self.wanted.push_back(Step::Write(at)),
            Job::WriteRead => {
                self.wanted.push_back(Step::Write(at));
                self.follows = Some((SimTime(self.now.0 + self.read_after.0), at));
            }
            Job::ReadAndWrite if self.started.is_multiple_of(2) => self.wanted.push_back(Step::Read(at)),
            Job::ReadAndWrite => self.wanted.push_back(Step::Write(at)),
        }
    }
}

impl Device for Engine {
    fn write_arrived(&mut self, _write: Write<'_>) -> Accept {
        Accept::Taken
    }

    fn read_arrived(&mut self, _offset_bytes: u64, _tag: ReadTag) {}

    fn dma_completed(&mut self, _tag: DmaTag, _data: Result<&[u8], DmaError>) {
        self.reads_done += 1;
        if self.is_one_by_one {
            self.round_trips.push(SimTime(self.now.0 - self.begun.0));
            // A pause, so that no transfer finds anything of the one before.
            self.starts_at = SimTime(self.now.0 + SimTime::from_ns(1000).0);
        }
    }

    fn frame_arrived(&mut self, _frame: &[u8]) -> Accept {
        Accept::Taken
    }

    fn time_passed(&mut self, now: SimTime) {
        self.now = now;
        if let Some((_, address)) = self.follows.take_if(|(at, _)| *at <= now) {
            self.wanted.push_back(Step::Read(address));
        }
        if now < self.starts_at {
            return;
        }
        if !self.is_one_by_one {
            while self.left > 0 && self.may_begin() {
                self.begin();
            }
        } else if self.left > 0 && self.round_trips.len() as u64 == self.started {
            self.begin();
        }
    }

    fn wire_ready(&mut self, _ready: bool) {}

    fn next(&mut self) -> Option<Want<'_>> {
        match self.wanted.pop_front()? {
            Step::Read(address) => Some(Want::DmaRead { address, bytes: self.bytes, tag: DmaTag(0) }),
            Step::Write(address) => Some(Want::DmaWrite { address, data: &self.data }),
        }
    }

    fn wake_at(&self) -> Option<SimTime> {
        if let Some((at, _)) = self.follows {
            return Some(at);
        }
        let waits = self.left > 0 && self.wanted.is_empty() && self.now < self.starts_at;
        waits.then_some(self.starts_at)
    }
}
