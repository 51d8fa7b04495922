//! Jobs of DMA of 4 KiB to 16 MiB from a segment to another member's, beside stores by the CPU and the C library's `memcpy`.
//!
//! Both members are this process: who copies is what differs, and nobody looks at what was copied. A job that is waited for from the
//! beginning is copied by the waiting thread; one that is started first, by the thread of DMA on another core and by who then waits.
//! Stores are `copy_in` through a map of the remote segment. `memcpy` copies between memory of this process in ordinary pages.

use std::hint::black_box;
use std::time::Instant;

use beeline_floor::on_core;

use crate::figure::Row;
use crate::transfer::Transfers;
use crate::{BenchError, Bound, Check, Figure, Latencies, Report, Settings};

const BENCH: &str = "dma";

/// Bytes of a job.
const SIZES: [usize; 5] = [4 << 10, 64 << 10, 256 << 10, 1 << 20, 16 << 20];
/// The size that has a bound.
const BOUND_BYTES: usize = 1 << 20;
/// What a job may take of the time of `memcpy`: nine tenths of its rate.
const MOST: f64 = 1.0 / 0.9;
const PATHS: [&str; 4] = ["DMA, waited for", "DMA, started before", "stores", "memcpy"];

/// Batches a round; the middle one is the round's.
const BATCHES: usize = 9;
const BATCH_BYTES: usize = 4 << 20;

/// What copies, and where `memcpy` copies to.
struct Bench {
    transfers: Transfers,
    target: Vec<u8>,
}

impl Bench {
    fn new() -> Result<Self, BenchError> {
        let bytes = SIZES[SIZES.len() - 1];
        Ok(Bench { transfers: Transfers::new(bytes)?, target: vec![2; bytes] })
    }

    fn copy(&mut self, path: usize, bytes: usize) -> Result<(), BenchError> {
        let transfers = &self.transfers;
        match path {
            0 => transfers.transfer(bytes),
            1 => {
                transfers.start(bytes)?;
                transfers.wait()
            }
            2 => transfers.store(bytes),
            _ => {
                black_box(&mut self.target[..bytes]).copy_from_slice(black_box(&transfers.own[..bytes]));
                Ok(())
            }
        }
    }

    /// Nanoseconds of one copy, of a batch of them.
    fn batch(&mut self, path: usize, bytes: usize) -> Result<f64, BenchError> {
        let copies = copies(bytes);
        // Brings both ends to where they stay for the batch.
        self.copy(path, bytes)?;
        let start = Instant::now();
        (0..copies).try_for_each(|_| self.copy(path, bytes))?;
        Ok(start.elapsed().as_nanos() as f64 / copies as f64)
    }
}

fn copies(bytes: usize) -> usize {
    (BATCH_BYTES / bytes).clamp(1, 1000)
}

/// Runs every size, the waiting thread on the first core.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let mut bench = Bench::new()?;
    on_core::<_, BenchError>(settings.cores.first, || run_here(&mut bench, settings.rounds))
}

fn run_here(bench: &mut Bench, rounds: u32) -> Result<Report, BenchError> {
    let mut report = Report::default();
    for bytes in SIZES {
        let figures = measure(bench, rounds, bytes)?;
        let [waited, started, stores, memcpy] = &figures;
        let bound = if bytes == BOUND_BYTES { Bound::AtMost(MOST) } else { Bound::Shown };
        report.checks.push(Check::ratio(BENCH, waited, memcpy, bound));
        report.checks.push(Check::ratio(BENCH, started, memcpy, Bound::Shown));
        report.checks.push(Check::ratio(BENCH, waited, stores, Bound::Shown));
        report.figures.extend(figures);
    }
    Ok(report)
}

/// The paths at one size, their batches next to each other in time.
fn measure(bench: &mut Bench, rounds: u32, bytes: usize) -> Result<[Figure; 4], BenchError> {
    let mut latencies = [(); 4].map(|()| Latencies::new());
    for _ in 0..rounds {
        let mut events = [[0.0; BATCHES]; 4];
        for batch in 0..BATCHES {
            for (path, events) in events.iter_mut().enumerate() {
                events[batch] = bench.batch(path, bytes)?;
            }
        }
        for (latencies, events) in latencies.iter_mut().zip(events) {
            latencies.add_round(&events);
        }
    }
    let mut paths = PATHS.into_iter();
    Ok(latencies.map(|latencies| {
        let path = paths.next().unwrap_or_default();
        let name = format!("{path}, {} KiB", bytes >> 10);
        let row = Row {
            bench: BENCH,
            name: &name,
            kernel: "-",
            memory: if path == "memcpy" { "private" } else { "segment" },
            size_bytes: bytes as u32,
            count: (BATCHES * copies(bytes)) as u64,
        };
        Figure::latency(row, latencies)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_four_paths_and_one_size_has_a_bound() {
        let report = run_here(&mut Bench::new().unwrap(), 1).unwrap();
        assert_eq!((report.figures.len(), report.checks.len()), (SIZES.len() * 4, SIZES.len() * 3));
        assert!(report.figures.iter().all(|figure| figure.rounds.len() == 1 && figure.rounds[0] > 0.0));
        assert_eq!(report.figures[3].name, "memcpy, 4 KiB");
    }

    #[test]
    fn each_path_copies_to_where_it_says() {
        let mut bench = Bench::new().unwrap();
        let mut found = [0; 3];
        let mut look = |bench: &Bench| {
            bench.transfers.map.copy_out(4094, &mut found).unwrap();
            found
        };
        bench.copy(2, 4096).unwrap();
        assert_eq!(look(&bench), [1, 1, 0]);
        for path in [0, 1] {
            bench.copy(2, 4096).unwrap();
            // The local segment is blank.
            bench.copy(path, 4096).unwrap();
            assert_eq!(look(&bench), [0, 0, 0], "{}", PATHS[path]);
        }
        bench.copy(3, 4096).unwrap();
        assert_eq!(bench.target[4094..4097], [1, 1, 2]);
    }
}
