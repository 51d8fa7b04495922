//! The bus: posted accesses on their way to the device, memory it reads and writes, the wire.
//!
//! Order is PCIe's: posted writes arrive in order, a refused one holds back those behind it, reads follow the writes;
//! DMA writes happen in the order in which they are wanted, DMA reads are answered in an order chosen by the seed. The
//! wire carries what is transmitted back to the same device and holds a few frames while the device refuses them.

use std::collections::{HashMap, VecDeque};

use beeline_contract_device::{
    Accept, Device, DmaError, DmaTag, Enables, QueueId, ReadTag, SimTime, Want, Watches, Write,
};

use crate::cells::Cells;
use crate::forgotten::Forgotten;
use crate::regions::Regions;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Frames the wire holds while the device refuses them; then it takes no more.
const WIRE_FRAMES: usize = 4;
/// Rounds after which a device that still wants something is taken for broken.
const MAX_ROUNDS: usize = 1_000_000;

/// Where the windows of a device lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aperture {
    /// Offset in the BAR of the first window.
    pub offset_bytes: u64,
    /// Bytes from one window to the next.
    pub stride_bytes: u64,
    /// Lines of each window, a power of two.
    pub window_lines: u32,
    /// Queues, each with a window.
    pub queues: u32,
    /// Whether the windows are blank windows or observed ones.
    pub is_blank: bool,
}

/// An access that has been posted and has not arrived.
#[derive(Debug)]
pub(crate) enum Posted {
    /// A whole word or line.
    Write { offset_bytes: u64, data: Vec<u8> },
    /// A read of a word.
    Read { offset_bytes: u64, tag: u16 },
}

/// The device and what is around it.
pub struct Bus<D> {
    pub device: D,
    /// Queues whose frames were transmitted, oldest first.
    pub transmitted: Vec<QueueId>,
    /// The device is gone: links and drivers see that, and nothing arrives any more.
    pub is_gone: bool,
    pub(crate) aperture: Aperture,
    pub(crate) posted: VecDeque<Posted>,
    pub(crate) regions: Regions,
    pub(crate) cells: Vec<Cells>,
    /// What the host last wrote to each queue's blank register.
    pub(crate) blanks: Vec<u64>,
    pub(crate) answers: HashMap<u16, u64>,
    pub(crate) next_read: u16,
    pub(crate) forgotten: Forgotten,
    pub(crate) windows_taken: Vec<bool>,
    pub(crate) readers_taken: Vec<bool>,
    wire: VecDeque<Vec<u8>>,
    reads: Vec<(DmaTag, u64, u32)>,
    watches: Watches,
    now: SimTime,
    /// Where frames go that are transmitted, if not back to the device.
    kept: Option<Vec<Vec<u8>>>,
    random: SmallRng,
}

impl<D: Device> Bus<D> {
    pub(crate) fn new(device: D, aperture: Aperture, seed: u64) -> Self {
        Bus {
            device,
            transmitted: Vec::new(),
            is_gone: false,
            posted: VecDeque::new(),
            regions: Regions::default(),
            cells: (0..aperture.queues).map(|_| Cells::new(aperture.window_lines)).collect(),
            blanks: vec![0; aperture.queues as usize],
            answers: HashMap::new(),
            next_read: 0,
            forgotten: Forgotten::default(),
            windows_taken: vec![false; aperture.queues as usize],
            readers_taken: vec![false; aperture.queues as usize],
            wire: VecDeque::new(),
            reads: Vec::new(),
            watches: Watches::new(),
            now: SimTime(0),
            kept: None,
            random: SmallRng::seed_from_u64(seed),
            aperture,
        }
    }

    /// Takes the frames that were transmitted since the last call. From the first one on the wire is not looped back.
    pub fn take_frames(&mut self) -> Vec<Vec<u8>> {
        self.kept.replace(Vec::new()).unwrap_or_default()
    }

    /// See [`crate::MemoryLink::pass`].
    pub(crate) fn pass(&mut self, ns: u64) {
        self.now = SimTime(self.now.0 + SimTime::from_ns(ns).0);
        self.device.time_passed(self.now);
        self.pump();
    }

    /// See [`crate::MemoryLink::pump`].
    pub(crate) fn pump(&mut self) {
        if self.is_gone {
            return;
        }
        for _ in 0..MAX_ROUNDS {
            let delivered = self.deliver_posted() | self.scan_windows();
            let served = self.serve_wants();
            let moved = self.move_wire() | self.answer_read() | self.look_at_lines();
            if !(delivered || served || moved) {
                return;
            }
        }
        panic!("the device wants something for ever");
    }

    fn deliver_posted(&mut self) -> bool {
        let mut has_progressed = false;
        while let Some(posted) = self.posted.front() {
            match posted {
                Posted::Write { offset_bytes, data } => {
                    let write = Write { offset_bytes: *offset_bytes, data, enables: Enables::All };
                    if self.device.write_arrived(write) == Accept::Refused {
                        return has_progressed;
                    }
                }
                Posted::Read { offset_bytes, tag } => self.device.read_arrived(*offset_bytes, ReadTag(*tag)),
            }
            self.posted.pop_front();
            has_progressed = true;
        }
        has_progressed
    }

    fn scan_windows(&mut self) -> bool {
        let Bus { cells, device, aperture, .. } = self;
        let mut has_progressed = false;
        for (queue, cells) in cells.iter_mut().enumerate() {
            let base = aperture.offset_bytes + queue as u64 * aperture.stride_bytes;
            has_progressed |= cells.scan(base, device);
        }
        has_progressed
    }

    fn serve_wants(&mut self) -> bool {
        let mut has_progressed = false;
        self.device.wire_ready(self.wire.len() < WIRE_FRAMES);
        while let Some(want) = self.device.next() {
            has_progressed = true;
            match want {
                Want::DmaRead { address, bytes, tag } => self.reads.push((tag, address, bytes)),
                Want::DmaWrite { address, data } => {
                    let memory = self.regions.find(address, data.len());
                    memory.expect("the device writes to memory it was given").copy_from_slice(data);
                }
                Want::Transmit { queue, frame } => {
                    self.transmitted.push(queue);
                    match &mut self.kept {
                        Some(kept) => kept.push(frame.to_vec()),
                        None => self.wire.push_back(frame.to_vec()),
                    }
                }
                Want::ReadCompletion { tag, value } => {
                    if !self.forgotten.take(tag.0) {
                        self.answers.insert(tag.0, value);
                    }
                }
                Want::Aborted { .. } | Want::Interrupt { .. } => {}
                watch @ (Want::WatchLine { .. } | Want::ForgetLine { .. }) => {
                    self.watches.take(&watch);
                }
            }
            self.device.wire_ready(self.wire.len() < WIRE_FRAMES);
        }
        has_progressed
    }

    fn move_wire(&mut self) -> bool {
        let mut has_progressed = false;
        while let Some(frame) = self.wire.front() {
            if self.device.frame_arrived(frame) == Accept::Refused {
                break;
            }
            self.wire.pop_front();
            has_progressed = true;
        }
        has_progressed
    }

    fn look_at_lines(&mut self) -> bool {
        self.watches.look(&mut self.device, &mut self.regions)
    }

    /// Answers one of the reads that wait.
    fn answer_read(&mut self) -> bool {
        if self.reads.is_empty() {
            return false;
        }
        let pick = self.random.random_range(0..self.reads.len());
        let (tag, address, bytes) = self.reads.swap_remove(pick);
        let data = self.regions.find(address, bytes as usize);
        self.device.dma_completed(tag, data.map(|data| &*data).ok_or(DmaError::BadAddress));
        true
    }
}
