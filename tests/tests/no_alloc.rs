//! The behavioural NIC allocates nothing for a frame, by any interface and either way of receiving.

use beeline_contract_device::{
    Accept, Device, DmaError, DmaTag, Enables, HostMemory, SimTime, Want, Watches, Write,
};
use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::coherent::{self, LineHeader, LineKind, given_back};
use beeline_spec::entry::{EntryHeader, EntryKind, position_of};
use beeline_spec::formats::KPIO_EOP_DEFAULT;
use beeline_spec::regs::field::rx_mode;
use beeline_spec::regs::{self, queue as r};
use beeline_spec::{Header, Interface, Kind, pipe};

/// Bus address of the host's memory.
const BASE: u64 = 0x10_0000;
const RX_RING: u64 = BASE + 0x1_0000;
const RX_COMPLETIONS: u64 = BASE + 0x8_0000;
const TX_RING: u64 = BASE + 0x9_0000;
const BUFFERS: u64 = BASE + 0x10_0000;
const WINDOW_LINES: u64 = 256;
const ENTRIES: u64 = 64;
/// Receive mode register: coherent lines, one an entry, so that the frame goes into a buffer.
const LINES: u64 = 1 << rx_mode::LINES_LSB;
/// Lines or entries of the receive ring.
const RX_ENTRIES: u64 = 1024;
const RX_BUFFERS: u64 = BASE + 0x14_0000;
const FRAME: [u8; 200] = [0x5a; 200];

/// A host whose memory answers at once and which frees what it received before the next frame.
struct Host {
    nic: Nic,
    aperture: u64,
    memory: Memory,
    watches: Watches,
    /// The last frame transmitted, on its way back.
    wire: Vec<u8>,
    received: u64,
    rx_mode: u64,
    lines: u64,
    tail: u64,
    now_ns: u64,
}

/// Memory of the host, from [`BASE`] on.
struct Memory(Vec<u8>);

impl HostMemory for Memory {
    fn word(&mut self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        self.read(address, &mut word).then(|| u64::from_le_bytes(word))
    }

    fn read(&mut self, address: u64, data: &mut [u8]) -> bool {
        let at = (address - BASE) as usize;
        let found = self.0.get(at..at + data.len());
        found.map(|bytes| data.copy_from_slice(bytes)).is_some()
    }
}

fn queue(register: u32) -> u64 {
    u64::from(regs::QUEUE + register)
}

impl Host {
    fn new(interface: Interface, rx_mode: u64) -> Self {
        let config = NicConfig {
            queues: 1,
            window_lines: WINDOW_LINES as u32,
            contexts: 1,
            pool_lines: 512,
            ..NicConfig::default()
        };
        let aperture = config.capabilities().aperture.expect("a NIC has windows").0;
        let nic = Nic::new(config).expect("the sizes make sense");
        let mut host = Host {
            nic,
            aperture,
            memory: Memory(vec![0; 0x20_0000]),
            watches: Watches::new(),
            wire: Vec::with_capacity(FRAME.len()),
            received: 0,
            rx_mode,
            lines: 0,
            tail: 0,
            now_ns: 0,
        };
        for i in 0..ENTRIES {
            // A ring of coherent lines begins as zeros.
            if interface == Interface::Descriptor {
                host.put(TX_RING + i * 16, &BUFFERS.to_le_bytes());
                host.put(TX_RING + i * 16 + 8, &(FRAME.len() as u64).to_le_bytes());
            }
            if rx_mode == 2 {
                host.put(RX_RING + i * 16, &(BUFFERS + 4096 + i * 2048).to_le_bytes());
                host.put(RX_RING + i * 16 + 8, &2048u64.to_le_bytes());
            }
        }
        host.put(BUFFERS, &FRAME);
        host.write(u64::from(regs::CONTROL), 1);
        for (register, value) in [
            (r::CREDIT_ADDRESS, BASE),
            (r::CREDIT_COALESCE, 16 | 100 << 32),
            (r::KPIO_EOP, KPIO_EOP_DEFAULT),
            (r::TX_RING_ADDRESS, TX_RING),
            (r::TX_RING_ENTRIES, ENTRIES),
            (r::TX_HEAD_ADDRESS, BASE + 64),
            (r::TX_MODERATION, 8 | 100 << 32),
            (r::RX_MODE, rx_mode),
            (r::RX_RING_ADDRESS, RX_RING),
            (r::RX_RING_ENTRIES, if rx_mode == 2 { ENTRIES } else { RX_ENTRIES }),
            (r::RX_COMPLETION_ADDRESS, if rx_mode == LINES { RX_BUFFERS } else { RX_COMPLETIONS }),
            (r::RX_NOTIFY_ENTRIES, ENTRIES),
            (r::ENTRY, 2),
            (r::RX_MODERATION, 8 | 100 << 32),
            (r::CONTROL, 1 | u64::from(interface.code()) << 4 | 1 << 8),
        ] {
            host.write(queue(register), value);
        }
        host.serve();
        host
    }

    fn put(&mut self, address: u64, bytes: &[u8]) {
        let at = (address - BASE) as usize;
        self.memory.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn write(&mut self, offset_bytes: u64, value: u64) {
        let write = Write { offset_bytes, data: &value.to_le_bytes(), enables: Enables::All };
        assert_eq!(self.nic.write_arrived(write), Accept::Taken);
    }

    fn line(&mut self, line: &[u8; 64]) {
        let offset_bytes = self.aperture + self.lines % WINDOW_LINES * 64;
        self.lines += 1;
        let write = Write { offset_bytes, data: line, enables: Enables::All };
        assert_eq!(self.nic.write_arrived(write), Accept::Taken);
    }

    fn store(&mut self, at: u64, line: &[u8]) {
        let write = Write { offset_bytes: self.aperture + at, data: line, enables: Enables::All };
        assert_eq!(self.nic.write_arrived(write), Accept::Taken);
    }

    /// The frame as an entry of four lines.
    fn entry(&self, position: u64) -> [u8; 256] {
        let header = EntryHeader {
            length_bytes: FRAME.len() as u16,
            kind: EntryKind::Whole,
            wants_irq: false,
            epoch: 1,
            position: position_of(position),
        };
        let mut entry = [0; 256];
        entry[..8].copy_from_slice(&header.encode().to_le_bytes());
        entry[16..16 + FRAME.len()].copy_from_slice(&FRAME);
        entry
    }

    fn send(&mut self, interface: Interface) {
        let mut lines = [[0u8; 64]; 4];
        let bytes = lines.as_flattened_mut();
        match interface {
            Interface::Mmio => {
                let header = Header::new(Kind::Data, FRAME.len() as u32, 1).encode();
                bytes[..8].copy_from_slice(&header.to_le_bytes());
                bytes[8..8 + FRAME.len()].copy_from_slice(&FRAME);
                // The last line comes first, so that the reorder unit has work.
                let first = self.lines;
                for index in [3, 0, 1, 2] {
                    self.lines = first + index;
                    self.line(&lines[index as usize]);
                }
                self.lines = first + 4;
            }
            Interface::Kpio => {
                bytes[..FRAME.len()].copy_from_slice(&FRAME);
                bytes[FRAME.len()..].as_chunks_mut::<8>().0.fill(KPIO_EOP_DEFAULT.to_le_bytes());
                lines.iter().for_each(|line| self.line(line));
            }
            Interface::Descriptor => {
                self.tail += 1;
                self.write(u64::from(regs::DOORBELL + regs::doorbell::TX_TAIL), self.tail);
            }
            Interface::Inline => {
                let (entry, position) = (self.entry(self.tail), self.tail);
                self.put(TX_RING + position % ENTRIES * 64, &entry);
                self.tail += 4;
                // One frame is pushed, the next one fetched.
                if position % 8 == 0 {
                    (0..4).for_each(|line| self.store(line * 64, &entry[line as usize * 64..][..64]));
                } else {
                    self.write(u64::from(regs::DOORBELL + regs::doorbell::TX_TAIL), self.tail);
                }
            }
            Interface::Enso => {
                let at = TX_RING + self.tail % ENTRIES * 64;
                self.put(at, &pipe::header(FRAME.len() as u16).to_le_bytes());
                self.put(at + 8, &FRAME);
                self.tail += 4;
                self.write(u64::from(regs::DOORBELL + regs::doorbell::TX_TAIL), self.tail);
            }
            Interface::Niq => {
                let entry = self.entry(self.tail);
                let at = self.tail * 256 % (WINDOW_LINES * 64);
                self.tail += 1;
                (0..4).for_each(|line| self.store(at + line * 64, &entry[line as usize * 64..][..64]));
            }
            Interface::Coherent => {
                let at = TX_RING + self.tail % ENTRIES * 256;
                let (kind, position) =
                    (LineKind::Whole(FRAME.len() as u16), coherent::position_of(self.tail));
                self.tail += 1;
                self.put(at + 8, &FRAME);
                self.put(at, &LineHeader { kind, epoch: 1, position }.encode().to_le_bytes());
            }
        }
    }

    /// Gives back what was received.
    fn free(&mut self) {
        if self.rx_mode == LINES {
            let at = RX_RING + self.received % RX_ENTRIES * 64;
            self.received += 1;
            let header = self.memory.word(at).expect("the ring is memory");
            return self.put(at, &given_back(header).to_le_bytes());
        }
        self.received += if self.rx_mode == 2 { 1 } else { (8 + FRAME.len() as u64).div_ceil(64) };
        self.write(u64::from(regs::DOORBELL + regs::doorbell::RX_FREED), self.received);
    }

    fn serve(&mut self) {
        loop {
            let (tag, at, bytes): (DmaTag, usize, usize) = match self.nic.next() {
                None => {
                    if self.watches.look(&mut self.nic, &mut self.memory) {
                        continue;
                    }
                    return;
                }
                Some(Want::DmaWrite { address, data }) => {
                    let at = (address - BASE) as usize;
                    self.memory.0[at..at + data.len()].copy_from_slice(data);
                    continue;
                }
                Some(Want::DmaRead { address, bytes, tag }) => {
                    (tag, (address - BASE) as usize, bytes as usize)
                }
                Some(Want::Transmit { frame, .. }) => {
                    self.wire.clear();
                    self.wire.extend_from_slice(frame);
                    continue;
                }
                Some(watch @ (Want::WatchLine { .. } | Want::ForgetLine { .. })) => {
                    self.watches.take(&watch);
                    continue;
                }
                Some(Want::ReadCompletion { .. } | Want::Interrupt { .. } | Want::Aborted { .. }) => continue,
            };
            let data = self.memory.0.get(at..at + bytes).ok_or(DmaError::BadAddress);
            self.nic.dma_completed(tag, data);
        }
    }

    fn round(&mut self, interface: Interface) {
        self.send(interface);
        self.serve();
        assert!(self.wire == FRAME, "{interface}: {} bytes were transmitted", self.wire.len());
        assert_eq!(self.nic.frame_arrived(&self.wire), Accept::Taken);
        self.serve();
        self.free();
        self.serve();
        self.wire.clear();
        self.now_ns += 40;
        self.nic.time_passed(SimTime::from_ns(self.now_ns));
        self.serve();
    }
}

#[test]
fn the_nic_allocates_nothing_for_a_frame() {
    const ROUNDS: u64 = 2000;
    for interface in Interface::ALL {
        for rx_mode in [1, 2, 3, LINES] {
            let mut host = Host::new(interface, rx_mode);
            host.round(interface);
            let work = || (0..ROUNDS).for_each(|_| host.round(interface));
            let allocated = allocation_counter::measure(work).count_total;
            assert_eq!(allocated, 0, "{interface}, receive mode {rx_mode}: allocations in {ROUNDS} rounds");
            let counters = host.nic.counters();
            assert_eq!((counters.tx_frames, counters.rx_frames), (ROUNDS + 1, ROUNDS + 1), "{interface}");
            assert_eq!((counters.bad_accesses, counters.dma_errors), (0, 0), "{interface}");
        }
    }
}
