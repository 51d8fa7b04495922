//! Segments of SISCI between two processes: round trips, a store until it is seen, streams, transfers by DMA; beside the same memory
//! without SISCI, and beside rivals that put into another process's memory.
//!
//! Our side is a program in C that links `libsisci.so` (`rivals/c/sisci.c`), as the programs are that SISCI is for. The floor is the
//! same loop of the same program over memory that both processes have mapped by themselves.

mod own;
mod page;
mod suite;
mod transfers;

use std::path::Path;

use beeline_bench_echo::Job;
use beeline_mmio::clock::Calibration;

use crate::echo::Pair;
use crate::figure::Row;
use crate::placed::Placed;
use crate::rivals::{self, Found, INTO_MEMORY, ON_ONE_MACHINE, Rival, STREAMS_INTO_MEMORY, Workshop};
use crate::{BenchError, Bound, Check, Figure, Latencies, Missing, Report, Settings};

use own::{Own, Runs};
pub use page::render;
pub use suite::run;

/// Bytes of a stream, as in `rivals/c/put.h`.
const STREAM_BYTES: usize = 256 << 10;
/// Messages of a burst, as in `rivals/c/put.h`.
const BURST_TRIPS: u64 = 100;
/// Round trips of a round for one stream.
const TRIPS_A_STREAM: u64 = 1000;
/// Of a message that makes as many trips a round as any.
const SMALL_BYTES: u64 = 4096;
/// Ours against the bare line: a round trip, and a store until it is seen.
const MOST_OF_BARE: f64 = 1.2;
const MOST_OF_BARE_SEEN: f64 = 1.1;

/// What a trip of a pair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One message, and mostly its answer.
    Message,
    /// [`BURST_TRIPS`] messages, each with its answer.
    Burst,
    /// Messages until [`STREAM_BYTES`] are full.
    Stream,
}

/// A rival, or ours, in some sizes.
#[derive(Clone, Copy, Debug)]
struct Entry<'a> {
    rival: Rival,
    kind: Kind,
    sizes: &'a [usize],
    /// What figures are called, in place of the rival's own name.
    prefix: &'a str,
}

impl Kind {
    /// Trips of a round, of as many as there are of small messages: large ones take long, and vary little.
    fn trips(self, most: u64, bytes: usize) -> u64 {
        match self {
            Kind::Message => (most * SMALL_BYTES / (bytes as u64).max(SMALL_BYTES)).max(3),
            Kind::Burst | Kind::Stream => most,
        }
    }
}

/// A running pair and what it took so far.
struct Running {
    pair: Pair,
    rival: Rival,
    kind: Kind,
    name: String,
    trips: u64,
    /// For each size, the times of all trips, or the rates of all rounds.
    taken: Vec<(usize, Latencies, Vec<f64>)>,
}

impl Running {
    fn round(&mut self, calibration: &Calibration) -> Result<(), BenchError> {
        for (bytes, latencies, rates) in &mut self.taken {
            let trips = self.kind.trips(self.trips, *bytes);
            let job = Job { bytes: *bytes, warm_up: trips.div_ceil(20), trips };
            let mut events: Vec<f64> =
                self.pair.run(job)?.into_iter().map(|ticks| calibration.to_ns(ticks)).collect();
            match self.kind {
                Kind::Message => latencies.add_round(&events),
                Kind::Burst => {
                    events.iter_mut().for_each(|event| *event /= BURST_TRIPS as f64);
                    latencies.add_round(&events);
                }
                Kind::Stream => {
                    events.sort_by(f64::total_cmp);
                    rates.push((STREAM_BYTES / *bytes) as f64 * 1e9 / events[events.len() / 2]);
                }
            }
        }
        Ok(())
    }

    fn figures(self, bench: &str) -> Result<Vec<Figure>, BenchError> {
        let Running { pair, rival, kind, name, trips, taken } = self;
        let figure = |(bytes, latencies, rates): (usize, Latencies, Vec<f64>)| {
            let name = format!("{name}, {bytes} B");
            let messages = match kind {
                Kind::Message => 1,
                Kind::Burst => BURST_TRIPS,
                Kind::Stream => (STREAM_BYTES / bytes) as u64,
            };
            let (size_bytes, count) = (bytes as u32, kind.trips(trips, bytes) * messages);
            let row = Row { bench, name: &name, kernel: "-", memory: rival.memory, size_bytes, count };
            match kind {
                Kind::Message | Kind::Burst => Figure::latency(row, latencies),
                Kind::Stream => Figure::rate(row, rates),
            }
        };
        pair.stop()?;
        Ok(taken.into_iter().map(figure).collect())
    }
}

/// Starts what is here of the entries, runs their rounds and those of programs of rivals in turns, and gives their figures in order.
fn measure(
    bench: &str,
    settings: &Settings,
    entries: &[Entry<'_>],
    programs: &[Own],
) -> Result<(Placed, Vec<Figure>, Vec<Missing>), BenchError> {
    let root = tempfile::Builder::new().prefix("beeline-bench-").tempdir()?;
    let workshop = Workshop::new(&settings.program)?;
    let (mut running, mut missing) = (Vec::new(), Vec::new());
    for entry in entries {
        match start(entry, &workshop, root.path(), settings)? {
            Ok(started) => running.push(started),
            Err(why) => {
                missing.push(Missing { bench: bench.to_owned(), name: title(entry), why });
            }
        }
    }
    let calibration = Calibration::measure();
    let mut programs: Vec<_> = programs.iter().map(Runs::of).collect();
    let placed = Placed::run(settings, || {
        programs.iter_mut().for_each(|program| program.round(settings));
        running.iter_mut().try_for_each(|one| one.round(&calibration))
    })?;
    let figures: Vec<_> = running.into_iter().map(|one| one.figures(bench)).collect::<Result<_, _>>()?;
    let mut figures = figures.concat();
    for program in programs {
        match program.figure(bench) {
            Ok(figure) => figures.push(figure),
            Err(why) => missing.push(why),
        }
    }
    Ok((placed, figures, missing))
}

fn title(entry: &Entry<'_>) -> String {
    format!("{}{}", entry.prefix, entry.rival.name)
}

/// The running pair, or why it cannot run here.
fn start(
    entry: &Entry<'_>,
    workshop: &Workshop,
    root: &Path,
    settings: &Settings,
) -> Result<Result<Running, String>, BenchError> {
    let launch = match workshop.find(&entry.rival)? {
        Found::Here(launch) => launch.env("BEELINE_ROOT", &root.display().to_string()),
        Found::Missing(why) => return Ok(Err(why)),
    };
    let pair = match Pair::start(&launch, settings.cores) {
        // It is installed, and this machine does not let it run; the other figures can still be had.
        Err(BenchError::Rival { what, .. }) => return Ok(Err(what)),
        started => started?,
    };
    let trips = match entry.kind {
        Kind::Message => settings.trips(),
        Kind::Burst => settings.trips() / BURST_TRIPS,
        Kind::Stream => settings.trips() / TRIPS_A_STREAM,
    };
    let trips = (trips / u64::from(entry.rival.slowness)).max(3);
    let taken = entry.sizes.iter().map(|bytes| (*bytes, Latencies::new(), Vec::new())).collect();
    Ok(Ok(Running { pair, rival: entry.rival, kind: entry.kind, name: title(entry), trips, taken }))
}

fn named<'f>(figures: &'f [Figure], name: &str) -> Option<&'f Figure> {
    figures.iter().find(|figure| figure.name == name)
}

/// Whether a figure is of a rival that does not ask the kernel.
fn is_rival(figure: &Figure) -> bool {
    ["UCX", "shm", "ucx_", "fi_"].iter().any(|part| figure.name.contains(part))
}

/// Whether a figure is of messages back to back, without the clock between them.
fn is_burst(figure: &Figure) -> bool {
    figure.name.contains("back to back")
        || figure.name.contains("its p50")
        || figure.name.contains("its mean")
}

/// 4 B, 8 B and 64 B through segments and back, one by one and back to back, a store until it is seen, and the rivals at 64 B.
///
/// # Errors
/// [`BenchError`]; a rival that is not installed is no error.
pub fn run_round_trips(settings: &Settings) -> Result<Report, BenchError> {
    const BENCH: &str = "segment-round-trip";
    let entry = |rival, sizes| Entry { rival, kind: Kind::Message, sizes, prefix: "" };
    let burst = |rival, sizes| Entry { rival, kind: Kind::Burst, sizes, prefix: "" };
    let mut entries = vec![
        entry(rivals::BY_STORES, &[4, 8, 64][..]),
        entry(rivals::BARE, &[4, 8, 64]),
        entry(rivals::BY_MEM_CPY, &[64]),
        entry(rivals::STORE_SEEN, &[8]),
        entry(rivals::BARE_SEEN, &[8]),
        burst(rivals::STORES_IN_BURSTS, &[4, 64]),
        burst(rivals::BARE_IN_BURSTS, &[4, 64]),
        burst(rivals::MEM_CPY_IN_BURSTS, &[64]),
        burst(rivals::PUTS_IN_BURSTS, &[64]),
    ];
    let messages =
        ON_ONE_MACHINE.iter().filter(|rival| rival.name.contains("UCX") || rival.name.contains("shm"));
    entries.extend(INTO_MEMORY.iter().chain(messages).map(|rival| entry(*rival, &[64])));
    let (placed, figures, missing) = measure(BENCH, settings, &entries, &own::ROUND_TRIPS)?;
    let report = placed.report(BENCH, &figures, |figures| checks_of_round_trips(BENCH, figures));
    Ok(Report { missing, ..report })
}

/// Ours against the bare line and against the rivals, those that have no clock between their messages against ours without it.
fn checks_of_round_trips(bench: &str, figures: &[Figure]) -> Vec<Check> {
    let against = |ours: &str, other: &str, bound| {
        Some(Check::ratio(bench, named(figures, ours)?, named(figures, other)?, bound))
    };
    let bare = [
        against("stores, 4 B", "bare line, 4 B", Bound::AtMost(MOST_OF_BARE)),
        against("stores, back to back, 4 B", "bare line, back to back, 4 B", Bound::AtMost(MOST_OF_BARE)),
        against("store until seen, 8 B", "bare line until seen, 8 B", Bound::AtMost(MOST_OF_BARE_SEEN)),
    ];
    let ahead = figures.iter().filter(|figure| is_rival(figure)).flat_map(|rival| {
        let back_to_back = if is_burst(rival) { ", back to back" } else { "" };
        [
            against(&format!("stores{back_to_back}, 64 B"), &rival.name, Bound::AtMost(1.0)),
            against(&format!("SCIMemCpy{back_to_back}, 64 B"), &rival.name, Bound::Shown),
        ]
    });
    bare.into_iter().chain(ahead).flatten().collect()
}

/// 64 B messages one behind the other into a segment, and the rivals.
///
/// # Errors
/// As [`run_round_trips`].
pub fn run_streams(settings: &Settings) -> Result<Report, BenchError> {
    const BENCH: &str = "segment-stream";
    let entry = |rival| Entry { rival, kind: Kind::Stream, sizes: &[64][..], prefix: "" };
    let ours = [rivals::STREAMS_BY_STORES, rivals::STREAMS_BY_MEM_CPY, rivals::BARE_STREAMS];
    let entries: Vec<_> = ours.iter().chain(STREAMS_INTO_MEMORY).map(|rival| entry(*rival)).collect();
    let (placed, figures, missing) = measure(BENCH, settings, &entries, &own::STREAMS)?;
    let checks = |figures: &[Figure]| {
        let ours = ["stores, 64 B", "SCIMemCpy, 64 B"].map(|name| named(figures, name));
        let others = figures.iter().filter(|figure| is_rival(figure) || figure.name.starts_with("bare"));
        let against = |other| {
            let bound = if is_rival(other) { Bound::AtLeast(1.0) } else { Bound::Shown };
            ours.iter().flatten().map(move |ours| Check::ratio(BENCH, ours, other, bound)).collect::<Vec<_>>()
        };
        others.flat_map(against).collect()
    };
    Ok(Report { missing, ..placed.report(BENCH, &figures, checks) })
}
