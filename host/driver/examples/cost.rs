//! What a frame costs the sending core, interface by interface, when no device answers:
//! `cargo run --release -p beeline-driver --example cost [KERNEL]`.
//!
//! Windows and memory are private memory behind the real store kernels; the "device" has finished everything whenever
//! it is asked. So what is measured is the host half alone: packing, stores, descriptors, doorbells. Best of several
//! runs, in ns a frame. It is no measurement of a NIC: cache lines that another core takes are not in it.

use std::hint::black_box;
use std::time::Instant;

use beeline_contract_link::{Doorbell, Evidence, Link, LinkError, LinkKind, NoReads, RegisterRead};
use beeline_driver::{
    Batching, DescriptorConfig, KpioConfig, MmioConfig, Port, PortConfig, PortState, Progress, QueueHalf,
    Sent, Stopped, Transmit,
};
use beeline_mmio::{DmaRegion, Region, StoreKernel, StoreWindow, Word};
use beeline_spec::caps::Capabilities;
use beeline_spec::regs;

const WINDOW_LINES: u32 = 1024;

/// A device that is ready at once.
struct Null {
    registers: std::collections::HashMap<u32, u64>,
    kernel: StoreKernel,
    /// The first word of the region made last: the count of finished work.
    finished: Option<Word>,
}

struct Bell(Word);

impl Doorbell for Bell {
    #[inline]
    fn ring(&mut self, value: u64) {
        self.0.store_release(value);
    }
}

impl LinkKind for Null {
    const EVIDENCE: Evidence = Evidence::OneProcess;
}

impl Link for Null {
    type Window = StoreWindow;
    type Memory = DmaRegion;
    type Doorbell = Bell;
    type Reads = NoReads;
    fn window(&mut self, _: u32) -> Result<StoreWindow, LinkError> {
        Ok(Region::private(WINDOW_LINES as usize * 64).store_window(0, WINDOW_LINES, self.kernel))
    }
    fn memory(&mut self, bytes: usize) -> Result<DmaRegion, LinkError> {
        let region = Region::private(bytes.next_multiple_of(4096));
        self.finished = Some(region.word(0));
        Ok(region.dma_memory(0, bytes, 1 << 32))
    }
    fn doorbell(&mut self, _: u32) -> Result<Bell, LinkError> {
        Ok(Bell(Region::private(4096).word(0)))
    }
    fn write_register(&mut self, offset: u32, value: u64) -> Result<bool, LinkError> {
        self.registers.insert(offset, value);
        Ok(true)
    }
    fn start_read(&mut self, offset: u32) -> Result<Option<RegisterRead>, LinkError> {
        Ok(Some(RegisterRead((offset / 8) as u16)))
    }
    fn poll_read(&mut self, read: RegisterRead) -> Result<Option<u64>, LinkError> {
        let offset = u32::from(read.0) * 8;
        let mut caps = Vec::new();
        let sound = Capabilities {
            reorder_span_lines: Some(64),
            queues: Some(4),
            blank: Some(true),
            interfaces: Some(0xe),
            max_frame_bytes: Some(9216),
            ..Capabilities::default()
        };
        sound.write(|word| caps.push(word));
        let in_caps =
            offset.checked_sub(regs::CAPABILITIES).and_then(|at| caps.get(at as usize / 8)).copied();
        let in_queue = offset.saturating_sub(regs::QUEUE) % regs::QUEUE_STRIDE;
        Ok(Some(match offset {
            regs::MAGIC => u64::from_le_bytes(*b"BEELINE1"),
            regs::VERSION => 1,
            regs::CAPS => u64::from(regs::CAPABILITIES) | (caps.len() as u64 * 8) << 32,
            regs::STATUS => self.registers.get(&regs::CONTROL).copied().unwrap_or(0) & 1,
            _ if offset >= regs::QUEUE && in_queue == regs::queue::STATUS => 1 | 1 << 8,
            _ if offset >= regs::QUEUE => u64::from(WINDOW_LINES),
            _ => in_caps.unwrap_or(0),
        }))
    }
    fn is_device_gone(&self) -> bool {
        false
    }
}

fn open<H: QueueHalf>(port: &mut Port<Null>, half: Stopped<H>) -> H {
    let mut pending = port.open(half);
    loop {
        port.poll(0).expect("the null device is sound");
        pending = match port.finish(pending).expect("the null device is sound") {
            Progress::Done(half) => return half,
            Progress::Pending(pending) => pending,
        };
    }
}

/// Best ns a frame; `handed_over` says how much the queue has handed over, all of which is then finished.
fn measure<T: Transmit>(
    port: &mut Port<Null>,
    tx: &mut T,
    bytes: usize,
    burst: usize,
    handed_over: impl Fn(&T) -> u64,
) -> f64 {
    const FRAMES: u64 = 200_000;
    let finished = port.link().finished.clone().expect("a queue has memory");
    let data = vec![0x5a; bytes];
    let frames = vec![data.as_slice(); burst];
    let mut best = f64::MAX;
    for _ in 0..15 {
        let start = Instant::now();
        let mut sent = 0;
        while sent < FRAMES {
            let taken = if burst == 1 {
                u64::from(tx.try_send(black_box(&data)) == Ok(Sent::Sent))
            } else {
                tx.try_send_burst(black_box(&frames)).expect("a sound device").0 as u64
            };
            sent += taken;
            if taken < burst as u64 {
                finished.store(handed_over(tx));
            }
        }
        best = best.min(start.elapsed().as_nanos() as f64 / sent as f64);
    }
    best
}

fn main() {
    let kernel =
        std::env::args().nth(1).map_or(StoreKernel::Cached, |name| name.parse().expect("a store kernel"));
    let null = Null { registers: Default::default(), kernel, finished: None };
    let mut port = Port::new(null, PortConfig::default());
    while port.poll(0).expect("the null device is sound") != PortState::Ready {}
    println!("store kernel {kernel}\n{:<16} {:>6} {:>6} {:>9}", "interface", "bytes", "burst", "ns/frame");
    for bytes in [56, 60, 64, 200, 1514] {
        for burst in [1, 32] {
            let row = |name: &str, cost: f64| println!("{name:<16} {bytes:>6} {burst:>6} {cost:>9.1}");
            for (name, batching) in [("mmio", Batching::OFF), ("mmio, batches", Batching::default())] {
                let half =
                    port.mmio(0, MmioConfig { batching, ..MmioConfig::default() }).expect("a sound setting");
                let mut tx = open(&mut port, half);
                row(name, measure(&mut port, &mut tx, bytes, burst, |tx| tx.writer().position().0));
            }
            let half = port.kpio(0, KpioConfig::default()).expect("a sound setting");
            let mut tx = open(&mut port, half);
            row("kpio", measure(&mut port, &mut tx, bytes, burst, |tx| tx.stored_lines()));
            let half = port.descriptor(0, DescriptorConfig::default()).expect("a sound setting");
            let mut tx = open(&mut port, half);
            row("descriptor", measure(&mut port, &mut tx, bytes, burst, |tx| tx.posted()));
        }
    }
}
