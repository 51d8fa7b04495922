//! The whole timing, stage by stage: each stage keeps what the one before it chose.

use std::time::{Duration, Instant};

use beeline_mmio::{StoreKernel, Traffic, cpu};
use beeline_window::{COALESCE_PARTS, PREFETCH_LINES};
use serde::{Deserialize, Serialize};

use crate::choose::{best, middles};
use crate::line::{same_placement, takes_turns};
use crate::stream::{Bench, Candidate, Taking};
use crate::tuning::{Prefetch, ReceiveTuning, Tuning};

/// How long all of it may take before it is given up: a core may be somebody else's. Alone on two cores it takes a tenth of a
/// second.
const TIMEOUT: Duration = Duration::from_millis(700);
/// The same of a look at the line alone, which takes a millisecond.
const LINE_TIMEOUT: Duration = Duration::from_millis(100);
/// How often it is begun again when the cores moved meanwhile.
const TRIES: u32 = 2;
/// Distances at which prefetching is tried.
const PREFETCH_DISTANCES: [u32; 4] = [8, 16, 32, 64];
/// Parts of a window of which each pushes credits.
const CREDIT_PARTS: [u32; 4] = [COALESCE_PARTS, 4, 16, 32];

/// Why nothing was timed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum NotTimed {
    #[error("this process may run on one core only")]
    OneCore,
    #[error("no memory to share can be had")]
    NoMemory,
    #[error("a core is not to be had, or somebody else works on it")]
    Taken,
    #[error("a line takes {:.1} µs there and back: both are one core, or somebody else works on one of them", line_ns / 1e3)]
    Shared {
        /// Round trip of a bare line.
        line_ns: f64,
    },
    #[error(
        "the cores moved meanwhile: a line took {before_ns:.0} ns there and back, and then {after_ns:.0} ns"
    )]
    Moved {
        /// Round trip of a bare line before.
        before_ns: f64,
        /// Round trip of a bare line after.
        after_ns: f64,
    },
}

/// Time that one candidate took, the middle of its rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// What was chosen among the candidates: `latency`, `stream`, `group`, `prefetch` or `credits`.
    pub of: String,
    pub candidate: String,
    /// Nanoseconds: there and back for `latency`, a message of one line for the others.
    pub ns: f64,
}

/// What was found, and for which placement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    pub tuning: Tuning,
    pub line_ns: f64,
    pub timings: Vec<Timing>,
}

/// One kernel that was found, and for which placement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MeasuredKernel {
    pub kernel: StoreKernel,
    pub line_ns: f64,
    pub timings: Vec<Timing>,
}

/// The cores that were asked for, else the one that this thread is on and another one.
pub(crate) fn cores(asked: Option<[usize; 2]>) -> Result<[usize; 2], NotTimed> {
    asked.or_else(cpu::two_cores).ok_or(NotTimed::OneCore)
}

/// Round trip of a bare line; a millisecond where each core is free.
pub(crate) fn line_ns(asked: Option<[usize; 2]>) -> Result<f64, NotTimed> {
    let bench = Bench::new(cores(asked)?, Instant::now() + LINE_TIMEOUT).ok_or(NotTimed::NoMemory)?;
    placed(bench.line_ns())
}

fn placed(line_ns: Option<f64>) -> Result<f64, NotTimed> {
    match line_ns {
        None => Err(NotTimed::Taken),
        Some(line_ns) if takes_turns(line_ns) => Err(NotTimed::Shared { line_ns }),
        Some(line_ns) => Ok(line_ns),
    }
}

/// Times everything between two cores.
pub(crate) fn measure(asked: Option<[usize; 2]>) -> Result<Measured, NotTimed> {
    let (tuning, line_ns, timings) = in_one_placement(asked, |stages| stages.run())?;
    Ok(Measured { tuning, line_ns, timings })
}

/// Times the kernels alone, for one kind of traffic.
pub(crate) fn measure_kernel(
    asked: Option<[usize; 2]>,
    traffic: Traffic,
) -> Result<MeasuredKernel, NotTimed> {
    let (kernel, line_ns, timings) = in_one_placement(asked, |stages| match traffic {
        Traffic::Stream => stages.stream().map(|chosen| chosen.kernel),
        _ => stages.latency(),
    })?;
    Ok(MeasuredKernel { kernel, line_ns, timings })
}

/// What `run` finds while the round trip of a line stays the same, that round trip, and every timing.
fn in_one_placement<T>(
    asked: Option<[usize; 2]>,
    run: impl Fn(&mut Stages<'_>) -> Option<T>,
) -> Result<(T, f64, Vec<Timing>), NotTimed> {
    let bench = Bench::new(cores(asked)?, Instant::now() + TIMEOUT).ok_or(NotTimed::NoMemory)?;
    let mut moved = NotTimed::Taken;
    for _ in 0..TRIES {
        let before_ns = placed(bench.line_ns())?;
        let mut stages = Stages { bench: &bench, timings: Vec::new() };
        let found = run(&mut stages).ok_or(NotTimed::Taken)?;
        let after_ns = placed(bench.line_ns())?;
        if same_placement(before_ns, after_ns) {
            return Ok((found, before_ns, stages.timings));
        }
        moved = NotTimed::Moved { before_ns, after_ns };
    }
    Err(moved)
}

struct Stages<'a> {
    bench: &'a Bench,
    timings: Vec<Timing>,
}

impl Stages<'_> {
    fn latency(&mut self) -> Option<StoreKernel> {
        let kernels = kernels();
        let trips = self.bench.round_trips(&kernels)?;
        Some(kernels[self.choose("latency", &kernels, &trips)])
    }

    fn stream(&mut self) -> Option<Candidate> {
        let kernels = kernels();
        let by_kernel = |kernel: &StoreKernel| Candidate {
            kernel: *kernel,
            receive: ReceiveTuning::for_sender(Some(*kernel)),
            taking: Taking::Drain,
        };
        let candidates: Vec<Candidate> = kernels.iter().map(by_kernel).collect();
        let streams = self.bench.streams(&candidates)?;
        Some(candidates[self.choose("stream", &kernels, &streams)])
    }

    fn run(&mut self) -> Option<Tuning> {
        let latency = self.latency()?;
        let mut chosen = self.stream()?;
        let groups = [true, false].map(|in_groups| ReceiveTuning { in_groups, ..chosen.receive });
        chosen.receive = self.receive("group", chosen, &groups, |tuning| tuning.group_lines().to_string())?;
        chosen.taking = Taking::Poll;
        let prefetch = ways_to_prefetch(chosen.receive.prefetch);
        let prefetch: Vec<_> =
            prefetch.map(|prefetch| ReceiveTuning { prefetch, ..chosen.receive }).collect();
        chosen.receive = self.receive("prefetch", chosen, &prefetch, |tuning| tuning.prefetch.to_string())?;
        chosen.taking = Taking::Drain;
        let credits = CREDIT_PARTS.map(|credit_parts| ReceiveTuning { credit_parts, ..chosen.receive });
        chosen.receive =
            self.receive("credits", chosen, &credits, |tuning| tuning.credit_parts.to_string())?;
        Some(Tuning { latency, stream: chosen.kernel, receive: chosen.receive })
    }

    /// The best of several ways to receive what is stored with the chosen kernel; the first is the default.
    fn receive(
        &mut self,
        of: &str,
        chosen: Candidate,
        ways: &[ReceiveTuning],
        name: impl Fn(&ReceiveTuning) -> String,
    ) -> Option<ReceiveTuning> {
        let candidates: Vec<Candidate> =
            ways.iter().map(|receive| Candidate { receive: *receive, ..chosen }).collect();
        let rounds = self.bench.streams(&candidates)?;
        let names: Vec<String> = ways.iter().map(name).collect();
        Some(ways[self.choose(of, &names, &rounds)])
    }

    /// The index of the best candidate; keeps the times of all of them.
    fn choose(&mut self, of: &str, names: &[impl ToString], rounds: &[Vec<f64>]) -> usize {
        let middles = middles(rounds);
        self.timings.extend(names.iter().zip(&middles).map(|(name, middle)| Timing {
            of: of.to_owned(),
            candidate: name.to_string(),
            ns: middle.ns,
        }));
        best(&middles)
    }
}

/// The kernels that store to memory here, `cached` first.
fn kernels() -> Vec<StoreKernel> {
    let mut kernels = vec![StoreKernel::Cached];
    let others = StoreKernel::available().into_iter();
    kernels.extend(others.filter(|kernel| kernel.is_for_memory() && *kernel != StoreKernel::Cached));
    kernels
}

/// Every way to prefetch, the default first.
fn ways_to_prefetch(default: Prefetch) -> impl Iterator<Item = Prefetch> {
    let ways = PREFETCH_DISTANCES
        .into_iter()
        .flat_map(|lines| [Prefetch::Read { lines }, Prefetch::Write { lines }])
        .chain([Prefetch::None]);
    [default].into_iter().chain(ways.filter(move |way| *way != default))
}

const _: () = {
    // The default is among what is tried, so that it is timed once.
    let mut index = 0;
    while PREFETCH_DISTANCES[index] != PREFETCH_LINES {
        index += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_that_take_turns_on_one_are_no_placement() {
        assert_eq!(placed(Some(120.0)), Ok(120.0));
        assert_eq!(placed(Some(1_500.0)), Err(NotTimed::Shared { line_ns: 1_500.0 }));
        assert_eq!(placed(None), Err(NotTimed::Taken));
    }

    #[test]
    fn every_way_to_prefetch_is_tried_once_and_the_default_first() {
        let default = Prefetch::Write { lines: PREFETCH_LINES };
        let ways: Vec<Prefetch> = ways_to_prefetch(default).collect();
        assert_eq!((ways.len(), ways[0]), (9, default));
        assert!(ways.iter().all(|way| ways.iter().filter(|other| *other == way).count() == 1), "{ways:?}");
        assert!(ways.contains(&Prefetch::None));
    }

    /// On a machine that is free it finds something; on one that is not, the reason is one of those. What is found is found
    /// among what was timed.
    #[test]
    fn timing_finds_a_tuning_among_its_candidates_or_a_reason() {
        match measure(None) {
            Ok(Measured { tuning, line_ns, timings }) => {
                assert!(line_ns > 0.0 && !takes_turns(line_ns));
                let timed = |of: &str, candidate: String| {
                    assert!(
                        timings.iter().any(|timing| timing.of == of && timing.candidate == candidate),
                        "{of} {candidate}: {timings:?}"
                    );
                };
                timed("latency", tuning.latency.to_string());
                timed("stream", tuning.stream.to_string());
                timed("group", tuning.receive.group_lines().to_string());
                timed("prefetch", tuning.receive.prefetch.to_string());
                timed("credits", tuning.receive.credit_parts.to_string());
            }
            Err(why) => assert!(!why.to_string().is_empty() && why != NotTimed::NoMemory, "{why}"),
        }
    }
}
