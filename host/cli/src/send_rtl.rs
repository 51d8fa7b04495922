//! `beeline send --device rtl`: the host half of an interface, and behind it the very RTL of the NIC.
//!
//! Driver and device run in this thread (`link/memory`): each store is a write at the RTL's port, in the order in which the
//! adversary lets it through, and the RTL's clock runs until it has nothing more to say. No time is measured; cycles are
//! counted.

use beeline_bench::nic::NicError;
use beeline_driver::{
    MmioConfig, Pending, Port, PortConfig, PortError, PortState, Progress, QueueHalf, Sent, Stopped, Transmit,
};
use beeline_link_contract::Adversary;
use beeline_link_memory::{Aperture, MemoryLink};
use beeline_nic_rtl::{RtlConfig, RtlNic};
use beeline_nic_uplink::{Accept, PcapIn, PcapOut, Uplink};
use beeline_spec::Interface;
use indicatif::ProgressBar;

use crate::args::SendArgs;
use crate::failure::Failure;

/// Turns without progress after which the device is taken for broken.
const PATIENCE: u32 = 100_000;

/// The queue that transmits.
const QUEUE: u32 = 0;

/// A NIC, its port and where its wire ends.
struct Bench<'a> {
    link: MemoryLink<RtlNic>,
    port: Port<MemoryLink<RtlNic>>,
    now_ns: u64,
    wire: PcapOut,
    bar: &'a ProgressBar,
}

/// Sends a capture and keeps what the wire sees; the cycles that the RTL made.
pub fn send(args: &SendArgs, input: PcapIn, bar: &ProgressBar) -> Result<u64, Failure> {
    if args.interface != Interface::Mmio {
        return Err(Failure::new(format!("the NIC's RTL does not transmit by {} yet", args.interface))
            .remedy("--interface mmio, or --device model"));
    }
    let config = RtlConfig::default();
    let nic = RtlNic::new(&config).map_err(|error| Failure::new("no RTL").because(error))?;
    let (offset_bytes, stride_bytes) = config.aperture();
    let aperture = Aperture {
        offset_bytes,
        stride_bytes,
        window_lines: config.window_lines,
        queues: 16,
        is_blank: false,
    };
    let link = MemoryLink::new(nic, aperture, args.adversary.unwrap_or(0));
    link.with_bus(|bus| bus.take_frames());
    let wire = PcapOut::create(&args.out).map_err(|error| Failure::new("cannot write").because(error))?;
    let port = Port::new(link.clone(), PortConfig::default());
    let mut bench = Bench { link, port, now_ns: 0, wire, bar };
    bench
        .until("the NIC does not come up", |bench| Ok(bench.port.poll(bench.now_ns)? == PortState::Ready))?;

    let random = getrandom::u64().map_err(NicError::Random)?;
    let mmio = MmioConfig { random, fence_policy: args.fences.policy, ..MmioConfig::default() };
    match args.adversary {
        None => {
            let queue = bench.port.mmio(QUEUE, mmio).map_err(NicError::Port)?;
            bench.replay(queue, input)?;
        }
        Some(seed) => {
            let wrap = |window, tolerance| Adversary::new(window, tolerance, seed);
            let queue = bench.port.mmio_behind(QUEUE, mmio, wrap).map_err(NicError::Port)?;
            bench.replay(queue, input)?;
        }
    }
    let (cycles, has_failed) = bench.link.with_bus(|bus| (bus.device.cycles(), bus.device.has_failed()));
    if has_failed {
        return Err(Failure::new("an assertion of the RTL failed; it is printed above"));
    }
    bench.wire.flush().map_err(|error| Failure::new("cannot write").because(error))?;
    Ok(cycles)
}

impl Bench<'_> {
    /// Lets the device work and a microsecond pass; what the wire saw is written.
    fn step(&mut self) -> Result<(), Failure> {
        self.now_ns += 1000;
        self.link.pass(1000);
        self.port.poll(self.now_ns).map_err(NicError::Port)?;
        for frame in self.link.with_bus(|bus| bus.take_frames()) {
            match self.wire.send(&frame) {
                Ok(Accept::Taken) => self.bar.inc(1),
                Ok(Accept::Refused) => return Err(Failure::new("the capture takes no more frames")),
                Err(error) => return Err(Failure::new("cannot write what the wire saw").because(error)),
            }
        }
        Ok(())
    }

    fn until(
        &mut self,
        what: &str,
        mut is_done: impl FnMut(&mut Self) -> Result<bool, PortError>,
    ) -> Result<(), Failure> {
        for _ in 0..PATIENCE {
            if is_done(self).map_err(NicError::Port)? {
                return Ok(());
            }
            self.step()?;
        }
        Err(Failure::new(what))
    }

    fn finish<T>(&mut self, mut pending: Pending<T>) -> Result<T, Failure> {
        for _ in 0..PATIENCE {
            pending = match self.port.finish(pending).map_err(NicError::Port)? {
                Progress::Done(value) => return Ok(value),
                Progress::Pending(pending) => pending,
            };
            self.step()?;
        }
        Err(Failure::new("the NIC does not start the queue"))
    }

    fn replay<T: Transmit + QueueHalf>(
        &mut self,
        queue: Stopped<T>,
        mut input: PcapIn,
    ) -> Result<(), Failure> {
        let pending = self.port.open(queue);
        let mut tx = self.finish(pending)?;
        let mut frame = Vec::new();
        let failed = |error| Failure::new("the queue does not take a frame").because(error);
        while input.poll(&mut frame).map_err(|error| Failure::new("cannot use the capture").because(error))? {
            let mut left = PATIENCE;
            while tx.try_send(&frame).map_err(failed)? == Sent::Full {
                tx.progress().map_err(failed)?;
                self.step()?;
                left -= 1;
                if left == 0 {
                    return Err(Failure::new("the NIC frees no room"));
                }
            }
        }
        for _ in 0..PATIENCE {
            tx.progress().map_err(failed)?;
            if tx.is_idle() {
                return self.step();
            }
            self.step()?;
        }
        Err(Failure::new("the NIC does not transmit the last frames"))
    }
}
