//! A device that keeps what came, wants what it was told to want, and refuses now and then.

use std::collections::VecDeque;

use beeline_contract_device::{Accept, Device, DmaError, DmaTag, QueueId, ReadTag, SimTime, Want, Write};
use beeline_link_sim::des::Stream;
use rand::RngExt;

/// What it wants next, one for each write that it takes and for each read that is answered.
#[derive(Clone, Debug)]
pub enum Reaction {
    Nothing,
    Read {
        address: u64,
        bytes: u32,
    },
    Write {
        address: u64,
        data: Vec<u8>,
    },
    /// A write, and at once a read of the same bytes.
    WriteAndRead {
        address: u64,
        data: Vec<u8>,
    },
    Transmit {
        bytes: usize,
    },
    Interrupt,
}

#[derive(Clone, Debug)]
enum Wanted {
    Read { address: u64, bytes: u32, tag: DmaTag },
    Write { address: u64, data: Vec<u8> },
    Transmit { bytes: usize },
    Interrupt,
    Answer { tag: ReadTag, value: u64 },
}

/// A write that it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub at_ps: u64,
    pub offset_bytes: u64,
    pub data: Vec<u8>,
}

/// A read of it that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    pub at_ps: u64,
    pub asked_at_ps: u64,
    pub address: u64,
    pub data: Result<Vec<u8>, DmaError>,
}

#[derive(Default)]
pub struct Probe {
    pub reactions: VecDeque<Reaction>,
    pub taken: Vec<Taken>,
    pub completed: Vec<Completed>,
    /// Time and offset of each load.
    pub loads: Vec<(u64, u64)>,
    pub refusals: u64,
    /// Words that it took, by their most significant byte.
    pub words: Vec<u64>,
    /// Refuses so many of 100 writes.
    pub refuses: Option<(u32, Stream)>,
    pub most_outstanding: usize,
    now_ps: u64,
    wire_ready: bool,
    retry_at_ps: Option<u64>,
    wants: VecDeque<Wanted>,
    current: Option<Wanted>,
    outstanding: Vec<(DmaTag, u64, u64)>,
    next_tag: u16,
}

impl Probe {
    pub fn with(reactions: impl IntoIterator<Item = Reaction>) -> Probe {
        Probe {
            reactions: reactions.into_iter().collect(),
            wire_ready: true,
            words: vec![0; 256],
            ..Probe::default()
        }
    }

    fn read(&mut self, address: u64, bytes: u32) {
        let tag = DmaTag(self.next_tag);
        self.next_tag = self.next_tag.wrapping_add(1);
        self.outstanding.push((tag, address, self.now_ps));
        self.most_outstanding = self.most_outstanding.max(self.outstanding.len());
        self.wants.push_back(Wanted::Read { address, bytes, tag });
    }

    fn react(&mut self) {
        match self.reactions.pop_front() {
            None | Some(Reaction::Nothing) => {}
            Some(Reaction::Read { address, bytes }) => self.read(address, bytes),
            Some(Reaction::Write { address, data }) => self.wants.push_back(Wanted::Write { address, data }),
            Some(Reaction::WriteAndRead { address, data }) => {
                let bytes = data.len() as u32;
                self.wants.push_back(Wanted::Write { address, data });
                self.read(address, bytes);
            }
            Some(Reaction::Transmit { bytes }) => self.wants.push_back(Wanted::Transmit { bytes }),
            Some(Reaction::Interrupt) => self.wants.push_back(Wanted::Interrupt),
        }
    }
}

impl Device for Probe {
    fn write_arrived(&mut self, write: Write<'_>) -> Accept {
        if let Some((percent, random)) = &mut self.refuses
            && random.random_range(0..100) < *percent
        {
            self.refusals += 1;
            self.retry_at_ps = Some(self.now_ps + random.random_range(1..5000));
            return Accept::Refused;
        }
        let (at_ps, data) = (self.now_ps, write.data.to_vec());
        for word in data.as_chunks::<8>().0 {
            self.words[usize::from(word[7])] += 1;
        }
        self.taken.push(Taken { at_ps, offset_bytes: write.offset_bytes, data });
        self.react();
        Accept::Taken
    }

    /// The answer is how many words came of the core whose register it is: a register of 8 bytes each.
    fn read_arrived(&mut self, offset_bytes: u64, tag: ReadTag) {
        self.loads.push((self.now_ps, offset_bytes));
        let value = self.words[(offset_bytes / 8 % 256) as usize];
        self.wants.push_back(Wanted::Answer { tag, value });
    }

    fn dma_completed(&mut self, tag: DmaTag, data: Result<&[u8], DmaError>) {
        let found = self.outstanding.iter().position(|(other, ..)| *other == tag);
        let (_, address, asked_at_ps) = self.outstanding.swap_remove(found.expect("a read is answered once"));
        let data = data.map(<[u8]>::to_vec);
        self.completed.push(Completed { at_ps: self.now_ps, asked_at_ps, address, data });
        self.react();
    }

    fn frame_arrived(&mut self, _: &[u8]) -> Accept {
        Accept::Refused
    }

    fn time_passed(&mut self, now: SimTime) {
        assert!(now.0 >= self.now_ps, "time runs backwards");
        self.now_ps = now.0;
        self.retry_at_ps = self.retry_at_ps.filter(|at| *at > now.0);
    }

    fn wire_ready(&mut self, ready: bool) {
        self.wire_ready = ready;
    }

    fn next(&mut self) -> Option<Want<'_>> {
        let may = |want: &Wanted| self.wire_ready || !matches!(want, Wanted::Transmit { .. });
        let index = self.wants.iter().position(may)?;
        self.current = self.wants.remove(index);
        Some(match self.current.as_ref()? {
            Wanted::Read { address, bytes, tag } => {
                Want::DmaRead { address: *address, bytes: *bytes, tag: *tag }
            }
            Wanted::Write { address, data } => Want::DmaWrite { address: *address, data },
            Wanted::Transmit { bytes } => Want::Transmit { queue: QueueId(0), frame: &[7; 2048][..*bytes] },
            Wanted::Interrupt => Want::Interrupt { vector: 0 },
            Wanted::Answer { tag, value } => Want::ReadCompletion { tag: *tag, value: *value },
        })
    }

    fn wake_at(&self) -> Option<SimTime> {
        self.retry_at_ps.map(SimTime)
    }
}
