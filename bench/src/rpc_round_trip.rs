//! Request and response between two processes, both polling where they can, beside every rival this machine has.
//!
//! The client holds the clock, on the first core; the server sends each request's bytes back, on the second. Every
//! pair runs the same loop with the same clock (`beeline-bench-echo`), rounds alternate, and between its rounds a pair
//! sleeps. The floor is the bare copy between processes, of one line for 10 bytes and of the two lines that 100 bytes take.

use beeline_bench_echo::Job;
use beeline_mmio::clock::Calibration;

use crate::echo::{BARE_COPY, Launch, Pair, RPC};
use crate::figure::Row;
use crate::placed::Placed;
use crate::rivals::{Found, ON_ONE_MACHINE, Rival, Workshop};
use crate::{BenchError, Bound, Check, Figure, Latencies, Missing, Report, Settings};
use beeline_floor::MEMORY;

const BENCH: &str = "rpc-round-trip";
/// Bytes of a request and of its response.
pub(crate) const SIZES: [usize; 2] = [10, 100];
/// Our round trip against the bare copy of as many lines.
const FLOOR_RATIO: f64 = 1.5;
/// One in so many trips is added at the start of a round, not to be counted.
const WARM_UP: u64 = 20;

/// A running pair and what it took so far.
pub(crate) struct Contender {
    pair: Pair,
    memory: &'static str,
    trips: u64,
    latencies: [Latencies; SIZES.len()],
}

impl Contender {
    /// Starts both sides. A round makes `slowness` times fewer trips than the settings say.
    pub(crate) fn start(
        launch: &Launch,
        memory: &'static str,
        slowness: u32,
        settings: &Settings,
    ) -> Result<Self, BenchError> {
        let trips = (settings.trips() / u64::from(slowness)).max(1);
        let latencies = std::array::from_fn(|_| Latencies::new());
        Ok(Contender { pair: Pair::start(launch, settings.cores)?, memory, trips, latencies })
    }

    pub(crate) fn round(&mut self, size: usize, calibration: &Calibration) -> Result<(), BenchError> {
        let job = Job { bytes: SIZES[size], warm_up: self.trips.div_ceil(WARM_UP), trips: self.trips };
        let ticks = self.pair.run(job)?;
        let events: Vec<f64> = ticks.into_iter().map(|ticks| calibration.to_ns(ticks)).collect();
        self.latencies[size].add_round(&events);
        Ok(())
    }

    /// Ends both sides and gives a figure for each size.
    pub(crate) fn figures(self, bench: &str) -> Result<[Figure; SIZES.len()], BenchError> {
        let Contender { pair, memory, trips, latencies } = self;
        let mut sizes = SIZES.into_iter();
        let figures = latencies.map(|latencies| {
            let size = sizes.next().expect("there are as many sizes as latencies");
            let name = format!("{}, {size} B", pair.name());
            let row = Row { bench, name: &name, kernel: "-", memory, size_bytes: size as u32, count: trips };
            Figure::latency(row, latencies)
        });
        pair.stop()?;
        Ok(figures)
    }
}

/// Runs the rounds of these contenders, in turns.
pub(crate) fn alternate(contenders: &mut [Contender], settings: &Settings) -> Result<Placed, BenchError> {
    let calibration = Calibration::measure();
    Placed::run(settings, || {
        for size in 0..SIZES.len() {
            for contender in &mut *contenders {
                contender.round(size, &calibration)?;
            }
        }
        Ok(())
    })
}

/// Starts what is here of `rivals`, as `adapt` changes it; says of the others why not.
pub(crate) fn start_rivals(
    bench: &str,
    rivals: &[Rival],
    settings: &Settings,
    adapt: impl Fn(Launch) -> Launch,
) -> Result<(Vec<Contender>, Vec<Missing>), BenchError> {
    let workshop = Workshop::new(&settings.program)?;
    let (mut contenders, mut missing) = (Vec::new(), Vec::new());
    for rival in rivals {
        let started = match workshop.find(rival)? {
            Found::Missing(why) => Err(why),
            Found::Here(launch) => {
                match Contender::start(&adapt(launch), rival.memory, rival.slowness, settings) {
                    // It is installed, and this machine does not let it run; the other figures can still be had.
                    Err(BenchError::Rival { what, .. }) => Err(what),
                    started => Ok(started?),
                }
            }
        };
        match started {
            Ok(contender) => contenders.push(contender),
            Err(why) => missing.push(Missing { bench: bench.to_owned(), name: rival.name.to_owned(), why }),
        }
    }
    Ok((contenders, missing))
}

/// Runs our calls, the bare copy and every rival that is here.
///
/// # Errors
/// [`BenchError`]; a rival that is not installed is no error.
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let own = [("beeline RPC", RPC), ("bare copy", BARE_COPY)];
    let own = own.map(|(name, role)| {
        Contender::start(&Launch::role(name, &settings.program, role), MEMORY, 1, settings)
    });
    let mut contenders: Vec<_> = own.into_iter().collect::<Result<_, _>>()?;
    let (mut rivals, missing) = start_rivals(BENCH, ON_ONE_MACHINE, settings, |launch| launch)?;
    contenders.append(&mut rivals);
    let placed = alternate(&mut contenders, settings)?;
    let figures: Vec<_> = contenders.into_iter().map(|one| one.figures(BENCH)).collect::<Result<_, _>>()?;
    Ok(Report { missing, ..placed.report(BENCH, &figures.concat(), checks) })
}

/// Checks figures of all contenders, ours first and the floor second, each with all sizes.
fn checks(figures: &[Figure]) -> Vec<Check> {
    let (contenders, _) = figures.as_chunks::<{ SIZES.len() }>();
    let mut checks = Vec::new();
    for size in 0..SIZES.len() {
        let of_size: Vec<_> = contenders.iter().map(|sizes| &sizes[size]).collect();
        checks.extend(checks_of(&of_size));
    }
    // The floor as the glossary has it is one line; what two of them cost is no fault of ours.
    if let [[_, ours], [one_line, _], ..] = contenders {
        checks.push(Check::ratio(BENCH, ours, one_line, Bound::Shown));
    }
    checks
}

/// Checks the first figure against the second, the floor, and against each of the others, which it is to be ahead of.
fn checks_of(figures: &[&Figure]) -> Vec<Check> {
    let [ours, floor, rivals @ ..] = figures else { return Vec::new() };
    let ahead = rivals.iter().map(|rival| Check::ratio(BENCH, ours, rival, Bound::AtMost(1.0)));
    [Check::ratio(BENCH, ours, floor, Bound::AtMost(FLOOR_RATIO))].into_iter().chain(ahead).collect()
}
