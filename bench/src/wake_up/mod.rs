//! One process tells another one that there is something to do, and is told so in turn: notifications of a domain beside a
//! pair of eventfds and a pair of Unix sockets that keep packets apart, polled and asleep.
//!
//! The side that asks is this process, on the first core, the other one a process on the second; all threads of a side share
//! its core, those of its domain too. The clock is read before one is sent and when its answer has been taken. How
//! many a second is one way: the other side takes all of them and says so once. An eventfd carries no bytes, and
//! several are taken as one count.

mod answering;
mod end;
mod interrupts;
mod meet;
mod role;

use std::time::Instant;

use beeline_bench_echo::{EchoClient, Failure, Job, round_trips};
use beeline_domain::DomainConfig;
use beeline_floor::{on_core, rate};
use beeline_mmio::clock::Calibration;

use crate::echo::{Launch, ServerHalf};
use crate::figure::Row;
use crate::placed::Placed;
use crate::{BenchError, Bound, Check, Figure, Latencies, Report, Settings};

use end::{End, send_one, take};
use meet::Meeting;
use role::{BYTES, Carrier, Waiting, Work};

pub(crate) use answering::Answering;
pub(crate) use role::Role;

const BENCH: &str = "notification";
const INTERRUPTS: &str = "interrupt";
/// A round makes so many times fewer trips than the settings say: one that sleeps takes as long as a hundred lines.
const POLLED_SLOWNESS: u64 = 20;
const ASLEEP_SLOWNESS: u64 = 100;
/// Likewise of those that are counted by the second.
const RATE_SLOWNESS: u64 = 5;

/// Both sides of one carrier, waited for in one way, and what they took so far.
struct Pair {
    name: String,
    role: Role,
    count: u64,
    // Fields are dropped in order: the end closes before its server is stopped.
    end: Option<Asking>,
    server: ServerHalf,
    latencies: Latencies,
    rates: Vec<f64>,
}

/// The side that asks.
struct Asking {
    end: Box<dyn End>,
    waiting: Waiting,
}

impl EchoClient for Asking {
    fn begin(&mut self, _: usize) -> Result<(), Failure> {
        Ok(())
    }

    fn trip(&mut self, request: &[u8], answer: &mut [u8]) -> Result<(), Failure> {
        // What carries no bytes leaves them as they are.
        answer.copy_from_slice(request);
        send_one(&mut *self.end, request)?;
        match take(&mut *self.end, self.waiting, answer)? {
            1 => Ok(()),
            more => Err(format!("{more} answers to one").into()),
        }
    }
}

impl Pair {
    fn start(role: Role, settings: &Settings) -> Result<Self, BenchError> {
        let Role { carrier, waiting, work } = role;
        let carrier_name = match carrier {
            Carrier::Notification => "notification",
            Carrier::EventFd => "eventfd pair",
            Carrier::SeqPacket => "seqpacket sockets",
            Carrier::Interrupt => "interrupt",
            Carrier::DataInterrupt => "data interrupt",
        };
        let how = match waiting {
            Waiting::Polled => "polled",
            Waiting::Asleep => "asleep",
            Waiting::Callback => "asleep, callback",
        };
        let slowness = match (work, waiting) {
            (Work::Take, _) => RATE_SLOWNESS,
            (Work::Echo, Waiting::Polled) => POLLED_SLOWNESS,
            (Work::Echo, _) => ASLEEP_SLOWNESS,
        };
        let name = format!("{carrier_name}, {how}");
        let launch = Launch::role(&name, &settings.program, &role.word());
        let mut server = ServerHalf::start(&launch, settings.cores.second)?;
        let count = (settings.trips() / slowness).max(1);
        let failed = |error: Failure| BenchError::Rival { rival: name.clone(), what: error.to_string() };
        let domain = DomainConfig::named(server.address().to_owned());
        let meet = Meeting::asking(&domain, role).map_err(failed)?;
        // Both are there once the server has begun.
        server.begin(Job { bytes: BYTES, warm_up: 0, trips: 1 })?;
        let mut asking = Asking { end: meet.end().map_err(failed)?, waiting };
        asking.trip(&[0; BYTES], &mut [0; BYTES]).map_err(failed)?;
        server.finish()?;
        let latencies = Latencies::new();
        Ok(Pair { name, role, count, end: Some(asking), server, latencies, rates: Vec::new() })
    }

    fn round(&mut self, calibration: &Calibration) -> Result<(), BenchError> {
        let job = Job { bytes: BYTES, warm_up: self.count.div_ceil(20), trips: self.count };
        let asking = self.end.as_mut().expect("an end is taken by the last figure only");
        let failed = |error: Failure| BenchError::Rival { rival: self.name.clone(), what: error.to_string() };
        match self.role.work {
            Work::Echo => {
                self.server.begin(job)?;
                let ticks = round_trips(asking, job).map_err(failed)?;
                let events: Vec<f64> = ticks.into_iter().map(|ticks| calibration.to_ns(ticks)).collect();
                self.latencies.add_round(&events);
            }
            Work::Take => {
                self.server.begin(Job { warm_up: 0, ..job })?;
                let started = Instant::now();
                let all = (0..self.count).try_for_each(|_| send_one(&mut *asking.end, &[0; BYTES]));
                all.and_then(|()| take(&mut *asking.end, asking.waiting, &mut [0; BYTES])).map_err(failed)?;
                self.rates.push(rate(self.count, started.elapsed()));
            }
        }
        self.server.finish()
    }

    fn figure(mut self, bench: &'static str) -> Result<Figure, BenchError> {
        drop(self.end.take());
        self.server.stop()?;
        let name = match self.role.work {
            Work::Echo => self.name,
            Work::Take => format!("{}, one way", self.name),
        };
        let has_bytes = !matches!(self.role.carrier, Carrier::EventFd | Carrier::Interrupt);
        let size_bytes = if has_bytes { BYTES as u32 } else { 0 };
        let (kernel, memory) =
            if self.role.is_interrupt() { ("cached", beeline_floor::MEMORY) } else { ("-", "kernel") };
        let row = Row { bench, name: &name, kernel, memory, size_bytes, count: self.count };
        Ok(match self.role.work {
            Work::Echo => Figure::latency(row, self.latencies),
            Work::Take => Figure::rate(row, self.rates),
        })
    }
}

/// Runs the bare line, and notifications and their rivals in every way of waiting.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let (figures, placed) = rounds(settings, BENCH, |role| !role.is_interrupt())?;
    Ok(placed.report(BENCH, &figures, checks))
}

/// Runs the bare line, and interrupts and eventfds, polled and asleep.
///
/// # Errors
/// [`BenchError`].
pub fn run_interrupts(settings: &Settings) -> Result<Report, BenchError> {
    let (figures, placed) = rounds(settings, INTERRUPTS, Role::is_beside_interrupts)?;
    Ok(placed.report(INTERRUPTS, &figures, interrupt_checks))
}

/// Rounds of the bare line and of these roles, by turns.
fn rounds(
    settings: &Settings,
    bench: &'static str,
    is_taken: fn(Role) -> bool,
) -> Result<(Vec<Figure>, Placed), BenchError> {
    on_core::<_, BenchError>(settings.cores.first, || {
        let roles = Role::all().filter(|role| is_taken(*role));
        let mut pairs = roles.map(|role| Pair::start(role, settings)).collect::<Result<Vec<_>, _>>()?;
        let (calibration, mut bare_line) = (Calibration::measure(), Latencies::new());
        let placed = Placed::run(settings, || {
            let trips =
                beeline_floor::bare_trips(settings.cores, settings.window_lines, settings.trips(), 0)?;
            bare_line.add_round(&trips);
            pairs.iter_mut().try_for_each(|pair| pair.round(&calibration))
        })?;
        let (memory, count) = (beeline_floor::MEMORY, settings.trips());
        let row = Row { bench, name: "bare line", kernel: "cached", memory, size_bytes: 64, count };
        let mut figures = vec![Figure::latency(row, bare_line)];
        for pair in pairs {
            figures.push(pair.figure(bench)?);
        }
        Ok((figures, placed))
    })
}

/// Interrupts against the bare line and the eventfds.
fn interrupt_checks(figures: &[Figure]) -> Vec<Check> {
    let named = |name: &str| figures.iter().find(|figure| figure.name == name);
    let pairs = ["interrupt", "data interrupt"].into_iter().flat_map(|ours| {
        let [polled, asleep] = ["polled", "asleep"].map(|how| format!("{ours}, {how}"));
        [
            (polled.clone(), "bare line", Bound::Shown),
            (polled, "eventfd pair, polled", Bound::AtMost(1.0)),
            (asleep, "eventfd pair, asleep", Bound::AtMost(1.2)),
        ]
    });
    let checks =
        pairs.map(|(ours, rival, bound)| Some(Check::ratio(INTERRUPTS, named(&ours)?, named(rival)?, bound)));
    checks.flatten().collect()
}

/// Notifications against the eventfds and the sockets that are waited for in the same way.
fn checks(figures: &[Figure]) -> Vec<Check> {
    let named = |name: &str| figures.iter().find(|figure| figure.name == name);
    let pairs = ["polled", "asleep", "polled, one way", "asleep, one way"].into_iter().flat_map(|how| {
        ["eventfd pair", "seqpacket sockets"]
            .map(|rival| Some((named(&format!("notification, {how}"))?, named(&format!("{rival}, {how}"))?)))
    });
    pairs.flatten().map(|(ours, rival)| Check::ratio(BENCH, ours, rival, Bound::Shown)).collect()
}
