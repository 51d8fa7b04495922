//! Copies into mapped memory and out of it, 4 B to 1 MiB, beside the C library's `memcpy` between memory of this process: what
//! it costs that each mapped byte is accessed once and each aligned word whole.
//!
//! One core. `copy_from_slice` calls `memcpy` where the length is not known to the compiler. All memory is of one kind, ordinary
//! pages that are present, so that only the code differs. `odd` copies begin in the middle of words on both sides.

use std::hint::black_box;
use std::time::Instant;

use beeline_floor::on_core;
use beeline_mmio::Region;

use crate::figure::Row;
use crate::{BenchError, Bound, Check, Figure, Latencies, Report, Settings};

const BENCH: &str = "copy-sizes";
const MEMORY: &str = "private";

/// Bytes of a copy.
const SIZES: [usize; 14] =
    [4, 8, 16, 40, 64, 128, 200, 512, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
/// How far copies begin from a page: of the mapped side and of our own.
const STARTS: [(&str, usize, usize); 2] = [("", 0, 0), (", odd", 5, 3)];
const PATHS: [&str; 3] = ["copy_in", "copy_out", "memcpy"];

/// What a copy may take longer than `memcpy`: a tenth, and this.
const MOST: f64 = 1.1;
const ALLOWANCE_NS: f64 = 20.0;

/// Batches a round; the middle one is the round's.
const BATCHES: usize = 9;
/// Bytes of a batch, so that a batch is long beside the clock, and copies of a batch.
const BATCH_BYTES: usize = 4 << 20;
const COPIES: std::ops::RangeInclusive<usize> = 4..=4000;

/// Memory of all paths, as large as the largest copy needs.
struct Memory {
    mapped: Region,
    own: Vec<u8>,
    target: Vec<u8>,
}

impl Memory {
    fn new() -> Self {
        let bytes = SIZES[SIZES.len() - 1] + 4096;
        Memory { mapped: Region::private(bytes), own: vec![1; bytes], target: vec![2; bytes] }
    }

    /// Nanoseconds of one copy, of a batch of them.
    fn batch(&mut self, path: usize, (bytes, mapped_start, own_start): (usize, usize, usize)) -> f64 {
        let copies = copies(bytes);
        let Memory { mapped, own, target } = self;
        // `memcpy` has a destination that begins where the mapped side does.
        let target = &mut target[mapped_start..][..bytes];
        let own = &mut own[own_start..][..bytes];
        let mut copy = || match path {
            0 => mapped.copy_in(black_box(mapped_start), black_box(&*own)),
            1 => mapped.copy_out(black_box(mapped_start), black_box(&mut *own)),
            _ => black_box(&mut *target).copy_from_slice(black_box(&*own)),
        };
        // Brings both ends to where they stay for the batch.
        copy();
        let start = Instant::now();
        (0..copies).for_each(|_| copy());
        start.elapsed().as_nanos() as f64 / copies as f64
    }
}

fn copies(bytes: usize) -> usize {
    (BATCH_BYTES / bytes).clamp(*COPIES.start(), *COPIES.end())
}

/// Runs every size from both starts on the first core.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    on_core::<_, BenchError>(settings.cores.first, || Ok(run_here(settings.rounds)))
}

fn run_here(rounds: u32) -> Report {
    let mut memory = Memory::new();
    let mut report = Report::default();
    for (start, mapped_start, own_start) in STARTS {
        for bytes in SIZES {
            let figures = measure(&mut memory, rounds, (bytes, mapped_start, own_start), start);
            let [copy_in, copy_out, memcpy] = &figures;
            for ours in [copy_in, copy_out] {
                report.checks.push(Check::ratio_beyond(
                    BENCH,
                    ours,
                    memcpy,
                    ALLOWANCE_NS,
                    Bound::AtMost(MOST),
                ));
                report.checks.push(Check::ratio(BENCH, ours, memcpy, Bound::Shown));
            }
            report.figures.extend(figures);
        }
    }
    report
}

/// The paths at one size, their batches next to each other in time.
fn measure(memory: &mut Memory, rounds: u32, place: (usize, usize, usize), start: &str) -> [Figure; 3] {
    let mut latencies = [(); 3].map(|()| Latencies::new());
    for _ in 0..rounds {
        let mut events = [[0.0; BATCHES]; 3];
        for batch in 0..BATCHES {
            for (path, events) in events.iter_mut().enumerate() {
                events[batch] = memory.batch(path, place);
            }
        }
        for (latencies, events) in latencies.iter_mut().zip(events) {
            latencies.add_round(&events);
        }
    }
    let bytes = place.0;
    let mut paths = PATHS.into_iter();
    latencies.map(|latencies| {
        let name = format!("{} of {bytes} B{start}", paths.next().unwrap_or_default());
        let row = Row {
            bench: BENCH,
            name: &name,
            kernel: "-",
            memory: MEMORY,
            size_bytes: bytes as u32,
            count: (BATCHES * copies(bytes)) as u64,
        };
        Figure::latency(row, latencies)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_three_paths_and_its_bounds() {
        let report = run_here(1);
        let sizes = SIZES.len() * STARTS.len();
        assert_eq!((report.figures.len(), report.checks.len()), (sizes * PATHS.len(), sizes * 4));
        assert!(report.figures.iter().all(|figure| figure.rounds.len() == 1 && figure.rounds[0] > 0.0));
        assert_eq!(report.figures[2].name, "memcpy of 4 B");
    }

    #[test]
    fn each_path_copies_from_and_to_where_it_says() {
        let mut memory = Memory::new();
        memory.own.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i % 249) as u8);
        let bytes = 200;
        memory.batch(0, (bytes, 5, 3));
        memory.batch(2, (bytes, 5, 3));
        let mut mapped = vec![0; bytes];
        memory.mapped.copy_out(5, &mut mapped);
        assert_eq!(mapped, memory.own[3..][..bytes]);
        assert_eq!(mapped, memory.target[5..][..bytes]);
        memory.mapped.copy_in(5, &vec![7; bytes]);
        memory.batch(1, (bytes, 5, 3));
        assert_eq!(memory.own[3..][..bytes], vec![7; bytes]);
    }
}
