//! Programs of Debian as users start them, natively and with both ends by `beeline run`, in turn, each end on a core of its own.
//!
//! A round starts server and client anew, on a port and in a domain of their own, and ends both: so the CPU time is that of both ends and all their
//! children. What a client tells of its own latencies is kept by round. Windows carry what `beeline run --why` says. A program that is not installed is n/a.

mod cases;
mod client;
mod datagrams;
mod measured;
mod ping_pong;
mod round_trips;

pub use client::{ClientArgs, be_client};

use crate::figure::Row;
use crate::programs::{Ground, Share, Tools, Way};
use crate::{BenchError, Bound, Check, Failed, Figure, Missing, Report, Settings};
use cases::{CASES, Case};
use measured::{Measured, Place};

const BENCH: &str = "sockets-programs";
/// A round takes some seconds.
const MOST_ROUNDS: u32 = 5;
const LIBRARY: &str = "libbeeline_sockets.so";

/// The same case, one way.
#[derive(Default)]
struct Rounds {
    rates: Vec<f64>,
    cpu: Vec<Vec<f64>>,
    latencies: Vec<(&'static str, Vec<Vec<f64>>)>,
    share: Share,
}

/// Runs every case whose programs are installed. A case that fails is in the report.
///
/// # Errors
/// None: `beeline` that is not beside this program is in the report, too.
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let beside = |name: &str| settings.program.path().with_file_name(name);
    let tools = Tools { beeline: beside("beeline"), library: beside(LIBRARY) };
    let mut report = Report::default();
    if let Some(missing) = [&tools.beeline, &tools.library].into_iter().find(|path| !path.is_file()) {
        let why = format!("{} is not built: `make build`", missing.display());
        report.missing.push(Missing { bench: BENCH.to_owned(), name: "programs".to_owned(), why });
        return Ok(report);
    }
    let is_wanted = |case: &&Case| settings.only.as_ref().is_none_or(|only| case.name.contains(only));
    for case in CASES.iter().filter(is_wanted) {
        match not_installed(case) {
            Some(package) => report.missing.push(Missing {
                bench: BENCH.to_owned(),
                name: case.name.to_owned(),
                why: format!("`apt-get install {package}`"),
            }),
            // What the others measured stands.
            None => report.append(measure(case, settings, &tools).unwrap_or_else(|error| Report {
                failed: vec![Failed { bench: format!("{BENCH}: {}", case.name), why: error.to_string() }],
                ..Report::default()
            })),
        }
    }
    Ok(report)
}

fn not_installed(case: &Case) -> Option<&'static str> {
    let is_there = |program: &str| {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders)
            .chain(["/usr/sbin".into(), "/usr/lib".into()])
            .any(|folder| folder.join(program).exists())
    };
    case.needs.iter().find(|(program, _)| !is_there(program)).map(|(_, package)| *package)
}

fn measure(case: &Case, settings: &Settings, tools: &Tools) -> Result<Report, BenchError> {
    let ways = [Way::Native, case.way];
    let mut rounds = ways.map(|_| Rounds::default());
    for _ in 0..settings.rounds.min(MOST_ROUNDS) {
        for (way, rounds) in ways.into_iter().zip(&mut rounds) {
            let ground = Ground::new(way, tools)?;
            let place = Place { ground: &ground, cores: settings.cores, settings };
            rounds.add((case.run)(&place)?);
        }
    }
    let [native, ours] = rounds;
    let by_window = ours.share.by_window();
    let (native, ours) = (native.figures(case, "natively"), ours.figures(case, "by beeline run"));
    let (mut checks, is_waste) = (Vec::new(), case.rate_is_waste);
    let bound = if is_waste { Bound::Shown } else { Bound::AtLeast(case.least) };
    checks.push(Check::ratio(BENCH, &ours[0], &native[0], bound));
    let others = ours.iter().zip(&native).skip(1);
    checks.extend(others.map(|(ours, native)| Check::ratio(BENCH, ours, native, Bound::Shown)));
    let share = by_window.map_or("nothing was counted".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let notes = vec![format!("{BENCH}: {}: by windows {share}", case.name)];
    Ok(Report { figures: native.into_iter().chain(ours).collect(), checks, notes, ..Report::default() })
}

impl Rounds {
    fn add(&mut self, measured: Measured) {
        self.rates.push(measured.rate);
        self.cpu.push(vec![measured.cpu.as_nanos() as f64]);
        for (name, nanoseconds) in measured.latencies {
            match self.latencies.iter_mut().find(|(known, _)| *known == name) {
                Some((_, rounds)) => rounds.push(vec![nanoseconds]),
                None => self.latencies.push((name, vec![vec![nanoseconds]])),
            }
        }
        self.share += measured.share;
    }

    /// Figures of a case by one way: the rate, then the CPU time, then what the program says of its latencies.
    fn figures(self, case: &Case, way: &str) -> Vec<Figure> {
        let count = self.rates.len() as u64;
        let figure = |what: &str, make: &dyn Fn(Row<'_>) -> Figure| {
            let name = format!("{}{what}, {way}", case.name);
            make(Row { bench: BENCH, name: &name, kernel: "-", memory: "-", size_bytes: 0, count })
        };
        let mut figures = vec![
            figure("", &|row| Figure::rate(row, self.rates.clone())),
            figure(", CPU of both ends", &|row| Figure::delay(row, self.cpu.clone())),
        ];
        for (what, rounds) in &self.latencies {
            figures.push(figure(&format!(", {what}"), &|row| Figure::delay(row, rounds.clone())));
        }
        figures
    }
}
