//! Stores into a window, by themselves: no driver and no NIC, as micro-benchmarks do it.

use beeline_contract_link::Link;
use beeline_contract_memory::StorePort;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{CoreId, CoreLink, Next, Pause, Sim, SimWindow};

use beeline_platforms::Kind;

use super::{Bench, WINDOW_LINES, aperture};
use crate::devices::{Seen, Sink};
use crate::{LabError, machine};

/// When the storing core fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fences {
    /// Never.
    None,
    /// After each message.
    PerMessage,
    /// After each line.
    PerLine,
}

/// A program that stores messages, one after the other, at addresses that go up through its window and begin anew.
struct Storer {
    window: SimWindow<Sink>,
    core: CoreId,
    /// What a call costs that copies and fences.
    call: Picoseconds,
    bytes: u64,
    fences: Fences,
    next_line: u32,
    stored: u64,
}

impl Storer {
    fn new(sim: &Sim<Sink>, core: CoreId, bytes: u64, fences: Fences) -> Result<Self, LabError> {
        let window = sim.link(core).window(core.0.into())?;
        Ok(Storer { window, core, call: Picoseconds::ZERO, bytes, fences, next_line: 0, stored: 0 })
    }

    fn store(&mut self) {
        let whole = self.bytes / 64;
        for _ in 0..whole {
            self.window.store_line(self.next_line, &[0x5a5a_5a5a_5a5a_5a5a; 8]);
            self.line_done();
        }
        let words = (self.bytes % 64).div_ceil(8);
        for word in 0..words {
            self.window.store_word(self.next_line, word as u32, 0x5a5a_5a5a_5a5a_5a5a);
        }
        if words > 0 {
            self.line_done();
        }
        if self.fences == Fences::PerMessage {
            self.window.fence();
        }
        self.stored += 1;
    }

    fn line_done(&mut self) {
        self.next_line = (self.next_line + 1) % WINDOW_LINES;
        if self.fences == Fences::PerLine {
            self.window.fence();
        }
    }
}

/// What the storing cores counted.
struct Storing {
    /// When core 0 had done the first counted message, and the last, and how many between.
    core: (Picoseconds, Picoseconds, u64),
    /// The same of writes that the device saw, in bytes.
    device: (Picoseconds, Picoseconds, u64),
    writes: u64,
}

impl Bench<'_> {
    fn sink(&self, cores: u16) -> Result<Sim<Sink>, LabError> {
        let settings = machine(self.platform, cores, aperture(cores), self.data)?;
        Ok(Sim::new(Sink::default(), settings, self.seed)?)
    }

    fn store_many(&self, bytes: u64, fences: Fences, cores: u16) -> Result<Storing, LabError> {
        let sim = self.sink(cores)?;
        let mut storers = Vec::new();
        for core in (0..cores).map(CoreId) {
            let mut storer = Storer::new(&sim, core, bytes, fences)?;
            if fences == Fences::PerMessage {
                storer.call = Picoseconds(self.platform.core.copy_call_ns.value.picoseconds());
            }
            storers.push(storer);
            sim.end_turn(core, Next::Again);
        }
        // Enough lines that buffers and queues are as full as they get, and a tenth of them to get there.
        let lines = bytes.div_ceil(64);
        let messages = (4000 / lines).clamp(20, 4000) * u64::from(cores);
        let warm_up = messages / 10;
        let mut out = Storing {
            core: (Picoseconds::ZERO, Picoseconds::ZERO, 0),
            device: (Picoseconds::ZERO, Picoseconds::ZERO, 0),
            writes: 0,
        };
        let mut done = 0;
        let warm_up_bytes = warm_up * bytes;
        let mut seen_bytes = 0;
        while let Some(Pause::Turn(core)) = sim.advance(Picoseconds::NEVER) {
            let storer = &mut storers[usize::from(core.0)];
            let clock = sim.with(|machine| machine.core_clock(core));
            if core.0 == 0 {
                if done <= warm_up {
                    out.core = (clock, clock, 0);
                } else {
                    out.core.1 = clock;
                    out.core.2 += 1;
                }
            }
            done += 1;
            let is_over = done > messages;
            if !is_over {
                sim.work(storer.core, storer.call);
                storer.store();
            }
            sim.end_turn(core, if is_over { Next::Never } else { Next::Again });
            note_seen(&sim, warm_up_bytes, &mut seen_bytes, &mut out);
        }
        note_seen(&sim, warm_up_bytes, &mut seen_bytes, &mut out);
        Ok(out)
    }

    /// ns from one whole line to the next at the device, one core storing without end.
    ///
    /// # Errors
    /// The platform makes no machine.
    pub fn line_interval_ns(&self) -> Result<f64, LabError> {
        let out = self.store_many(64, Fences::None, 1)?;
        Ok(span_ns(out.device.0, out.device.1) / out.writes as f64)
    }

    /// ns a message of a core that stores messages back to back.
    ///
    /// # Errors
    /// The platform makes no machine.
    pub fn store_time_ns(&self, bytes: u64, fences: Fences) -> Result<f64, LabError> {
        let out = self.store_many(bytes, fences, 1)?;
        Ok(span_ns(out.core.0, out.core.1) / out.core.2 as f64)
    }

    /// Gbit/s of payload that the device sees.
    ///
    /// # Errors
    /// The platform makes no machine.
    pub fn store_rate_gbps(&self, bytes: u64, fences: Fences, cores: u16) -> Result<f64, LabError> {
        let out = self.store_many(bytes, fences, cores)?;
        Ok(out.device.2 as f64 * 8.0 / span_ns(out.device.0, out.device.1))
    }

    /// ns from the first store of one message until its last byte is where the other side may use it: seen by the logic of a
    /// device, visible in the memory of a host.
    ///
    /// # Errors
    /// The platform makes no machine.
    pub fn write_latency_ns(&self, bytes: u64) -> Result<f64, LabError> {
        let sim = self.sink(1)?;
        // The last line leaves because it is full, or because a fence follows it.
        let fences = if bytes.is_multiple_of(64) { Fences::None } else { Fences::PerMessage };
        let mut storer = Storer::new(&sim, CoreId(0), bytes, fences)?;
        let begun = first_turn(&sim);
        storer.store();
        sim.end_turn(CoreId(0), Next::Never);
        while sim.advance(Picoseconds::NEVER).is_some() {}
        let mut last = begun;
        while let Some(Seen { at, .. }) = sim.with(|machine| machine.device().take()) {
            last = Picoseconds(at.0);
        }
        // Hosts are alike, so that the root complex at the far end is as the one here.
        let visible = match self.platform.kind {
            Kind::Ntb | Kind::Dma => self.platform.root_complex.write_visible_ns.value.nanoseconds(),
            Kind::Nic | Kind::Memory => 0.0,
        };
        Ok(span_ns(begun, last) + visible)
    }

    /// ns of one store, a fence, and a load of the same word across the link. The load pushes the store, and its answer is
    /// the acknowledgement: the fence costs what it costs by itself.
    ///
    /// # Errors
    /// The platform makes no machine.
    pub fn write_then_read_ns(&self) -> Result<f64, LabError> {
        self.loads_ns(8, |storer, sim| {
            storer.fences = Fences::None;
            storer.store();
            sim.work(CoreId(0), Picoseconds(self.platform.core.fence_ns.value.picoseconds()));
        })
    }

    /// ns of an uncached load of so many bytes, as many loads as it takes, one after the other.
    ///
    /// # Errors
    /// The platform makes no machine.
    pub fn read_round_trip_ns(&self, bytes: u64) -> Result<f64, LabError> {
        self.loads_ns(bytes, |_, _| {})
    }

    fn loads_ns(&self, bytes: u64, before: impl FnOnce(&mut Storer, &Sim<Sink>)) -> Result<f64, LabError> {
        let sim = self.sink(1)?;
        let core = CoreId(0);
        let mut storer = Storer::new(&sim, core, 8, Fences::PerMessage)?;
        let begun = first_turn(&sim);
        before(&mut storer, &sim);
        let mut link: CoreLink<Sink> = sim.link(core);
        let widest = u64::from(self.platform.core.uncached_load_bytes.value).max(8);
        for _ in 0..bytes.div_ceil(widest) {
            link.load(0, widest.min(64) as u32);
            sim.end_turn(core, Next::Again);
            if sim.advance(Picoseconds::NEVER).is_none() {
                return Err(LabError::Stuck { at: begun, done: 0, wanted: 1 });
            }
        }
        Ok(span_ns(begun, sim.with(|machine| machine.core_clock(core))))
    }

    /// Gbit/s of stores to write-combined memory of the host, which pass no link: those of the core alone.
    pub fn memory_store_gbps(&self) -> f64 {
        let core = &self.platform.core;
        f64::from(core.store_bytes.value) * 8.0 / core.store_ns.value.nanoseconds()
    }
}

/// Lets the program on core 0 begin.
fn first_turn(sim: &Sim<Sink>) -> Picoseconds {
    sim.end_turn(CoreId(0), Next::Again);
    sim.advance(Picoseconds::NEVER);
    sim.with(|machine| machine.core_clock(CoreId(0)))
}

fn span_ns(from: Picoseconds, to: Picoseconds) -> f64 {
    to.since(from).0 as f64 / 1000.0
}

fn note_seen(sim: &Sim<Sink>, warm_up_bytes: u64, seen_bytes: &mut u64, out: &mut Storing) {
    while let Some(seen) = sim.with(|machine| machine.device().take()) {
        let at = Picoseconds(seen.at.0);
        *seen_bytes += u64::from(seen.length_bytes);
        if *seen_bytes <= warm_up_bytes {
            out.device = (at, at, 0);
        } else {
            out.device.1 = at;
            out.device.2 += u64::from(seen.length_bytes);
            out.writes += 1;
        }
    }
}
