//! Transfers of 64 B to 4 MiB to another member's segment, by stores and by DMA: how long each takes, and for how much of that time the
//! program's thread is in a call and can do nothing else.
//!
//! A program that leaves a transfer to DMA starts it and works on, here at sums of its own, with a look now and then whether the transfer
//! has ended. Whoever waits for it instead copies itself (record 0045), which `dma` measures.

use std::hint::black_box;
use std::time::Instant;

use beeline_fabric::DmaState;
use beeline_floor::on_core;

use crate::figure::Row;
use crate::transfer::{Transfers, has_ended};
use crate::{BenchError, Figure, Latencies, Settings};

pub(super) const SIZES: [usize; 9] =
    [64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// What is measured of each way: until the transfer has ended, and inside of calls.
pub(super) const TAKEN: [[&str; 2]; 2] =
    [["by stores", "by stores, in calls"], ["by DMA", "by DMA, in calls"]];
const TRANSFERS: usize = 60;
/// Turns of the program's own work between two looks: about a microsecond.
const WORK: u64 = 1000;

/// Nanoseconds of a transfer by stores.
fn by_stores(transfers: &Transfers, bytes: usize) -> Result<[f64; 2], BenchError> {
    let started = Instant::now();
    transfers.store(bytes)?;
    Ok([started.elapsed().as_nanos() as f64; 2])
}

/// Nanoseconds of a transfer by DMA, all and in calls.
fn by_dma(transfers: &Transfers, bytes: usize) -> Result<[f64; 2], BenchError> {
    let started = Instant::now();
    transfers.start(bytes)?;
    let mut in_calls = started.elapsed();
    loop {
        black_box((0..WORK).fold(0, |sum: u64, number| black_box(sum ^ number)));
        let looked = Instant::now();
        let state = transfers.queue.state();
        in_calls += looked.elapsed();
        if state != DmaState::Posted {
            has_ended(state)?;
            break;
        }
    }
    Ok([started.elapsed(), in_calls].map(|time| time.as_nanos() as f64))
}

/// Figures of every size: each way's times until the end, and those in calls.
pub(super) fn measure(bench: &str, settings: &Settings) -> Result<Vec<Figure>, BenchError> {
    let transfers = Transfers::new(SIZES[SIZES.len() - 1])?;
    on_core::<_, BenchError>(settings.cores.first, || run_here(bench, &transfers, settings.rounds))
}

fn run_here(bench: &str, transfers: &Transfers, rounds: u32) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    for bytes in SIZES {
        let mut latencies = [(); 2].map(|()| [(); 2].map(|()| Latencies::new()));
        for _ in 0..rounds {
            let mut events = [(); 2].map(|()| [(); 2].map(|()| Vec::with_capacity(TRANSFERS)));
            for _ in 0..TRANSFERS {
                let taken = [by_stores(transfers, bytes)?, by_dma(transfers, bytes)?];
                for (events, taken) in events.iter_mut().flatten().zip(taken.into_iter().flatten()) {
                    events.push(taken);
                }
            }
            for (latencies, events) in latencies.iter_mut().flatten().zip(events.iter().flatten()) {
                latencies.add_round(events);
            }
        }
        for (latencies, way) in latencies.into_iter().flatten().zip(TAKEN.into_iter().flatten()) {
            let name = format!("transfer {way}, {bytes} B");
            let (size_bytes, count) = (bytes as u32, TRANSFERS as u64);
            let row = Row { bench, name: &name, kernel: "-", memory: "segment", size_bytes, count };
            figures.push(Figure::latency(row, latencies));
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_copies_and_calls_take_no_longer_than_all() {
        let transfers = Transfers::new(4096).unwrap();
        let mut found = [9];
        let mut look = |transfers: &Transfers| {
            transfers.map.copy_out(4095, &mut found).unwrap();
            found
        };
        by_stores(&transfers, 4096).unwrap();
        assert_eq!(look(&transfers), [1]);
        let [all, in_calls] = by_dma(&transfers, 4096).unwrap();
        // The local segment is blank.
        assert_eq!(look(&transfers), [0]);
        assert!(0.0 < in_calls && in_calls <= all);
    }
}
