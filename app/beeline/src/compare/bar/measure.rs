//! The rounds of `compare --bar`: every size, fence policy and kernel takes its turn in each of them.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline_floor::rounds::Middle;
use beeline_floor::{Source, fenced_stores, read_back};
use beeline_mmio::{LINE_BYTES, Region, StoreKernel};
use beeline_session::{Times, new_times};
use beeline_window::FencePolicy;
use indicatif::ProgressBar;

use super::results::{BarReadRow, BarStoreRow};
use crate::failure::Failure;

/// Bytes of a message: 64 B to 8 KB, as the paper's figure.
const SIZES: [u32; 8] = [64, 128, 256, 512, 1024, 2048, 4096, 8192];
const QUICK_SIZES: [u32; 3] = [64, 512, 8192];

/// What is measured, and for how long.
pub struct Measurement {
    pub kernels: Vec<StoreKernel>,
    pub is_quick: bool,
    pub rounds: u32,
    /// All rounds together, about.
    pub seconds: f64,
}

/// One measurement of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Stores { message_bytes: u32, policy: FencePolicy, kernel: StoreKernel },
    ReadBack { kernel: StoreKernel },
}

/// What all rounds found, in the order in which it was measured.
#[derive(Debug, Default)]
pub struct Samples {
    stores: Vec<StoreSample>,
    reads: Vec<ReadSample>,
}

#[derive(Debug)]
struct StoreSample {
    round: u32,
    kernel: StoreKernel,
    policy: FencePolicy,
    message_bytes: u32,
    messages: u64,
    seconds: f64,
    gbps: f64,
}

#[derive(Debug)]
struct ReadSample {
    round: u32,
    kernel: StoreKernel,
    times: Times,
    wrong: u64,
}

impl Measurement {
    /// Measurements of all rounds into a region.
    pub fn steps(&self, region: &Region) -> u64 {
        u64::from(self.rounds) * self.turns(region).len() as u64
    }

    /// The measurements of a round, of messages that fit.
    fn turns(&self, region: &Region) -> Vec<Turn> {
        let sizes = if self.is_quick { &QUICK_SIZES[..] } else { &SIZES[..] };
        let mut turns = Vec::new();
        for message_bytes in sizes.iter().copied().filter(|bytes| *bytes as usize <= region.bytes()) {
            for policy in FencePolicy::ALL {
                turns.extend(self.kernels.iter().map(|kernel| Turn::Stores {
                    message_bytes,
                    policy,
                    kernel: *kernel,
                }));
            }
        }
        turns.extend(self.kernels.iter().map(|kernel| Turn::ReadBack { kernel: *kernel }));
        turns
    }

    /// Measures all rounds into a region, whose lines are a power of two; `None` if it was stopped. Every other round goes through its
    /// measurements backwards, so that a machine that becomes faster or slower favours none of them.
    ///
    /// # Errors
    /// A time is longer than a histogram holds.
    pub fn take(
        &self,
        region: &Region,
        stop: &AtomicBool,
        bar: &ProgressBar,
    ) -> Result<Option<Samples>, Failure> {
        let mut turns = self.turns(region);
        let at_least = Duration::from_secs_f64(self.seconds / f64::from(self.rounds) / turns.len() as f64);
        let (source, mut samples) = (Source::new(), Samples::default());
        for round in 0..self.rounds {
            for turn in &turns {
                // Nothing is told by the flag but that the signal has come.
                if stop.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                samples.add(round, *turn, region, &source, at_least)?;
                bar.inc(1);
            }
            turns.reverse();
        }
        Ok(Some(samples))
    }
}

impl Samples {
    fn add(
        &mut self,
        round: u32,
        turn: Turn,
        region: &Region,
        source: &Source,
        at_least: Duration,
    ) -> Result<(), Failure> {
        let lines = (region.bytes() / LINE_BYTES) as u32;
        match turn {
            Turn::Stores { message_bytes, policy, kernel } => {
                let mut port = region.store_window(0, lines, kernel);
                let run = fenced_stores(&mut port, source, message_bytes, policy, at_least);
                let (messages, seconds, gbps) = (run.messages, run.took.as_secs_f64(), run.gbps());
                self.stores.push(StoreSample {
                    round,
                    kernel,
                    policy,
                    message_bytes,
                    messages,
                    seconds,
                    gbps,
                });
            }
            Turn::ReadBack { kernel } => {
                let back = read_back(region, &mut region.store_window(0, lines, kernel), at_least);
                let mut times = new_times();
                for ns in back.times_ns {
                    times.record(ns.round() as u64).map_err(|error| {
                        Failure::new(format!("a line took {ns} ns to be read back")).because(error)
                    })?;
                }
                self.reads.push(ReadSample { round, kernel, times, wrong: back.wrong });
            }
        }
        Ok(())
    }

    /// A row for each kernel, policy and size: the middle of its rounds. Kernels in their order, policies by cost, sizes ascending.
    pub fn store_rows(&self) -> Vec<BarStoreRow> {
        let first_round = || self.stores.iter().filter(|sample| sample.round == 0);
        let mut rows: Vec<_> = first_round()
            .filter_map(|first| {
                let key = (first.kernel, first.policy, first.message_bytes);
                let same =
                    self.stores.iter().filter(|one| (one.kernel, one.policy, one.message_bytes) == key);
                let middle = Middle::of(same.map(|sample| sample.gbps))?;
                Some(BarStoreRow {
                    kernel: first.kernel.name(),
                    fences: first.policy.name(),
                    message_bytes: first.message_bytes,
                    gbps: middle.value,
                    low_gbps: middle.low,
                    high_gbps: middle.high,
                    spread: middle.spread(),
                })
            })
            .collect();
        let kernel =
            |row: &BarStoreRow| StoreKernel::ALL.iter().position(|kernel| kernel.name() == row.kernel);
        let policy =
            |row: &BarStoreRow| FencePolicy::ALL.iter().position(|policy| policy.name() == row.fences);
        rows.sort_by_key(|row| (kernel(row), policy(row), row.message_bytes));
        rows
    }

    /// A row for each kernel: the times of all rounds.
    pub fn read_rows(&self) -> Vec<BarReadRow> {
        let first_round = self.reads.iter().filter(|sample| sample.round == 0);
        first_round
            .map(|first| {
                let (mut times, mut wrong) = (new_times(), 0);
                for sample in self.reads.iter().filter(|sample| sample.kernel == first.kernel) {
                    times.add(&sample.times).expect("histograms of the same bounds");
                    wrong += sample.wrong;
                }
                BarReadRow {
                    kernel: first.kernel.name(),
                    lines: times.len(),
                    p50_ns: times.value_at_quantile(0.5),
                    p99_ns: times.value_at_quantile(0.99),
                    p999_ns: times.value_at_quantile(0.999),
                    wrong,
                }
            })
            .collect()
    }

    /// Every round, as files.
    pub fn csv(&self) -> [(&'static str, String); 2] {
        let mut stores = String::from("round,kernel,fences,message_bytes,messages,seconds,gbps\n");
        for StoreSample { round, kernel, policy, message_bytes, messages, seconds, gbps } in &self.stores {
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(stores, "{round},{kernel},{policy},{message_bytes},{messages},{seconds},{gbps}");
        }
        let mut reads = String::from("round,kernel,lines,min_ns,p50_ns,p99_ns,p999_ns,max_ns,wrong\n");
        for ReadSample { round, kernel, times, wrong } in &self.reads {
            let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| times.value_at_quantile(share));
            let (lines, min, max) = (times.len(), times.min(), times.max());
            let _ = writeln!(reads, "{round},{kernel},{lines},{min},{p50},{p99},{p999},{max},{wrong}");
        }
        [("bar_stores.csv", stores), ("bar_reads.csv", reads)]
    }
}
