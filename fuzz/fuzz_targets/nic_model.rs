//! This target is the behavioural NIC. Attackers control everything that reaches it: a host controls its registers, windows
//! and memory (the answers to DMA reads and watches), the wire controls its frames. The NIC never panics and never wants
//! something for ever. It asks for reads of at most 4096 bytes, transmits only frames a port may send and only while the
//! wire takes them, and answers every register read once. It watches at most one line of a half of a queue, and takes back
//! only what it watches.
#![no_main]

use beeline_contract_device::{
    Device, DmaError, DmaTag, Enables, ReadTag, SimTime, Want, WatchEnd, WatchTag, Write,
};
use beeline_fuzz::device::{Event, LINES, MAX_FRAME_BYTES, QUEUES, Setup, config, offset_of};
use beeline_nic_model::Nic;
use libfuzzer_sys::fuzz_target;

/// Only writes of at most 64 bytes have byte enables.
fn mask(data: &[u8], enables: Option<u64>) -> Enables {
    enables.filter(|_| data.len() <= 64).map_or(Enables::All, Enables::Mask)
}

/// A NIC and what it was asked.
struct Bench {
    nic: Nic,
    now_ns: u64,
    wire_ready: bool,
    reads: Vec<(u32, DmaTag)>,
    watches: Vec<(u32, WatchTag)>,
    asked: u64,
    answered: u64,
}

impl Bench {
    /// Takes everything the device wants.
    fn drain(&mut self) {
        // Far more than all queues together can want at one time.
        for _ in 0..20_000 {
            match self.nic.next() {
                None => return assert_eq!(self.asked, self.answered, "a register read was not answered"),
                Some(Want::DmaRead { bytes, tag, .. }) => {
                    assert!((1..=4096).contains(&bytes));
                    assert!(self.reads.iter().all(|(_, other)| *other != tag), "a tag is used twice");
                    self.reads.push((bytes, tag));
                }
                Some(Want::WatchLine { bytes, tag, .. }) => {
                    assert!((8..=256).contains(&bytes) && u32::from(tag.0) < 2 * QUEUES);
                    assert!(self.watches.iter().all(|(_, other)| *other != tag), "a watch is used twice");
                    self.watches.push((bytes, tag));
                }
                Some(Want::ForgetLine { tag }) => {
                    assert!(self.watches.iter().any(|(_, other)| *other == tag), "nothing to forget");
                }
                Some(Want::DmaWrite { data, .. }) => assert!(!data.is_empty() && data.len() <= 1 << 14),
                Some(Want::Transmit { queue, frame }) => {
                    assert!(self.wire_ready && queue.0 < QUEUES as u16);
                    assert!((14..=MAX_FRAME_BYTES as usize).contains(&frame.len()));
                }
                Some(Want::ReadCompletion { .. }) => self.answered += 1,
                Some(Want::Aborted { queue, .. }) => assert!(queue.0 < QUEUES as u16),
                Some(Want::Interrupt { vector }) => assert!(vector < QUEUES as u16),
            }
        }
        panic!("the device wants something for ever");
    }

    fn write(&mut self, offset_bytes: u64, data: &[u8], enables: Enables) {
        // A refused write may be dropped here: this host keeps no rule.
        let _ = self.nic.write_arrived(Write { offset_bytes, data, enables });
    }

    fn set(&mut self, offset: u32, value: u64) {
        self.write(offset.into(), &value.to_le_bytes(), Enables::All);
    }

    fn window(&self, queue: u8, at: u64) -> u64 {
        let config = self.nic.config();
        let window =
            config.aperture_bytes() + u64::from(queue) % u64::from(QUEUES) * config.window_stride_bytes();
        window + at % (u64::from(LINES) * 64)
    }

    fn happen(&mut self, event: Event<'_>) {
        match event {
            Event::SetUp(setup) => Setup::registers(&setup, |offset, value| self.set(offset, value)),
            Event::Register { address, value } => self.set(offset_of(address), value.value()),
            Event::Write { offset, data, enables } => self.write(offset, data, mask(data, enables)),
            Event::Words { queue, line, word, words } => {
                let data: Vec<u8> = words.iter().flat_map(|word| word.value().to_le_bytes()).collect();
                let at = self.window(queue, u64::from(line) * 64 + u64::from(word % 8) * 8);
                self.write(at, &data, Enables::All);
            }
            Event::Bytes { queue, at, data, enables } => {
                self.write(self.window(queue, at.into()), data, mask(data, enables));
            }
            Event::Read(address) => {
                self.asked += 1;
                self.nic.read_arrived(offset_of(address).into(), ReadTag(self.asked as u16));
            }
            Event::Answer { which, words } => {
                let both = self.reads.len() + self.watches.len();
                let Some(index) = usize::from(which).checked_rem(both) else { return };
                let memory = words.iter().flat_map(|word| word.value().to_le_bytes()).cycle();
                if let Some(watch) = index.checked_sub(self.reads.len()) {
                    let (bytes, tag) = self.watches.remove(watch);
                    let line: Vec<u8> = memory.take(bytes as usize).collect();
                    let line = if words.is_empty() { Err(WatchEnd::BadAddress) } else { Ok(&line[..]) };
                    return self.nic.line_changed(tag, line);
                }
                let (bytes, tag) = self.reads.remove(index);
                let data: Vec<u8> = memory.take(bytes as usize).collect();
                let data = if words.is_empty() { Err(DmaError::BadAddress) } else { Ok(&data[..]) };
                self.nic.dma_completed(tag, data);
            }
            Event::Frame { bytes, fill } => {
                let _ = self.nic.frame_arrived(&vec![fill; usize::from(bytes % 2048)]);
            }
            Event::Time { ns } => {
                self.now_ns += u64::from(ns);
                self.nic.time_passed(SimTime::from_ns(self.now_ns));
            }
            Event::WireReady(ready) => {
                self.wire_ready = ready;
                self.nic.wire_ready(ready);
            }
        }
    }
}

fuzz_target!(|input: (bool, bool, Vec<(Event<'_>, bool)>)| {
    let (blank, rx_lossless, events) = input;
    let nic = Nic::new(config(blank, rx_lossless)).expect("the sizes are sound");
    let (reads, watches) = (Vec::new(), Vec::new());
    let mut bench = Bench { nic, now_ns: 0, wire_ready: true, reads, watches, asked: 0, answered: 0 };
    bench.set(beeline_spec::regs::CONTROL, 1);
    for (event, drain) in events {
        bench.happen(event);
        if drain {
            bench.drain();
        }
    }
    bench.drain();
});
