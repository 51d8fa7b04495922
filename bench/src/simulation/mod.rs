//! How fast virtual time is, in real time: packets a second of the whole path (host half, write-combining buffers, root
//! complex, link, NIC) with unfenced frames of one line by `mmio`, of the link alone, and events a second of the calendar
//! alone; then two runs at once on two cores, as sweeps are made; and cocotbext-pcie, for context.
//!
//! Nothing here is a figure of a NIC. What a packet costs on the machine that is simulated is `lab`'s affair.

mod cocotb;
mod machine;

use std::time::Instant;

use beeline_driver::Choice;
use beeline_experiments::{Arrivals, NicShape, Run, Station, Traffic, model_nic};
use beeline_link_sim::des::{Calendar, Model, Picoseconds, run as run_model};
use beeline_link_sim::machine::Sim;
use beeline_link_sim::pcie::{Class, Kind, Link, LinkEvent, LinkId, Side, Tlp};
use beeline_spec::Interface;

use crate::figure::Row;
use crate::{BenchError, Bound, Check, Figure, Missing, Report, Settings};
use beeline_floor::on_core;
use cocotb::Cocotb;

const BENCH: &str = "simulation";

/// Millions of packets a second of the whole path on one core.
const LEAST_MILLIONS: f64 = 5.0;
/// A sweep over two cores is to take so much less time than over one.
const LEAST_OF_TWO: f64 = 1.8;

/// What stands beside ours for context.
const CONTEXT: &str = "packets, cocotbext-pcie";

/// Runs all of them.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let count = settings.stream_messages();
    let (mut whole, mut link, mut events, mut two) = (vec![], vec![], vec![], vec![]);
    let cores = settings.cores;
    for _ in 0..settings.rounds {
        whole.push(on_core::<_, BenchError>(cores.first, || whole_path(count))?);
        link.push(on_core::<_, BenchError>(cores.first, || link_alone(count))?);
        events.push(on_core::<_, BenchError>(cores.first, || Ok(events_alone(count)))?);
        two.push(at_once([cores.first, cores.second], count)?);
    }
    let row = |name| Row { bench: BENCH, name, kernel: "-", memory: "private", size_bytes: 64, count };
    let whole = Figure::rate(row("packets, whole path"), whole);
    let two = Figure::rate(row("packets, whole path, two runs on two cores"), two);
    let mut checks = vec![
        Check::rate(BENCH, &whole, LEAST_MILLIONS),
        Check::ratio(BENCH, &two, &whole, Bound::AtLeast(LEAST_OF_TWO)),
    ];
    let alone = [Figure::rate(row("packets, link alone"), link), Figure::rate(row("events alone"), events)];
    let mut missing = Vec::new();
    let context = match Cocotb::find() {
        Ok(cocotb) => {
            let figure = context(&cocotb, settings, row(CONTEXT))?;
            checks.push(Check::ratio(BENCH, &whole, &figure, Bound::Shown));
            Some(figure)
        }
        Err(why) => {
            missing.push(Missing { bench: BENCH.to_owned(), name: CONTEXT.to_owned(), why });
            None
        }
    };
    let figures = [whole, two].into_iter().chain(alone).chain(context).collect();
    Ok(Report { figures, checks, missing, ..Report::default() })
}

/// What cocotbext-pcie does beside us, on the same core (a process has the cores of who starts it) and in as many rounds.
fn context(cocotb: &Cocotb, settings: &Settings, row: Row<'_>) -> Result<Figure, BenchError> {
    let rate = |_| on_core::<_, BenchError>(settings.cores.first, || cocotb.rate(cocotb::WRITES));
    let rates = (0..settings.rounds).map(rate).collect::<Result<_, _>>()?;
    Ok(Figure::rate(Row { count: cocotb::WRITES, ..row }, rates))
}

/// Packets a second of a run on each of these cores, together.
fn at_once(cores: [usize; 2], frames: u64) -> Result<f64, BenchError> {
    std::thread::scope(|scope| {
        let runs =
            cores.map(|core| scope.spawn(move || on_core::<_, BenchError>(core, || whole_path(frames))));
        let mut sum = 0.0;
        for run in runs {
            sum += run.join().map_err(|_| beeline_floor::FloorError::Panicked("simulating"))??;
        }
        Ok(sum)
    })
}

/// Packets a second of real time, of both directions of the link.
fn whole_path(frames: u64) -> Result<f64, BenchError> {
    let failed = |what: String| BenchError::Simulation(what);
    let shape = NicShape::for_cores(1);
    let nic = model_nic(&shape).map_err(|error| failed(error.to_string()))?;
    let sim = Sim::new(nic, machine::settings(&shape)?, 1).map_err(|error| failed(error.to_string()))?;
    let mut station = Station::new(sim).map_err(|error| failed(error.to_string()))?;
    let run = Run {
        choice: Choice::of(Interface::Mmio, 7),
        traffic: Traffic { sizes: vec![56], frames, arrivals: Arrivals::Always { burst: 16 } },
        message: Picoseconds::ZERO,
        warm_up: 0,
        seed: 1,
    };
    let start = Instant::now();
    run.on(&mut station, 1).map_err(|error| failed(error.to_string()))?;
    let took = start.elapsed();
    let packets = station.sim.with(|machine| {
        let link = &machine.links()[0];
        let tlps = |side| link.carried(side).tlps.iter().map(|kind| kind.packets).sum::<u64>();
        tlps(Side::Upstream) + tlps(Side::Downstream)
    });
    Ok(beeline_floor::rate(packets, took))
}

/// Lines that follow each other over a link, each freed when it is there.
struct Lines {
    link: Link,
    arrived: u64,
}

impl Lines {
    const LINE: Tlp = Tlp::new(Kind::MemoryWrite, 1 << 40, 64);

    fn top_up(&mut self, calendar: &mut Calendar<LinkEvent>) {
        while self.link.waiting(Side::Upstream, Class::Posted) < 8 {
            let sent = self.link.send(Side::Upstream, Self::LINE, calendar);
            sent.expect("a line is a legal packet");
        }
    }
}

impl Model for Lines {
    type Event = LinkEvent;

    fn happen(&mut self, event: LinkEvent, calendar: &mut Calendar<LinkEvent>) {
        if let Some(arrival) = self.link.happen(event, calendar) {
            self.arrived += 1;
            self.link.free(arrival.side, &arrival.tlp, calendar);
            self.top_up(calendar);
        }
    }
}

/// Packets a second of real time.
fn link_alone(lines: u64) -> Result<f64, BenchError> {
    let link =
        Link::new(LinkId(0), machine::link()?).map_err(|error| BenchError::Simulation(error.to_string()))?;
    let (mut model, mut calendar) = (Lines { link, arrived: 0 }, Calendar::new());
    model.top_up(&mut calendar);
    // 88 bytes at 31.5 Gbyte/s are a line every 2.8 ns.
    let until = Picoseconds(lines * 2_800);
    let start = Instant::now();
    run_model(&mut model, &mut calendar, until);
    Ok(beeline_floor::rate(model.arrived, start.elapsed()))
}

/// Events that each schedule one more, as many at a time as a machine has.
struct Churn {
    state: u64,
}

impl Model for Churn {
    type Event = u64;

    fn happen(&mut self, event: u64, calendar: &mut Calendar<u64>) {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        calendar.schedule_in(Picoseconds(1 + self.state % 100_000), event);
    }
}

/// Events a second of real time.
fn events_alone(events: u64) -> f64 {
    const AT_A_TIME: u64 = 10;
    let mut calendar = Calendar::new();
    (0..AT_A_TIME).for_each(|event| calendar.schedule(Picoseconds(event), event));
    let mut model = Churn { state: 1 };
    let start = Instant::now();
    let happened = run_model(&mut model, &mut calendar, Picoseconds(events * 50_000 / AT_A_TIME));
    beeline_floor::rate(happened, start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_floor::rounds::Keep;

    #[test]
    fn every_part_is_measured() -> Result<(), BenchError> {
        let Ok(settings) = Settings::quick() else { return Ok(()) };
        let report = run(&Settings { rounds: 2, stream_thousands: 1, keep: Keep::All, ..settings })?;
        // The fifth is of cocotbext-pcie: there, or said to be missing.
        assert_eq!(report.figures.len() + report.missing.len(), 5);
        assert_eq!(report.checks.len() + report.missing.len(), 3);
        assert!(report.figures.iter().all(|figure| figure.rounds.iter().all(|rate| *rate > 0.0)));
        Ok(())
    }
}
