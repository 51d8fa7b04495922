//! What a device reads and writes by itself.

use beeline_contract_device::SimTime;
use beeline_contract_link::{DmaMemory, Link};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::device::Rate;
use beeline_link_sim::machine::{CoreId, Next, Sim};

use super::{Bench, aperture};
use crate::devices::{Engine, Job};
use crate::{Data, LabError, machine};

/// Which part of a device transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaEngine {
    /// Commands of a few words, straight to the link: no engine to start, no data path inside.
    Command,
    Bulk,
}

/// Direction of a DMA transfer, seen from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From host memory.
    Read,
    /// To host memory.
    Write,
    /// Both in turn; those of one direction count.
    ReadWrite,
}

/// Memory that transfers go through: it stays in a last-level cache.
const RANGE_BYTES: usize = 64 << 10;
/// Transfers whose latency is measured: without anything random all are alike.
const ROUND_TRIPS: u64 = 16;

impl Bench<'_> {
    fn engine(
        &self,
        part: DmaEngine,
        engine: Engine,
        range: usize,
        bytes: u64,
    ) -> Result<Sim<Engine>, LabError> {
        let mut settings = machine(self.platform, 1, aperture(1), self.data)?;
        if part == DmaEngine::Command {
            let device = &mut settings.device;
            device.read_start = Picoseconds::ZERO;
            device.read_finish = Picoseconds::ZERO;
            device.read_transfer = Picoseconds::ZERO;
            device.write_start = Picoseconds::ZERO;
            device.data_rate = Rate::UNLIMITED;
            device.shared_rate = Rate::UNLIMITED;
        }
        let sent = settings.device.write_start + settings.device.data_rate.time(bytes);
        let sim = Sim::new(engine, settings, self.seed)?;
        sim.with(|machine| machine.device().set_read_after(SimTime(sent.0)));
        let address = sim.link(CoreId(0)).memory(range)?.address();
        sim.with(|machine| machine.device().set_base(address));
        // A register write that means nothing: the device looks at the clock when it comes.
        sim.link(CoreId(0)).write_register(0, 0)?;
        sim.end_turn(CoreId(0), Next::Never);
        Ok(sim)
    }

    fn latency_ns(&self, part: DmaEngine, job: Job, bytes: u64) -> Result<f64, LabError> {
        let range = RANGE_BYTES.max(bytes as usize);
        let sim = self.engine(
            part,
            Engine::new(job, 0, range as u64, bytes as u32, ROUND_TRIPS, true),
            range,
            bytes,
        )?;
        while sim.advance(Picoseconds::NEVER).is_some() {}
        let round_trips = sim.with(|machine| std::mem::take(&mut machine.device().round_trips));
        let total: u64 = round_trips.iter().map(|time| time.0).sum();
        Ok(total as f64 / 1000.0 / round_trips.len().max(1) as f64)
    }

    /// ns of one read of the device, from the decision until the data are there.
    ///
    /// # Errors
    /// The platform makes no machine.
    pub fn dma_read_latency_ns(&self, part: DmaEngine, bytes: u64) -> Result<f64, LabError> {
        self.latency_ns(part, Job::Read, bytes)
    }

    /// ns of one write of the device and a read of the same place behind it. Wherever the data were, they are in the cache of
    /// the device's own socket then.
    ///
    /// # Errors
    /// The platform makes no machine.
    pub fn dma_write_read_latency_ns(&self, part: DmaEngine, bytes: u64) -> Result<f64, LabError> {
        let near = Bench { data: Data::default(), ..self.clone() };
        near.latency_ns(part, Job::WriteRead, bytes)
    }

    /// Gbit/s of transfers that the device wants all at once.
    ///
    /// # Errors
    /// The platform makes no machine.
    pub fn dma_rate_gbps(&self, direction: Direction, bytes: u64) -> Result<f64, LabError> {
        let job = match direction {
            Direction::Read => Job::Read,
            Direction::Write => Job::Write,
            Direction::ReadWrite => Job::ReadAndWrite,
        };
        let range = RANGE_BYTES.max(bytes as usize);
        let transfers = (4_000_000 / bytes.max(1)).clamp(1000, 20_000);
        let engine = Engine::new(job, 0, range as u64, bytes as u32, transfers, false);
        let sim = self.engine(DmaEngine::Bulk, engine, range, bytes)?;
        let moved = |sim: &Sim<Engine>| {
            sim.with(|machine| {
                let totals = machine.totals();
                match direction {
                    Direction::Write => totals.memory_written_bytes,
                    Direction::Read => machine.device().reads_done * bytes,
                    // In turn: the slower of the two sets the pace.
                    Direction::ReadWrite => {
                        totals.memory_written_bytes.min(machine.device().reads_done * bytes)
                    }
                }
            })
        };
        let wanted = if direction == Direction::ReadWrite { transfers / 2 } else { transfers } * bytes;
        // From a tenth to nine tenths, in steps that are short beside the run.
        let mut first = None;
        let step = Picoseconds::from_ns(50);
        loop {
            let until = sim.with(|machine| machine.now()) + step;
            sim.advance(until);
            let (done, now) = (moved(&sim), until);
            if done * 10 >= wanted && first.is_none() {
                first = Some((done, now));
            }
            if let Some((bytes_then, then)) = first
                && done * 10 >= wanted * 9
            {
                return Ok((done - bytes_then) as f64 * 8000.0 / now.since(then).0 as f64);
            }
            if now > Picoseconds::from_ns(1_000_000_000) {
                return Err(LabError::Stuck { at: now, done, wanted });
            }
        }
    }
}
