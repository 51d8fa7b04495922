//! The host half of an interface, and behind it the very RTL of the NIC, in this thread (`link/memory`).
//!
//! Each store is a write at the RTL's port, in the order in which the adversary lets it through; host memory answers DMA
//! at once. No time is measured: cycles of the RTL's clock are counted. `send.rs` carries a capture, `compare.rs` counts
//! what a frame costs by each interface.

mod compare;
mod send;

use std::path::Path;

use beeline_driver::{
    Choice, OnHalf, Pending, Port, PortConfig, PortError, PortState, Progress, QueueHalf, Stopped, Transmit,
};
use beeline_link_memory::{Aperture, MemoryLink};
use beeline_nic_rtl::{RtlConfig, RtlNic};
use beeline_session::NicError;
use beeline_spec::Interface;
use beeline_window::FencePolicy;

pub use compare::compare;
pub use send::send;

use crate::failure::Failure;

/// Turns without progress after which the device is taken for broken.
const MAX_IDLE_TURNS: u32 = 100_000;

/// The queue that transmits.
const QUEUE: u32 = 0;

/// Queues of the NIC that is built.
const QUEUES: u32 = 16;

/// Settings of the queue that transmits.
#[derive(Clone, Copy, Debug)]
pub struct QueueSettings {
    pub interface: Interface,
    pub fences: FencePolicy,
    /// Seed of the ordering adversary, if it is there.
    pub adversary: Option<u64>,
    /// Lines with which a frame of `mmio` may begin; 0: when all are there.
    pub cut_through_lines: u16,
}

/// A computation on an open queue.
trait Job {
    type Output;
    fn run<T: Transmit>(self, bench: &mut Bench, tx: &mut T) -> Result<Self::Output, Failure>;
}

/// A job, to be run when the half that was chosen has a queue.
struct Open<J>(J);

impl<J: Job> OnHalf<&mut Bench> for Open<J> {
    type Output = Result<J::Output, Failure>;

    fn run<T: Transmit + QueueHalf>(self, bench: &mut Bench, half: Stopped<T>) -> Self::Output {
        bench.run(half, self.0)
    }
}

/// A NIC and its port; what it transmits is kept.
struct Bench {
    link: MemoryLink<RtlNic>,
    port: Port<MemoryLink<RtlNic>>,
    now_ns: u64,
    /// Nanoseconds that pass in a step.
    step_ns: u64,
}

impl Bench {
    /// A NIC that has come up.
    fn new(seed: u64) -> Result<Self, Failure> {
        let config = RtlConfig::default();
        let nic = RtlNic::new(&config).map_err(|error| Failure::new("no RTL").because(error))?;
        let (offset_bytes, stride_bytes) = config.aperture();
        let window_lines = config.window_lines;
        let aperture = Aperture { offset_bytes, stride_bytes, window_lines, queues: QUEUES, is_blank: false };
        let link = MemoryLink::new(nic, aperture, seed);
        link.with_bus(|bus| bus.take_frames());
        let port = Port::new(link.clone(), PortConfig::default());
        let mut bench = Bench { link, port, now_ns: 0, step_ns: 1000 };
        for _ in 0..MAX_IDLE_TURNS {
            if bench.port.poll(bench.now_ns).map_err(NicError::Port)? == PortState::Ready {
                return Ok(bench);
            }
            bench.step()?;
        }
        Err(Failure::new("the NIC does not come up"))
    }

    /// Lets the device work and time pass.
    fn step(&mut self) -> Result<(), Failure> {
        self.now_ns += self.step_ns;
        self.link.pass(self.step_ns);
        self.port.poll(self.now_ns).map(|_| ()).map_err(|error| NicError::Port(error).into())
    }

    /// What the wire has seen since it was last asked.
    fn take_frames(&self) -> Vec<Vec<u8>> {
        self.link.with_bus(|bus| bus.take_frames())
    }

    /// Writes a wave dump from here on.
    fn trace(&mut self, path: &Path) -> Result<(), Failure> {
        let traced = self.link.with_bus(|bus| bus.device.trace(path));
        traced.map_err(|error| Failure::new(format!("no waves in {}", path.display())).because(error))
    }

    /// Cycles of the RTL's clock so far.
    fn cycles(&self) -> u64 {
        self.link.with_bus(|bus| bus.device.cycles())
    }

    /// Opens a queue of an interface and does a job with it.
    fn with_queue<J: Job>(&mut self, settings: QueueSettings, job: J) -> Result<J::Output, Failure> {
        let random = getrandom::u64().map_err(NicError::Random)?;
        let mut choice = Choice { adversary: settings.adversary, ..Choice::of(settings.interface, random) };
        choice.mmio.fence_policy = settings.fences;
        choice.mmio.cut_through_lines = settings.cut_through_lines;
        choice.half(self, |bench| &mut bench.port, QUEUE, Open(job)).map_err(NicError::Port)?
    }

    fn run<T: Transmit + QueueHalf, J: Job>(
        &mut self,
        queue: Stopped<T>,
        job: J,
    ) -> Result<J::Output, Failure> {
        let pending = self.port.open(queue);
        let mut tx = self.finish(pending)?;
        let output = job.run(self, &mut tx)?;
        if self.link.with_bus(|bus| bus.device.has_failed()) {
            return Err(Failure::new("an assertion of the RTL failed; it is printed above"));
        }
        Ok(output)
    }

    fn finish<T>(&mut self, mut pending: Pending<T>) -> Result<T, Failure> {
        for _ in 0..MAX_IDLE_TURNS {
            pending = match self.port.finish(pending).map_err(|error: PortError| NicError::Port(error))? {
                Progress::Done(value) => return Ok(value),
                Progress::Pending(pending) => pending,
            };
            self.step()?;
        }
        Err(Failure::new("the NIC does not start the queue"))
    }
}
