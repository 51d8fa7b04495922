//! What a 64 B message costs each end alone: one core fills a window and then empties it, so that no line changes
//! cores. The share of a stream's time that is work and not transfer; where it is most of it, faster transfer is no use.

use std::time::Instant;

use beeline_mmio::StoreKernel;
use beeline_window::Sent;

use crate::figure::Row;
use crate::stream::{add_to, payloads};
use crate::{BenchError, Figure, LINE_PAYLOAD_BYTES, Report, Settings};
use beeline_floor::{MEMORY, Source, Sum, WindowMemory, pin};

const BENCH: &str = "window-work";

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

/// As [`rates`], with messages sent and taken in bulk; a whole number of the source's messages is sent.
///
/// # Errors
/// [`BenchError`].
pub fn bulk_rates(memory: &WindowMemory, source: &Source, laps: u64) -> Result<[f64; 2], BenchError> {
    let kernel = StoreKernel::Cached;
    let (mut writer, mut receiver) = (memory.writer(kernel), memory.receiver(kernel));
    let lines = writer.lines() as usize;
    let payloads = payloads(source);
    let lap: Vec<_> =
        (0..lines.next_multiple_of(payloads.len())).map(|at| payloads[at % payloads.len()]).collect();
    let (mut sending, mut receiving) = (std::time::Duration::ZERO, std::time::Duration::ZERO);
    let (mut sum, mut number) = (Sum::default(), 0);
    for _ in 0..laps {
        let first = number as usize % payloads.len();
        let start = Instant::now();
        for chunk in lap[first..].chunks(payloads.len()) {
            number += writer.try_send_all(chunk)?.0 as u64;
        }
        let sent = Instant::now();
        receiver.drain(usize::MAX, |message| add_to(&mut sum, message))?;
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
    let mut found = [const { Vec::new() }; 4];
    for _ in 0..settings.rounds {
        // A window of its own each: positions of a writer and a receiver begin together.
        let singly = rates(&WindowMemory::new(settings.window_lines)?, &source, laps)?;
        let in_bulk = bulk_rates(&WindowMemory::new(settings.window_lines)?, &source, laps)?;
        for (rates, rate) in found.iter_mut().zip(singly.into_iter().chain(in_bulk)) {
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
    const NAMES: [&str; 4] = [
        "window, sender alone",
        "window, receiver alone",
        "window in bulk, sender alone",
        "window in bulk, receiver alone",
    ];
    let figures = NAMES.into_iter().zip(found).map(|(name, rates)| Figure::rate(row(name), rates)).collect();
    Ok(Report { figures, ..Report::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_measured_and_nothing_is_lost() -> Result<(), BenchError> {
        let source = Source::new();
        let rates =
            [rates(&WindowMemory::new(64)?, &source, 5)?, bulk_rates(&WindowMemory::new(64)?, &source, 5)?];
        assert!(rates.as_flattened().iter().all(|rate| *rate > 0.0), "{rates:?}");
        let Ok(settings) = Settings::quick() else { return Ok(()) };
        let report = run(&Settings { rounds: 2, stream_thousands: 1, window_lines: 64, ..settings })?;
        assert_eq!(report.figures.len(), 4);
        assert!(report.figures.iter().all(|figure| figure.rounds.len() == 2));
        Ok(())
    }
}
