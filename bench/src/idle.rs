//! One pass over many windows that are all quiet: what it costs to find nothing.
//!
//! The floor is a bare loop that loads one word of each window, the one that its next message begins with. All windows begin at a
//! page, so these words compete for a few sets of the caches, as they do in a server whose clients have connected and not sent.
//! One core; nobody sends.

use std::hint::black_box;

use beeline_contract_memory::LoadPort;
use beeline_floor::{LocalCredits, MEMORY, WindowMemory, on_core};
use beeline_mmio::clock::{self, Calibration};
use beeline_mmio::{LoadWindow, StoreKernel};
use beeline_window::{Receiver, ReceiverSet};

use crate::figure::Row;
use crate::{BenchError, Bound, Check, Figure, LINE_PAYLOAD_BYTES, Latencies, Report, Settings};

const BENCH: &str = "window-idle";
/// Numbers of windows that a pass is measured with.
const COUNTS: [usize; 3] = [16, 256, 1000];
const LINES: u32 = 256;
/// Messages that a set takes of one window at a time; none come.
const BURST: usize = 16;
/// A round has so many times fewer passes than the settings have trips.
const SLOWNESS: u64 = 100;

/// As many windows, with what looks at them in a pass.
enum Windows {
    Bare(Vec<LoadWindow>, u64),
    InTurn(Vec<Receiver<LoadWindow, LocalCredits>>),
    Set(ReceiverSet<LoadWindow, LocalCredits>),
}

/// What looks at windows, the floor first and the set last.
const WAYS: [fn(&[WindowMemory]) -> Windows; 3] = [Windows::bare, Windows::in_turn, Windows::set];

fn receiver(memory: &WindowMemory) -> Receiver<LoadWindow, LocalCredits> {
    memory.receiver(StoreKernel::Cached)
}

impl Windows {
    fn bare(memories: &[WindowMemory]) -> Self {
        let ports: Vec<_> = memories.iter().map(WindowMemory::load_window).collect();
        let blank = ports[0].load_word(0, 0);
        Windows::Bare(ports, blank)
    }

    fn in_turn(memories: &[WindowMemory]) -> Self {
        Windows::InTurn(memories.iter().map(receiver).collect())
    }

    fn set(memories: &[WindowMemory]) -> Self {
        let mut set = ReceiverSet::new(BURST);
        memories.iter().map(receiver).for_each(|receiver| {
            set.insert(receiver);
        });
        Windows::Set(set)
    }

    fn name(&self) -> &'static str {
        match self {
            Windows::Bare(..) => "bare loads",
            Windows::InTurn(_) => "receivers in turn",
            Windows::Set(_) => "set",
        }
    }

    /// Returns how many windows have something.
    fn pass(&mut self) -> Result<usize, BenchError> {
        match self {
            Windows::Bare(ports, blank) => {
                let blank = *blank;
                Ok(ports.iter().filter(|port| port.load_word(0, 0) != blank).count())
            }
            Windows::InTurn(receivers) => {
                let mut taken = 0;
                for receiver in receivers {
                    taken += receiver.drain(BURST, |_| {})?;
                }
                Ok(taken)
            }
            Windows::Set(set) => set.drain(usize::MAX, |_, _| {}).map_err(|error| error.error.into()),
        }
    }
}

struct Contender {
    windows: Windows,
    count: usize,
    latencies: Latencies,
}

impl Contender {
    fn new(way: fn(&[WindowMemory]) -> Windows, count: usize) -> Result<Self, BenchError> {
        let memories = (0..count).map(|_| WindowMemory::new(LINES)).collect::<Result<Vec<_>, _>>()?;
        Ok(Contender { windows: way(&memories), count, latencies: Latencies::new() })
    }

    fn round(&mut self, passes: u64, calibration: &Calibration) -> Result<(), BenchError> {
        let mut events = Vec::with_capacity(passes as usize);
        for _ in 0..passes {
            let started = clock::now_ticks();
            black_box(self.windows.pass()?);
            events.push(calibration.to_ns(clock::now_ticks() - started));
        }
        self.latencies.add_round(&events);
        Ok(())
    }

    fn figure(self, passes: u64) -> Figure {
        let name = format!("{} of {}", self.windows.name(), self.count);
        let size_bytes = (LINE_PAYLOAD_BYTES + 8) as u32;
        let row =
            Row { bench: BENCH, name: &name, kernel: "cached", memory: MEMORY, size_bytes, count: passes };
        Figure::latency(row, self.latencies)
    }
}

/// Runs every way with every number of windows.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let passes = (settings.trips() / SLOWNESS).max(1);
    let figures = on_core::<_, BenchError>(settings.cores.first, || {
        let mut contenders = Vec::new();
        for count in COUNTS {
            for way in WAYS {
                contenders.push(Contender::new(way, count)?);
            }
        }
        let calibration = Calibration::measure();
        for _ in 0..settings.rounds {
            contenders.iter_mut().try_for_each(|contender| contender.round(passes, &calibration))?;
        }
        Ok(contenders.into_iter().map(|contender| contender.figure(passes)).collect::<Vec<_>>())
    })?;
    let checks = checks(&figures);
    Ok(Report { figures, checks, ..Report::default() })
}

/// A set against the bare loads, for each number of windows.
fn checks(figures: &[Figure]) -> Vec<Check> {
    let of_count = figures.chunks_exact(WAYS.len());
    of_count.map(|ways| Check::ratio(BENCH, &ways[WAYS.len() - 1], &ways[0], Bound::Shown)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_window::Sent;

    #[test]
    fn every_way_looks_at_every_window() -> Result<(), BenchError> {
        let Ok(settings) = Settings::quick() else { return Ok(()) };
        let report = run(&Settings { rounds: 1, trip_thousands: 1, ..settings })?;
        assert_eq!((report.figures.len(), report.checks.len()), (COUNTS.len() * WAYS.len(), COUNTS.len()));
        for way in WAYS {
            let memories = (0..5).map(|_| WindowMemory::new(LINES)).collect::<Result<Vec<_>, _>>()?;
            let mut windows = way(&memories);
            assert_eq!(windows.pass()?, 0);
            for memory in &memories {
                assert_eq!(memory.writer(StoreKernel::Cached).try_send(&[1; 8])?, Sent::Sent);
            }
            assert_eq!(windows.pass()?, 5, "{}", windows.name());
        }
        Ok(())
    }
}
