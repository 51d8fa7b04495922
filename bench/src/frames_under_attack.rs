//! 64 B frames from one port of a NIC process to another, one at a time, with nobody else at work and under each attack by a
//! third port, in turn.
//!
//! The NIC's loop has the second core and both ports are this process's, on the first; the attacker runs where the system puts it, as
//! do the NIC's other threads. So there is more to do than two cores can, and frames wait for two reasons: their thread or
//! the loop waits for its core, which is the scheduler's doing, or the loop does the attacker's work first. The kernel counts
//! the time for which a thread was ready and had no core (`/proc/PID/task/TID/schedstat`). Frames are timed in blocks, and those of
//! blocks in which neither of the two threads waited so are a figure of their own: what is late there is late by the NIC.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use beeline_driver::Transmit;
use beeline_floor::{MEMORY, on_core};
use beeline_mmio::StoreKernel;
use beeline_mmio::clock::{Calibration, now_ticks};
use beeline_session::{Frames, Job, NicOptions, PrivateNic, Queue, Rx, Session, receive_one, send_one};
use beeline_spec::Interface;

use crate::attack::{Attack, Attacker};
use crate::figure::Row;
use crate::placed::Placed;
use crate::{BenchError, Bound, Check, Figure, Latencies, Report, Settings};

const BENCH: &str = "frames-under-attack";
const FRAME_BYTES: usize = 64;
/// Frames between two looks at what the kernel counts.
const BLOCK: usize = 16;
/// How long a round of a row looks for frames that had both cores.
const LONGEST_ROUND: Duration = Duration::from_millis(300);
/// Times of its p99 without an attack that a frame may take under one.
const MOST: f64 = 2.0;
const ATTACKS: [Attack; 3] = [Attack::Regions, Attack::Queues, Attack::Doorbells];

/// For how long a thread was ready to run and had no core.
struct Waited(File);

impl Waited {
    fn of(process: u32, thread: u32) -> Result<Self, BenchError> {
        Ok(Waited(File::open(format!("/proc/{process}/task/{thread}/schedstat"))?))
    }

    fn ns(&self) -> Result<u64, BenchError> {
        let mut text = [0; 96];
        let bytes = self.0.read_at(&mut text, 0)?;
        let second = std::str::from_utf8(&text[..bytes]).unwrap_or_default().split_ascii_whitespace().nth(1);
        second.and_then(|number| number.parse().ok()).ok_or_else(|| BenchError::Rival {
            rival: "this kernel".to_owned(),
            what: "does not count for how long threads wait for a core (CONFIG_SCHED_INFO)".to_owned(),
        })
    }
}

/// Times of one round.
#[derive(Default)]
struct Times {
    /// Of the first frames, whatever their threads waited for.
    all: Vec<f64>,
    /// Of blocks in which nobody waited for a core.
    on_core: Vec<f64>,
}

/// Times frames from one port to another.
struct Timed<'a> {
    to: &'a mut Session,
    waited: &'a [Waited; 2],
    calibration: Calibration,
    frames: usize,
}

/// The same, once the first port has its queue.
struct Crossed<'a, T> {
    from: (&'a mut Session, &'a mut T),
    waited: &'a [Waited; 2],
    calibration: Calibration,
    frames: usize,
}

impl Job for Timed<'_> {
    type Output = Times;
    type Error = BenchError;

    fn run<T: Transmit>(self, from: &mut Session, tx: &mut T, _: &mut Rx) -> Result<Times, BenchError> {
        let Timed { to, waited, calibration, frames } = self;
        to.with_queue(Queue::of(Interface::Mmio), Crossed { from: (from, tx), waited, calibration, frames })
    }
}

impl<A: Transmit> Job for Crossed<'_, A> {
    type Output = Times;
    type Error = BenchError;

    fn run<T: Transmit>(self, to: &mut Session, _: &mut T, rx: &mut Rx) -> Result<Times, BenchError> {
        let Crossed { from: (from, tx), waited, calibration, frames } = self;
        let mut sent = Frames::new(FRAME_BYTES, to.mac(), from.mac()).buffer();
        let (mut found, mut times, mut number) = (Vec::with_capacity(FRAME_BYTES), Times::default(), 0);
        let waited_ns = || -> Result<[u64; 2], BenchError> { Ok([waited[0].ns()?, waited[1].ns()?]) };
        let started = Instant::now();
        let is_short = |times: &Times| times.on_core.len() < frames && started.elapsed() < LONGEST_ROUND;
        while times.all.is_empty() || is_short(&times) {
            let before = waited_ns()?;
            let mut block = [0.0; BLOCK];
            for time in &mut block {
                Frames::number(&mut sent, number);
                let start = now_ticks();
                send_one(from, tx, &sent)?;
                let end = receive_one(to, rx, &mut found)?;
                Frames::check(&sent, &found, number)?;
                *time = calibration.to_ns(end - start);
                number += 1;
            }
            if number <= (frames / 10) as u64 {
                continue;
            }
            times.all.extend(block.iter().take(frames - times.all.len()));
            if waited_ns()? == before {
                times.on_core.extend_from_slice(&block);
            }
        }
        times.on_core.truncate(frames);
        Ok(times)
    }
}

/// One row of each kind: without an attack or under one.
struct Case {
    attacker: Option<Attacker>,
    all: Latencies,
    on_core: Latencies,
    /// Rounds in which too few frames had both cores.
    short: u32,
}

impl Case {
    fn new(attacker: Option<Attacker>) -> Self {
        Case { attacker, all: Latencies::new(), on_core: Latencies::new(), short: 0 }
    }

    fn name(&self) -> &'static str {
        self.attacker.as_ref().map_or("nobody else", |attacker| attacker.attack.name())
    }

    fn round(
        &mut self,
        frames: usize,
        measure: impl FnOnce() -> Result<Times, BenchError>,
    ) -> Result<(), BenchError> {
        let Times { all, on_core } = match &mut self.attacker {
            Some(attacker) => attacker.during(measure)?,
            None => measure()?,
        };
        self.short += u32::from(on_core.len() < frames);
        // Frames that did not have their cores are no better than those that did.
        let on_core = if on_core.is_empty() { &all } else { &on_core };
        // Each round counts as many events, so one with few on-core frames repeats them.
        let repeated = |times: &[f64]| times.iter().copied().cycle().take(frames).collect::<Vec<_>>();
        self.on_core.add_round(&repeated(on_core));
        self.all.add_round(&repeated(&all));
        Ok(())
    }

    /// How much of a row rests on few frames, and how much the attacker did meanwhile.
    fn note(&self) -> String {
        let (name, short) = (self.name(), self.short);
        let did = self.attacker.as_ref().map_or(0, |attacker| attacker.done);
        format!(
            "{BENCH}: {name}: {did} done; in {short} rounds few frames had both cores, and count several times"
        )
    }
}

/// Runs every attack.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    // Started here and not on the thread of the ports, whose core their threads would inherit.
    let options = NicOptions { spin: true, core: Some(settings.cores.second), ..NicOptions::default() };
    let nic = PrivateNic::start(&settings.program, &options)?;
    let mut cases = vec![Case::new(None)];
    for attack in ATTACKS {
        cases.push(Case::new(Some(Attacker::start(settings, nic.domain(), attack)?)));
    }
    let frames = settings.trips() as usize;
    let placed = on_core::<_, BenchError>(settings.cores.first, || {
        let options = nic.session_options(StoreKernel::Cached);
        let (mut from, mut to) = (Session::open(&options)?, Session::open(&options)?);
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let waited = [Waited::of(std::process::id(), thread)?, Waited::of(nic.pid(), nic.pid())?];
        let calibration = Calibration::measure();
        Placed::run(settings, || {
            cases.iter_mut().try_for_each(|case| {
                case.round(frames, || {
                    let job = Timed { to: &mut to, waited: &waited, calibration, frames };
                    from.with_queue(Queue::of(Interface::Mmio), job)
                })
            })
        })
    })?;
    let mut figures = Vec::new();
    for case in &cases {
        let row = |name| {
            let (size_bytes, count) = (FRAME_BYTES as u32, frames as u64);
            Row { bench: BENCH, name, kernel: "cached", memory: MEMORY, size_bytes, count }
        };
        figures.push(Figure::latency(row(case.name()), case.all.clone()));
        figures.push(Figure::latency(row(&format!("{}, cores had", case.name())), case.on_core.clone()));
    }
    let mut report = placed.report(BENCH, &figures, checks);
    report.notes.extend(cases.iter().map(Case::note));
    Ok(report)
}

/// The p99 under each attack against that without one: of all frames, and of those that had both cores.
fn checks(figures: &[Figure]) -> Vec<Check> {
    let (cases, _) = figures.as_chunks::<2>();
    let [[idle, idle_on_core], attacked @ ..] = cases else { return Vec::new() };
    let both = attacked.iter().flat_map(|[all, on_core]| {
        [
            Check::p99_ratio(BENCH, all, idle, Bound::Shown),
            Check::p99_ratio(BENCH, on_core, idle_on_core, Bound::AtMost(MOST)),
        ]
    });
    both.collect()
}
