//! One thread that waits for 1 window, 16, 256 and 1,000: what the others cost when one of them has messages, and when all have.
//!
//! A set of receivers is polled, or waited for by one descriptor; windows that have a descriptor each stand in an epoll set. Beside
//! them eventfds and packet sockets in an epoll set. The two sides are threads on a core each, with a domain of their own
//! whose thread shares that core; all windows are over one connection, as those of one peer are.
//!
//! A latency is from the call that sends to the sender's look at a count that the other side stores when it has taken the message;
//! then the next one is sent at once, so a waiter's way back to sleep is part of it. A rate is one way.

mod rivals;
mod way;
mod windows;

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use beeline_floor::{Cores, Sides, rate};
use beeline_mmio::clock::{self, Calibration};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::figure::Row;
use crate::placed::Placed;
use crate::{BenchError, Bound, Check, Figure, Latencies, Report, Settings};

use way::Rig;
use windows::Wait;

const BENCH: &str = "waiter";
/// Numbers of windows.
const COUNTS: [usize; 4] = [1, 16, 256, 1000];
/// A round makes so many times fewer trips than the settings say.
const POLLED_SLOWNESS: u64 = 20;
const ASLEEP_SLOWNESS: u64 = 200;
/// Likewise of messages that are counted by the second.
const RATE_SLOWNESS: u64 = 5;
/// Coprime to all numbers of windows, so that steps of it visit each of them.
const STEP: u64 = 617;

/// What is waited for, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Windows(Wait),
    EventFds,
    Sockets,
}

const WAYS: [Way; 5] = [
    Way::Windows(Wait::Polled),
    Way::Windows(Wait::Asleep),
    Way::Windows(Wait::Epoll),
    Way::EventFds,
    Way::Sockets,
];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Windows(Wait::Polled) => "set polled",
            Way::Windows(Wait::Asleep) => "set asleep",
            Way::Windows(Wait::Epoll) => "epoll windows",
            Way::EventFds => "epoll eventfds",
            Way::Sockets => "epoll sockets",
        }
    }

    fn rig(self, cores: Cores, count: usize) -> Result<Rig, BenchError> {
        match self {
            Way::Windows(wait) => windows::windows(cores, count, wait),
            Way::EventFds => rivals::eventfds(count),
            Way::Sockets => rivals::sockets(count),
        }
    }
}

/// Which of them have messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    One,
    All,
}

impl Traffic {
    fn name(self) -> &'static str {
        match self {
            Traffic::One => "one busy",
            Traffic::All => "all busy",
        }
    }

    fn number(self, stamp: u64, count: usize) -> usize {
        match self {
            Traffic::One => count / 2,
            Traffic::All => (stamp * STEP % count as u64) as usize,
        }
    }
}

/// A way with so many windows, and what it took so far.
struct Contender {
    way: Way,
    count: usize,
    rig: Rig,
    rows: Vec<Measured>,
}

/// One row of a contender.
struct Measured {
    traffic: Traffic,
    messages: u64,
    kind: Kind,
}

enum Kind {
    Latency(Latencies),
    Rate(Vec<f64>),
}

impl Contender {
    fn prepare(way: Way, count: usize, settings: &Settings) -> Result<Self, BenchError> {
        let slowness = if way == Way::Windows(Wait::Polled) { POLLED_SLOWNESS } else { ASLEEP_SLOWNESS };
        let traffic: &[_] = if count == 1 { &[Traffic::All] } else { &[Traffic::One, Traffic::All] };
        let mut rows = Vec::new();
        for traffic in traffic.iter().copied() {
            let messages = (settings.trips() / slowness).max(1);
            rows.push(Measured { traffic, messages, kind: Kind::Latency(Latencies::new()) });
            if count == COUNTS[0] || count == COUNTS[COUNTS.len() - 1] {
                let messages = (settings.trips() / RATE_SLOWNESS).max(1);
                rows.push(Measured { traffic, messages, kind: Kind::Rate(Vec::new()) });
            }
        }
        let mut rig = way.rig(settings.cores, count)?;
        // Each is met once, so that no page and no path is new when the first round begins.
        let warm = trips(&mut rig, settings.cores, Traffic::All, count, 2 * count as u64)?;
        debug_assert_eq!(warm.len(), 2 * count);
        Ok(Contender { way, count, rig, rows })
    }

    fn round(&mut self, cores: Cores, calibration: &Calibration) -> Result<(), BenchError> {
        for Measured { traffic, messages, kind } in &mut self.rows {
            match kind {
                Kind::Latency(latencies) => {
                    let ticks = trips(&mut self.rig, cores, *traffic, self.count, *messages)?;
                    let events: Vec<f64> = ticks.into_iter().map(|ticks| calibration.to_ns(ticks)).collect();
                    latencies.add_round(&events);
                }
                Kind::Rate(rates) => {
                    rates.push(one_way(&mut self.rig, cores, *traffic, self.count, *messages)?);
                }
            }
        }
        Ok(())
    }

    fn figures(self) -> Vec<Figure> {
        let Contender { way, count, rig, rows } = self;
        drop(rig);
        let memory = if matches!(way, Way::Windows(_)) { beeline_floor::MEMORY } else { "kernel" };
        let figure = |Measured { traffic, messages, kind }: Measured| {
            let traffic = if count == 1 { String::new() } else { format!(", {}", traffic.name()) };
            let name = format!("{} of {count}{traffic}", way.name());
            let kernel = if matches!(way, Way::Windows(_)) { "cached" } else { "-" };
            let row = |name| Row { bench: BENCH, name, kernel, memory, size_bytes: 64, count: messages };
            match kind {
                Kind::Latency(latencies) => Figure::latency(row(&name), latencies),
                Kind::Rate(rates) => Figure::rate(row(&format!("{name}, one way")), rates),
            }
        };
        rows.into_iter().map(figure).collect()
    }
}

/// Ticks of so many messages, one at a time.
fn trips(
    rig: &mut Rig,
    cores: Cores,
    traffic: Traffic,
    count: usize,
    trips: u64,
) -> Result<Vec<u64>, BenchError> {
    let (Rig { sends, waits }, taken) = (rig, &AtomicU64::new(0));
    let both = Sides::run::<BenchError>(
        cores,
        move |start| {
            let mut ticks = Vec::with_capacity(trips as usize);
            start.wait();
            for stamp in 1..=trips {
                let number = traffic.number(stamp, count);
                let sent = clock::now_ticks();
                while !sends.try_send(number, stamp)? {
                    spin_loop();
                }
                // Acquire: pairs with the store of the other side, so that a message is not sent while one is taken.
                while taken.load(Ordering::Acquire) < stamp {
                    if start.is_over() {
                        return Ok(ticks);
                    }
                    spin_loop();
                }
                ticks.push(clock::now_ticks() - sent);
            }
            Ok(ticks)
        },
        move |start| {
            start.wait();
            let mut all = 0;
            while all < trips && !start.is_over() {
                all += waits.take()?;
                // Release: pairs with the load of the other side.
                taken.store(all, Ordering::Release);
            }
            Ok(())
        },
    )?;
    Ok(both.first)
}

/// Messages a second, sent as fast as there is room.
fn one_way(
    rig: &mut Rig,
    cores: Cores,
    traffic: Traffic,
    count: usize,
    messages: u64,
) -> Result<f64, BenchError> {
    let Rig { sends, waits } = rig;
    let both = Sides::run::<BenchError>(
        cores,
        move |start| {
            let started = start.wait();
            for stamp in 1..=messages {
                while !sends.try_send(traffic.number(stamp, count), stamp)? {
                    if start.is_over() {
                        return Ok(started);
                    }
                    spin_loop();
                }
            }
            Ok(started)
        },
        move |start| {
            start.wait();
            let mut all = 0;
            while all < messages && !start.is_over() {
                all += waits.take()?;
            }
            Ok(Instant::now())
        },
    )?;
    Ok(rate(messages, both.second - both.first))
}

/// Allows this process as many descriptors as it may have: a thousand of a kind are more than the usual limit.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // What is refused shows when a descriptor is missing.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Runs every way with every number of windows.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    raise_descriptor_limit();
    let mut contenders = Vec::new();
    for way in WAYS {
        for count in COUNTS {
            contenders.push(Contender::prepare(way, count, settings)?);
        }
    }
    let calibration = Calibration::measure();
    let placed = Placed::run(settings, || {
        contenders.iter_mut().try_for_each(|contender| contender.round(settings.cores, &calibration))
    })?;
    let figures: Vec<_> = contenders.into_iter().flat_map(Contender::figures).collect();
    Ok(placed.report(BENCH, &figures, checks))
}

/// A thousand against one, of every way and kind of traffic.
fn checks(figures: &[Figure]) -> Vec<Check> {
    let named = |name: String| figures.iter().find(|figure| figure.name == name);
    let mut checks = Vec::new();
    for way in WAYS {
        for kind in ["", ", one way"] {
            let Some(one) = named(format!("{} of 1{kind}", way.name())) else { continue };
            for traffic in [Traffic::One, Traffic::All] {
                let many = named(format!("{} of 1000, {}{kind}", way.name(), traffic.name()));
                checks.extend(many.map(|many| Check::ratio(BENCH, many, one, Bound::Shown)));
            }
        }
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_floor::rounds::Keep;

    #[test]
    fn every_window_is_visited_whatever_their_number() {
        for count in COUNTS {
            let mut visited: Vec<_> =
                (0..count as u64).map(|stamp| Traffic::All.number(stamp, count)).collect();
            visited.sort_unstable();
            assert!(visited.into_iter().eq(0..count));
        }
    }

    #[test]
    fn messages_of_many_windows_are_taken_in_every_way() -> Result<(), BenchError> {
        let Ok(settings) = Settings::quick() else { return Ok(()) };
        let report = run(&Settings { rounds: 1, trip_thousands: 1, keep: Keep::All, ..settings })?;
        // Of each way: latencies of 1 and of three numbers with two kinds of traffic, rates of 1 and of the most.
        assert_eq!(report.figures.len(), WAYS.len() * (1 + 3 * 2 + 1 + 2));
        assert_eq!(report.checks.len(), WAYS.len() * 4);
        Ok(())
    }
}
