//! What a 64 B message costs each end alone: one core fills a window and then empties it, so that no line changes
//! cores. The share of a stream's time that is work and not transfer; where it is most of it, faster transfer is no use.

use std::time::Instant;

use beeline_mmio::StoreKernel;
use beeline_window::Sent;

use crate::figure::Row;
use crate::stream::{add_in_bulk, add_to, payloads};
use crate::{BenchError, Bound, Check, Figure, LINE_PAYLOAD_BYTES, Report, Settings};
use beeline_floor::{MEMORY, Source, Sum, WindowMemory, pin};

const BENCH: &str = "window-work";

const NAMES: [&str; 6] = [
    "window, sender alone",
    "window, receiver alone",
    "window in bulk, sender alone",
    "window in bulk, receiver alone",
    "bare line stream, sender alone",
    "bare line stream, receiver alone",
];

/// What is asked of each end in bulk: 500 M/s where the bare loop does 900.
const LEAST: f64 = 500.0 / 900.0;

/// Messages a second of the sender alone and of the receiver alone. Runs on the calling thread.
///
/// # Errors
/// [`BenchError`].
pub fn rates(memory: &WindowMemory, source: &Source, laps: u64) -> Result<[f64; 2], BenchError> {
    let kernel = StoreKernel::Cached;
    let (mut writer, mut receiver) = (memory.writer(kernel), memory.receiver(kernel));
    let lines = u64::from(writer.lines());
    let (mut sending, mut receiving) = (std::time::Duration::ZERO, std::time::Duration::ZERO);
    let (mut sum, mut number) = (Sum::default(), 0);
    for _ in 0..laps {
        let start = Instant::now();
        for _ in 0..lines {
            // An empty window takes as many messages as it has lines.
            let sent = writer.try_send(&source.message(number)[..LINE_PAYLOAD_BYTES])?;
            debug_assert_eq!(sent, Sent::Sent);
            number += 1;
        }
        let sent = Instant::now();
        while let Some(message) = receiver.poll()? {
            add_to(&mut sum, &message);
        }
        sending += sent - start;
        receiving += sent.elapsed();
    }
    source.check("window, one core", sum, number, LINE_PAYLOAD_BYTES / 8)?;
    Ok([beeline_floor::rate(number, sending), beeline_floor::rate(number, receiving)])
}

/// As [`rates`], with messages sent and taken in bulk.
///
/// # Errors
/// [`BenchError`].
pub fn bulk_rates(memory: &WindowMemory, source: &Source, laps: u64) -> Result<[f64; 2], BenchError> {
    let kernel = StoreKernel::Cached;
    let (mut writer, mut receiver) = (memory.writer(kernel), memory.receiver(kernel));
    let lines = u64::from(writer.lines());
    let payloads = payloads(source);
    let (mut sending, mut receiving) = (std::time::Duration::ZERO, std::time::Duration::ZERO);
    let (mut sum, mut number) = (Sum::default(), 0);
    for lap in 1..=laps {
        let start = Instant::now();
        while number < lap * lines {
            // What an application sends is in its first-level cache: the same messages over and over.
            let first = number as usize % payloads.len();
            let left = (lap * lines - number).min((payloads.len() - first) as u64) as usize;
            number += writer.try_send_all(&payloads[first..first + left])?.0 as u64;
        }
        let sent = Instant::now();
        receiver.drain(usize::MAX, |message| add_in_bulk(&mut sum, &message))?;
        sending += sent - start;
        receiving += sent.elapsed();
    }
    source.check("window in bulk, one core", sum, number, LINE_PAYLOAD_BYTES / 8)?;
    Ok([beeline_floor::rate(number, sending), beeline_floor::rate(number, receiving)])
}

/// Runs both ends on the second core, where streams have their receiver.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let settings = settings.clone();
    let thread = std::thread::spawn(move || {
        pin(settings.cores.second)?;
        run_here(&settings)
    });
    thread.join().map_err(|_| beeline_floor::FloorError::Panicked("working"))?
}

fn run_here(settings: &Settings) -> Result<Report, BenchError> {
    let source = Source::new();
    let laps = (settings.stream_messages() / u64::from(settings.window_lines)).max(1);
    let mut found = [const { Vec::new() }; NAMES.len()];
    for _ in 0..settings.rounds {
        // A window of its own each: positions of a writer and a receiver begin together.
        let singly = rates(&WindowMemory::new(settings.window_lines)?, &source, laps)?;
        let in_bulk = bulk_rates(&WindowMemory::new(settings.window_lines)?, &source, laps)?;
        let bare = beeline_floor::bare_work_rates(settings.window_lines, laps)?;
        for (rates, rate) in found.iter_mut().zip([singly, in_bulk, bare].concat()) {
            rates.push(rate);
        }
    }
    let row = |name| Row {
        bench: BENCH,
        name,
        kernel: StoreKernel::Cached.name(),
        memory: MEMORY,
        size_bytes: 64,
        count: laps * u64::from(settings.window_lines),
    };
    let figures: Vec<_> =
        NAMES.into_iter().zip(found).map(|(name, rates)| Figure::rate(row(name), rates)).collect();
    let checks = [(2, 4), (3, 5)]
        .map(|(ours, bare)| Check::ratio(BENCH, &figures[ours], &figures[bare], Bound::AtLeast(LEAST)));
    Ok(Report { figures, checks: checks.into(), ..Report::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_floor::rounds::Keep;

    #[test]
    fn both_ends_are_measured_and_nothing_is_lost() -> Result<(), BenchError> {
        let source = Source::new();
        let rates =
            [rates(&WindowMemory::new(64)?, &source, 5)?, bulk_rates(&WindowMemory::new(64)?, &source, 5)?];
        assert!(rates.as_flattened().iter().all(|rate| *rate > 0.0), "{rates:?}");
        let Ok(settings) = Settings::quick() else { return Ok(()) };
        let report = run(&Settings {
            rounds: 2,
            stream_thousands: 1,
            window_lines: 256,
            keep: Keep::All,
            ..settings
        })?;
        assert_eq!((report.figures.len(), report.checks.len()), (NAMES.len(), 2));
        assert!(report.figures.iter().all(|figure| figure.rounds.len() == 2));
        Ok(())
    }
}
