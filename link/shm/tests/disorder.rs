//! Real disorder: half a line and then a full one with non-temporal stores, so that the half line waits in a
//! write-combining buffer while the full one leaves. Every byte is always checked; how often the hardware reordered is
//! printed, and none at all is not a failure: it depends on the CPU, the hypervisor and luck.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use beeline_contract_device::{Accept, Device, DmaError, DmaTag, QueueId, ReadTag, SimTime, Want, Write};
use beeline_contract_memory::{Line, StorePort, forward_store_port, store_port_default};
use beeline_driver::{
    MmioConfig, Pending, Port, PortConfig as DriverConfig, PortState, Progress, Receive, RxRingConfig, Sent,
    Transmit,
};
use beeline_link_shm::{PortConfig, ShmLink, ShmOptions, Wire, Wired};
use beeline_mmio::StoreKernel;
use beeline_nic_model::{Nic, NicConfig};

const WATCHDOG: Duration = Duration::from_secs(60);
const FRAMES: u64 = 20_000;
const WINDOW_LINES: u32 = 256;
/// Spins between the full line and the rest of the half one, about a microsecond.
const PAUSE: u32 = 30;

/// Stores lines in pairs: half of the first, all of the second, the rest of the first. The order of the first two
/// stores is the program's; whoever sees the second without the first has seen the hardware reorder.
struct HalfThenFull<P> {
    port: P,
    half: Option<(u32, Line)>,
}

impl<P: StorePort> HalfThenFull<P> {
    fn rest(&mut self) {
        if let Some((line, words)) = self.half.take() {
            for word in 4..8 {
                self.port.store_word(line, word, words[word as usize]);
            }
        }
    }
}

impl<P: StorePort> StorePort for HalfThenFull<P> {
    fn lines(&self) -> u32 {
        self.port.lines()
    }

    fn store_line(&mut self, line: u32, words: &Line) {
        if self.half.is_some() {
            self.port.store_line(line, words);
            // Long enough for the full line to arrive, and for the half line to stay where it is, if it does.
            for _ in 0..PAUSE {
                std::hint::spin_loop();
            }
            self.rest();
        } else {
            for word in 0..4 {
                self.port.store_word(line, word, words[word as usize]);
            }
            self.half = Some((line, *words));
        }
    }

    fn store_word(&mut self, line: u32, word: u32, value: u64) {
        self.rest();
        self.port.store_word(line, word, value);
    }

    fn fence(&mut self) {
        self.rest();
        self.port.fence();
    }

    fn wake_receiver(&mut self) {
        self.rest();
        self.port.wake_receiver();
    }

    fn progress(&mut self) {
        self.rest();
        self.port.progress();
        self.port.wake_receiver();
    }

    store_port_default! { composed }
    forward_store_port! { |this| this.port; hints }
}

/// The NIC, and a note of what arrived in which order.
struct Watched {
    nic: Nic,
    window_offset: u64,
    /// Words that have arrived of each line, since it was last complete.
    arrived: Vec<u8>,
    /// Full lines that arrived while nothing of the half line stored before them had.
    reordered: u64,
    pairs: u64,
}

impl Device for Watched {
    fn write_arrived(&mut self, write: Write<'_>) -> Accept {
        let accept = self.nic.write_arrived(write);
        if write.offset_bytes >= self.window_offset && accept == Accept::Taken {
            let line = ((write.offset_bytes - self.window_offset) / 64) as usize % WINDOW_LINES as usize;
            let new =
                (0..8).filter(|word| write.enables.has(8 * word)).fold(0u8, |mask, word| mask | 1 << word);
            // Messages have two lines, so the first of a pair is the even one.
            if line % 2 == 1 && self.arrived[line] == 0 {
                self.pairs += 1;
                self.reordered += u64::from(self.arrived[line - 1] & 0xf == 0);
            }
            self.arrived[line] |= new;
            if line % 2 == 1 && self.arrived[line] == 0xff && self.arrived[line - 1] == 0xff {
                (self.arrived[line], self.arrived[line - 1]) = (0, 0);
            } else if line.is_multiple_of(2) && self.arrived[line] == 0xff && self.arrived[line + 1] == 0xff {
                (self.arrived[line], self.arrived[line + 1]) = (0, 0);
            }
        }
        accept
    }
    fn read_arrived(&mut self, offset_bytes: u64, tag: ReadTag) {
        self.nic.read_arrived(offset_bytes, tag);
    }
    fn dma_completed(&mut self, tag: DmaTag, data: Result<&[u8], DmaError>) {
        self.nic.dma_completed(tag, data);
    }
    fn frame_arrived(&mut self, frame: &[u8]) -> Accept {
        self.nic.frame_arrived(frame)
    }
    fn time_passed(&mut self, now: SimTime) {
        self.nic.time_passed(now);
    }
    fn wire_ready(&mut self, ready: bool) {
        self.nic.wire_ready(ready);
    }
    fn next(&mut self) -> Option<Want<'_>> {
        self.nic.next()
    }
    fn wake_at(&self) -> Option<SimTime> {
        self.nic.wake_at()
    }
}

struct Back;

impl Wire for Back {
    fn transmit(&mut self, _queue: QueueId, _frame: &[u8]) -> Wired {
        Wired::Back
    }
}

fn finish<T>(port: &mut Port<ShmLink>, mut pending: Pending<T>, begun: Instant) -> T {
    loop {
        port.poll(begun.elapsed().as_nanos() as u64).unwrap();
        match port.finish(pending).unwrap() {
            Progress::Done(value) => return value,
            Progress::Pending(more) => pending = more,
        }
        std::thread::yield_now();
    }
}

fn frame_of(number: u64, frame: &mut [u8]) {
    frame.fill(number as u8);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..22].copy_from_slice(&number.to_le_bytes());
}

fn run(kernel: StoreKernel) {
    let config = NicConfig { blank: true, queues: 2, window_lines: WINDOW_LINES, ..NicConfig::default() };
    let window_offset = config.aperture_bytes();
    let nic = Nic::new(config).unwrap();
    let watched =
        Watched { nic, window_offset, arrived: vec![0; WINDOW_LINES as usize], reordered: 0, pairs: 0 };
    let options = ShmOptions { kernel, ..ShmOptions::default() };
    let (link, mut device) = ShmLink::pair(watched, &PortConfig::default(), &options).unwrap();
    device.set_lossless(true);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let nic = std::thread::spawn(move || {
        let begun = Instant::now();
        let mut silent = 0;
        while !stopped.load(Ordering::Relaxed) {
            let any = device.poll().unwrap();
            device.drive(&mut Back);
            device.time_passed(SimTime::from_ns(begun.elapsed().as_nanos() as u64));
            silent = if any { 0 } else { silent + 1 };
            if silent > 1000 {
                std::thread::yield_now();
            }
        }
        device
    });
    let begun = Instant::now();
    let mut port = Port::new(link, DriverConfig::default());
    while port.poll(begun.elapsed().as_nanos() as u64).unwrap() != PortState::Ready {
        std::thread::yield_now();
    }
    let half = port.rx_ring(1, RxRingConfig::default()).unwrap();
    let pending = port.open(half);
    let mut rx = finish(&mut port, pending, begun);
    let wrap = |port, _| HalfThenFull { port, half: None };
    let half = port.mmio_behind(0, MmioConfig { random: 0x5eed, ..MmioConfig::default() }, wrap).unwrap();
    let pending = port.open(half);
    let mut tx = finish(&mut port, pending, begun);
    // With its header a frame of 100 bytes takes two lines.
    let (mut frame, mut expected, mut got) = (vec![0; 100], vec![0; 100], Vec::new());
    let (mut sent, mut received) = (0, 0);
    while received < FRAMES {
        frame_of(sent, &mut frame);
        if sent < FRAMES && tx.try_send(&frame).unwrap() == Sent::Sent {
            sent += 1;
        } else {
            tx.progress().unwrap();
            std::thread::yield_now();
        }
        while let Some(mut frame) = rx.poll().unwrap() {
            frame.copy_to(&mut got);
            frame_of(received, &mut expected);
            assert_eq!(got, expected, "frame {received} stored with {kernel}");
            received += 1;
        }
        assert!(begun.elapsed() < WATCHDOG, "{kernel}: {sent} sent, {received} received");
    }
    stop.store(true, Ordering::Relaxed);
    let device = nic.join().unwrap();
    let (link, watched) = (device.counters(), device.device());
    let counters = watched.nic.counters();
    assert_eq!(link.window_writes(), counters.tx_writes);
    assert!(watched.pairs >= FRAMES, "{} pairs", watched.pairs);
    println!(
        "{kernel:>12}: {FRAMES} frames; the hardware reordered {} times; {} arrivals ahead, {} split lines, \
         reorder depth {}",
        watched.reordered, link.ahead_writes, link.split_lines, counters.reorder_depth_max
    );
}

#[test]
fn bytes_are_right_whatever_the_hardware_reorders() {
    for kernel in StoreKernel::available() {
        run(kernel);
    }
}
