//! A link whose other end is a device in the same process: what a driver stores arrives at a [`Device`], what the
//! device wants happens to the driver's memory. Deterministic; time passes when a test says so.
//!
//! Posted writes go to the device in order, wait when it refuses them and hold back those behind them, as on PCIe;
//! reads follow the writes. DMA reads are answered in an order that a seed chooses, DMA writes happen in order.
#![allow(dead_code, reason = "each test file uses its own part of this module")]

pub mod nic;

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use beeline_contract_device::{
    Accept, Device, DmaError, DmaTag, Enables, HostMemory, QueueId, ReadTag, SimTime, Want, Watches, Write,
};
use beeline_contract_link::{
    DmaMemory, Doorbell, Evidence, Link, LinkError, LinkKind, NoReads, RegisterRead,
};
use beeline_contract_memory::{Line, StorePort};
use beeline_driver::{Pending, Port, PortError, PortState, Progress};
use beeline_spec::LINE_BYTES;

/// Where the first memory region lies on the bus; regions are a megabyte or more apart, with holes between.
const FIRST_ADDRESS: u64 = 0x4000_0000;

/// Lines of each window and where the windows are.
#[derive(Clone, Copy, Debug)]
pub struct Aperture {
    pub offset_bytes: u64,
    pub stride_bytes: u64,
    pub lines: u32,
}

#[derive(Debug)]
enum Posted {
    Write { offset_bytes: u64, data: Vec<u8> },
    Read { offset_bytes: u64, tag: u16 },
}

/// The device and everything around it.
pub struct Bus<D> {
    pub device: D,
    pub aperture: Aperture,
    pub queues: u32,
    posted: VecDeque<Posted>,
    regions: Vec<(u64, Vec<u8>)>,
    watches: Watches,
    answers: HashMap<u16, u64>,
    next_read: u16,
    now_ns: u64,
    /// Frames on the wire, in order, with the queue they came from.
    pub wire: Vec<(QueueId, Vec<u8>)>,
    /// Vectors that interrupted.
    pub interrupts: Vec<u16>,
    /// Frames that wait to enter the device.
    pub arriving: VecDeque<Vec<u8>>,
    /// Makes the order of DMA answers.
    random: u64,
    windows_taken: Vec<u32>,
    pub gone: bool,
    /// The device's reads of memory fail.
    pub fails_reads: bool,
    /// Stores to be lost on the way: counts down on each store, then drops one.
    pub lose_store_after: Option<u32>,
}

impl<D: Device> Bus<D> {
    /// Hands the device what waits and does what it wants, until nothing is left that can happen at this time.
    pub fn pump(&mut self) {
        for _ in 0..1_000_000 {
            let progressed = self.deliver() | self.serve() | self.receive();
            if !progressed {
                return;
            }
        }
        panic!("the device wants something for ever");
    }

    /// Delivers what is on its way, then lets time pass.
    pub fn pass(&mut self, ns: u64) {
        self.pump();
        self.now_ns += ns;
        self.device.time_passed(SimTime::from_ns(self.now_ns));
        self.pump();
    }

    /// Each region's address and bytes.
    pub fn regions(&self) -> &[(u64, Vec<u8>)] {
        &self.regions
    }

    /// Stores a word into a region behind the driver's back.
    pub fn spoil(&mut self, region: usize, at: usize, word: u64) {
        self.regions[region].1[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    fn deliver(&mut self) -> bool {
        let mut progressed = false;
        while let Some(front) = self.posted.front() {
            match front {
                Posted::Write { offset_bytes, data } => {
                    let write = Write { offset_bytes: *offset_bytes, data, enables: Enables::All };
                    if self.device.write_arrived(write) == Accept::Refused {
                        return progressed;
                    }
                }
                Posted::Read { offset_bytes, tag } => self.device.read_arrived(*offset_bytes, ReadTag(*tag)),
            }
            self.posted.pop_front();
            progressed = true;
        }
        progressed
    }

    fn serve(&mut self) -> bool {
        let mut reads: Vec<(DmaTag, Result<Vec<u8>, DmaError>)> = Vec::new();
        let mut progressed = false;
        while let Some(want) = self.device.next() {
            progressed = true;
            match want {
                Want::DmaRead { address, bytes, tag } => {
                    let data = find(&self.regions, address, bytes as usize)
                        .map(|(region, at)| self.regions[region].1[at..at + bytes as usize].to_vec());
                    let data = data.filter(|_| !self.fails_reads);
                    reads.push((tag, data.ok_or(DmaError::BadAddress)));
                }
                Want::DmaWrite { address, data } => {
                    let (region, at) =
                        find(&self.regions, address, data.len()).expect("DMA write outside memory");
                    self.regions[region].1[at..at + data.len()].copy_from_slice(data);
                }
                Want::Transmit { queue, frame } => self.wire.push((queue, frame.to_vec())),
                Want::ReadCompletion { tag, value } => {
                    self.answers.insert(tag.0, value);
                }
                Want::Aborted { .. } => {}
                watch @ (Want::WatchLine { .. } | Want::ForgetLine { .. }) => {
                    self.watches.take(&watch);
                }
                Want::Interrupt { vector } => self.interrupts.push(vector),
            }
        }
        while !reads.is_empty() {
            let pick = self.next_random() as usize % reads.len();
            let (tag, data) = reads.swap_remove(pick);
            self.device.dma_completed(tag, data.as_deref().map_err(|error| *error));
        }
        progressed | self.watches.look(&mut self.device, &mut Watched(&mut self.regions))
    }

    fn receive(&mut self) -> bool {
        let mut progressed = false;
        while let Some(frame) = self.arriving.front() {
            if self.device.frame_arrived(frame) == Accept::Refused {
                break;
            }
            self.arriving.pop_front();
            progressed = true;
        }
        progressed
    }

    fn next_random(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }

    fn post(&mut self, offset_bytes: u64, data: Vec<u8>) {
        self.posted.push_back(Posted::Write { offset_bytes, data });
    }

    fn store(&mut self, offset_bytes: u64, data: Vec<u8>) {
        if let Some(left) = &mut self.lose_store_after {
            if *left == 0 {
                self.lose_store_after = None;
                return;
            }
            *left -= 1;
        }
        self.post(offset_bytes, data);
    }
}

/// Memory as the device's watches see it.
struct Watched<'a>(&'a mut [(u64, Vec<u8>)]);

impl HostMemory for Watched<'_> {
    fn word(&mut self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        self.read(address, &mut word).then(|| u64::from_le_bytes(word))
    }

    fn read(&mut self, address: u64, data: &mut [u8]) -> bool {
        let Some((region, at)) = find(self.0, address, data.len()) else { return false };
        data.copy_from_slice(&self.0[region].1[at..at + data.len()]);
        true
    }
}

fn find(regions: &[(u64, Vec<u8>)], address: u64, bytes: usize) -> Option<(usize, usize)> {
    regions.iter().enumerate().find_map(|(i, (base, memory))| {
        let at = address.checked_sub(*base)? as usize;
        (at.checked_add(bytes)? <= memory.len()).then_some((i, at))
    })
}

/// The host's end; clones share the bus.
pub struct InProcess<D>(pub Rc<RefCell<Bus<D>>>);

impl<D> Clone for InProcess<D> {
    fn clone(&self) -> Self {
        InProcess(Rc::clone(&self.0))
    }
}

impl<D: Device> InProcess<D> {
    pub fn new(device: D, aperture: Aperture, queues: u32, seed: u64) -> Self {
        InProcess(Rc::new(RefCell::new(Bus {
            device,
            aperture,
            queues,
            posted: VecDeque::new(),
            regions: Vec::new(),
            watches: Watches::new(),
            answers: HashMap::new(),
            next_read: 0,
            now_ns: 0,
            wire: Vec::new(),
            interrupts: Vec::new(),
            arriving: VecDeque::new(),
            random: seed | 1,
            windows_taken: Vec::new(),
            gone: false,
            fails_reads: false,
            lose_store_after: None,
        })))
    }

    pub fn pump(&self) {
        self.0.borrow_mut().pump();
    }

    pub fn pass(&self, ns: u64) {
        self.0.borrow_mut().pass(ns);
    }

    /// Takes the frames that came out.
    pub fn take_wire(&self) -> Vec<Vec<u8>> {
        self.0.borrow_mut().wire.drain(..).map(|(_, frame)| frame).collect()
    }
}

/// A window's stores become TLPs: lines of 64 bytes, words of 8.
pub struct BusWindow<D> {
    bus: InProcess<D>,
    queue: u32,
    aperture: Aperture,
}

impl<D: Device> BusWindow<D> {
    fn offset(&self, line: u32, word: u32) -> u64 {
        let window = self.aperture.offset_bytes + u64::from(self.queue) * self.aperture.stride_bytes;
        window + u64::from(line) * LINE_BYTES as u64 + u64::from(word) * 8
    }
}

impl<D: Device> StorePort for BusWindow<D> {
    fn lines(&self) -> u32 {
        self.aperture.lines
    }

    fn store_line(&mut self, line: u32, words: &Line) {
        assert!(line < self.aperture.lines, "a store outside the window");
        let data = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.bus.0.borrow_mut().store(self.offset(line, 0), data);
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        assert!(line < self.aperture.lines && word < 8, "a store outside the window");
        self.bus.0.borrow_mut().store(self.offset(line, word), value.to_le_bytes().to_vec());
    }

    fn fence(&mut self) {}

    beeline_contract_memory::store_port_default! { composed, hints, wake_receiver, progress }
}

impl<D> Drop for BusWindow<D> {
    fn drop(&mut self) {
        let queue = self.queue;
        self.bus.0.borrow_mut().windows_taken.retain(|taken| *taken != queue);
    }
}

pub struct BusMemory<D> {
    bus: InProcess<D>,
    region: usize,
    address: u64,
    bytes: usize,
}

impl<D> BusMemory<D> {
    fn with<T>(&self, at: usize, bytes: usize, f: impl FnOnce(&mut [u8]) -> T) -> T {
        assert!(at + bytes <= self.bytes, "an access outside the region");
        f(&mut self.bus.0.borrow_mut().regions[self.region].1[at..at + bytes])
    }
}

impl<D> DmaMemory for BusMemory<D> {
    fn address(&self) -> u64 {
        self.address
    }
    fn bytes(&self) -> usize {
        self.bytes
    }
    fn load(&mut self, at: usize) -> u64 {
        assert!(at.is_multiple_of(8), "a load at {at}");
        self.with(at, 8, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
    }
    fn load_acquire(&mut self, at: usize) -> u64 {
        self.load(at)
    }
    fn store(&mut self, at: usize, value: u64) {
        assert!(at.is_multiple_of(8), "a store at {at}");
        self.with(at, 8, |bytes| bytes.copy_from_slice(&value.to_le_bytes()));
    }
    fn store_release(&mut self, at: usize, value: u64) {
        self.store(at, value);
    }
    fn copy_in(&mut self, at: usize, from: &[u8]) {
        self.with(at, from.len(), |bytes| bytes.copy_from_slice(from));
    }
    fn copy_out(&mut self, at: usize, to: &mut [u8]) {
        self.with(at, to.len(), |bytes| to.copy_from_slice(bytes));
    }
}

/// A doorbell is a posted write like any other.
pub struct BusDoorbell<D> {
    bus: InProcess<D>,
    offset_bytes: u32,
}

impl<D: Device> Doorbell for BusDoorbell<D> {
    fn ring(&mut self, value: u64) {
        self.bus.0.borrow_mut().post(u64::from(self.offset_bytes), value.to_le_bytes().to_vec());
    }
}

impl<D: Device> LinkKind for InProcess<D> {
    const EVIDENCE: Evidence = Evidence::OneProcess;
}

impl<D: Device> Link for InProcess<D> {
    type Window = BusWindow<D>;
    type Memory = BusMemory<D>;
    type Doorbell = BusDoorbell<D>;
    type Reads = NoReads;

    fn window(&mut self, queue: u32) -> Result<BusWindow<D>, LinkError> {
        let bus = self.clone();
        let mut inner = self.0.borrow_mut();
        if queue >= inner.queues {
            return Err(LinkError::NoSuchQueue(queue, inner.queues));
        }
        if inner.windows_taken.contains(&queue) {
            return Err(LinkError::WindowTaken(queue));
        }
        inner.windows_taken.push(queue);
        Ok(BusWindow { bus, queue, aperture: inner.aperture })
    }

    fn memory(&mut self, bytes: usize) -> Result<BusMemory<D>, LinkError> {
        let mut bus = self.0.borrow_mut();
        let end = bus.regions.last().map_or(FIRST_ADDRESS, |(base, memory)| base + memory.len() as u64);
        let address = (end + 1).next_multiple_of(1 << 20);
        bus.regions.push((address, vec![0; bytes]));
        Ok(BusMemory { bus: self.clone(), region: bus.regions.len() - 1, address, bytes })
    }

    fn doorbell(&mut self, offset_bytes: u32) -> Result<BusDoorbell<D>, LinkError> {
        Ok(BusDoorbell { bus: self.clone(), offset_bytes })
    }

    fn write_register(&mut self, offset_bytes: u32, value: u64) -> Result<bool, LinkError> {
        self.0.borrow_mut().post(u64::from(offset_bytes), value.to_le_bytes().to_vec());
        Ok(true)
    }

    fn start_read(&mut self, offset_bytes: u32) -> Result<Option<RegisterRead>, LinkError> {
        let mut bus = self.0.borrow_mut();
        let tag = bus.next_read;
        bus.next_read = tag.wrapping_add(1);
        bus.posted.push_back(Posted::Read { offset_bytes: u64::from(offset_bytes), tag });
        Ok(Some(RegisterRead(tag)))
    }

    fn poll_read(&mut self, read: RegisterRead) -> Result<Option<u64>, LinkError> {
        Ok(self.0.borrow_mut().answers.remove(&read.0))
    }

    fn is_device_gone(&self) -> bool {
        self.0.borrow().gone
    }
}

/// Polls until the port is ready, the device running in between.
pub fn bring_up<D: Device>(link: &InProcess<D>, config: beeline_driver::PortConfig) -> Port<InProcess<D>> {
    let mut port = Port::new(link.clone(), config);
    for _ in 0..10_000 {
        if port.poll(0).expect("bring-up") == PortState::Ready {
            return port;
        }
        link.pump();
    }
    panic!("the port does not become ready");
}

/// Polls until an operation is done, the device running in between and time passing slowly.
pub fn finish<D: Device, T>(port: &mut Port<InProcess<D>>, mut pending: Pending<T>) -> Result<T, PortError> {
    let link = port.link().clone();
    for round in 0..10_000 {
        port.poll(round)?;
        pending = match port.finish(pending)? {
            Progress::Done(value) => return Ok(value),
            Progress::Pending(pending) => pending,
        };
        link.pass(10);
    }
    panic!("an operation does not end");
}
