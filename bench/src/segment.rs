//! What it takes to make a segment of 4 KiB and remove it, while a member in another process connects to it, maps it and stores into it.
//!
//! Each process measures its own part, and a sample is their sum: to make the segment available and to remove it there, and to connect,
//! map, store a byte, unmap and disconnect here. How long the processes take to tell each other whose turn it is does not count. The
//! floor is a page of a memfd, mapped, stored into and unmapped. Beside it, the check of a sequence and the barrier that it has to pass.

use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::Instant;

use beeline_fabric::{Call, Part, SequenceStart};
use beeline_fabric_process::{FabricMember, Sequence};
use beeline_mmio::fence::order_all;
use beeline_mmio::{MappedSegment, MemoryOptions, Pages, SegmentOptions, SharedMemory, cpu};
use beeline_session::{NicError, PrivateDomain, Role, TIMEOUT};
use clap::Args;

use crate::domain_args::DomainArgs;
use crate::fabric::{OWNER, USER, broken, call, connect, make_segment, member};
use crate::figure::Row;
use crate::{BenchError, Bound, Check, Figure, Latencies, Report, Settings};

const BENCH: &str = "segment";
/// The hidden subcommand that runs [`be_provider`].
const ROLE: &str = "provider";
const BYTES: usize = 4096;
/// Microseconds that half of the segments may take from the first call to the last.
const LIMIT_US: f64 = 100.0;
/// Segments of each path for a thousand round trips of other benches.
const SEGMENTS_A_THOUSAND: u64 = 40;
/// Segments before those that count: the first one meets the other process.
const WARM_UP: u64 = 20;
/// Checks that are timed together.
const CHECKS: u32 = 1000;

const PATHS: [&str; 4] =
    ["made, used and removed", "page of a memfd", "sequence, 1,000 checks", "1,000 barriers"];

/// Arguments that a provider is started with.
#[derive(Args, Clone, Debug)]
pub struct ProviderArgs {
    #[command(flatten)]
    domain: DomainArgs,
    /// Core to run on.
    #[arg(long)]
    core: usize,
}

fn unheard(what: &str) -> BenchError {
    BenchError::Fabric(what.to_owned())
}

/// Makes segments and removes them, and says how many nanoseconds each took; ends with its standard input.
///
/// # Errors
/// It cannot join, make a segment or talk.
pub fn be_provider(args: &ProviderArgs) -> Result<(), BenchError> {
    // With every thread that it starts. Where there is one core only, both processes share it.
    let _ = cpu::pin_current_thread(args.core);
    let member = member(args.domain.config(), OWNER)?;
    let mut output = std::io::stdout();
    let mut made = None;
    writeln!(output, "ready")?;
    output.flush()?;
    for line in std::io::stdin().lock().lines() {
        line?;
        let started = Instant::now();
        made = match made.take() {
            None => Some(make_segment(&member, BYTES)?),
            Some(local) => {
                call(&member, Call::RemoveSegment { local, is_forced: false })?;
                None
            }
        };
        writeln!(output, "{}", started.elapsed().as_nanos())?;
        output.flush()?;
    }
    Ok(())
}

/// This process, the other one, and the memory of the floor.
struct Bench {
    provider: Role,
    member: FabricMember,
    memory: SharedMemory,
    /// Where in `memory` nobody has been.
    fresh_bytes: u64,
    sequence: Option<(Sequence, SequenceStart)>,
}

impl Bench {
    fn start(settings: &Settings, private: &PrivateDomain) -> Result<Self, BenchError> {
        let mut command = settings.program.command(ROLE);
        DomainArgs::add_to(&mut command, private.config());
        command.args(["--core", &settings.cores.second.to_string()]);
        let mut provider = Role::start(&mut command)?;
        if provider.line_within(TIMEOUT)?.as_deref() != Some("ready") {
            return Err(unheard("it is not ready"));
        }
        let member = member(private.config().clone(), USER)?;
        let memory = SharedMemory::create("beeline-bench", 1 << 40, MemoryOptions::default())
            .map_err(|error| broken(&error))?;
        Ok(Bench { provider, member, memory, fresh_bytes: 0, sequence: None })
    }

    /// Has the other process do its next part; the nanoseconds that it took.
    fn theirs(&mut self) -> Result<f64, BenchError> {
        self.provider.tell("")?;
        let said = self.provider.line_within(TIMEOUT)?.unwrap_or_default();
        let nanos: u64 = said.parse().map_err(|_| unheard("the other process has ended"))?;
        Ok(nanos as f64)
    }

    fn segment(&mut self) -> Result<f64, BenchError> {
        let made = self.theirs()?;
        let started = Instant::now();
        let remote = connect(&self.member)?;
        let part = Part { offset: 0, bytes: BYTES as u64 };
        let map = self.member.map_remote(remote, part).map_err(|error| broken(&error))?;
        map.copy_in(0, &[1]).map_err(|error| broken(&error))?;
        drop(map);
        call(&self.member, Call::Disconnect(remote))?;
        let used = started.elapsed().as_nanos() as f64;
        Ok(made + used + self.theirs()?)
    }

    fn page(&mut self) -> Result<f64, BenchError> {
        let options = SegmentOptions {
            offset_bytes: self.fresh_bytes,
            bytes: Some(BYTES),
            pages: Pages::Lazy,
            ..SegmentOptions::default()
        };
        let started = Instant::now();
        let map = MappedSegment::memory(self.memory.fd(), &options).map_err(|error| broken(&error))?;
        map.copy_in(0, &[1]).map_err(|error| broken(&error))?;
        drop(map);
        let used = started.elapsed().as_nanos() as f64;
        self.memory.give_back(self.fresh_bytes as usize, BYTES).map_err(|error| broken(&error))?;
        self.fresh_bytes += BYTES as u64;
        Ok(used)
    }

    /// Nanoseconds of one segment, page, or a thousand checks or barriers.
    fn sample(&mut self, path: usize) -> Result<f64, BenchError> {
        match (path, &self.sequence) {
            (0, _) => self.segment(),
            (1, _) => self.page(),
            (2, Some((sequence, start))) => {
                let started = Instant::now();
                for _ in 0..CHECKS {
                    black_box(sequence.check(black_box(*start)));
                }
                Ok(started.elapsed().as_nanos() as f64)
            }
            _ => {
                let started = Instant::now();
                (0..CHECKS).for_each(|_| order_all());
                Ok(started.elapsed().as_nanos() as f64)
            }
        }
    }

    fn round(&mut self, path: usize, samples: u64) -> Result<Vec<f64>, BenchError> {
        // A sequence needs a segment that stays.
        let remote = if path == 2 {
            self.theirs()?;
            let remote = connect(&self.member)?;
            let sequence = self.member.sequence(remote).map_err(|error| broken(&error))?;
            let start = sequence.start().1.ok_or_else(|| unheard("a link is down"))?;
            self.sequence = Some((sequence, start));
            Some(remote)
        } else {
            None
        };
        let times = (0..samples).map(|_| self.sample(path)).collect::<Result<_, _>>()?;
        if let Some(remote) = remote {
            self.sequence = None;
            call(&self.member, Call::Disconnect(remote))?;
            self.theirs()?;
        }
        Ok(times)
    }
}

/// Runs every path, in turn within a round.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    cpu::pin_current_thread(settings.cores.first).ok();
    let private = PrivateDomain::new().map_err(NicError::Random)?;
    let mut bench = Bench::start(settings, &private)?;
    for _ in 0..WARM_UP {
        bench.segment()?;
    }
    let count = (settings.trips() / 1000 * SEGMENTS_A_THOUSAND).max(1);
    let mut latencies = [(); 4].map(|()| Latencies::new());
    for _ in 0..settings.rounds {
        for (path, latencies) in latencies.iter_mut().enumerate() {
            latencies.add_round(&bench.round(path, count)?);
        }
    }
    let mut paths = PATHS.into_iter();
    let figures = latencies.map(|latencies| {
        let (name, size_bytes) = (paths.next().unwrap_or_default(), BYTES as u32);
        Figure::latency(Row { bench: BENCH, name, kernel: "-", memory: "-", size_bytes, count }, latencies)
    });
    let [segment, page, checks, barriers] = &figures;
    let checks = vec![
        Check::middle(BENCH, segment, LIMIT_US),
        Check::ratio(BENCH, segment, page, Bound::Shown),
        Check::ratio(BENCH, checks, barriers, Bound::Shown),
    ];
    Ok(Report { figures: figures.into(), checks, ..Report::default() })
}
