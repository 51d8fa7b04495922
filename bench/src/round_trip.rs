//! One 64 B message and its answer at a time between two cores: our window with every kernel, beside the bare copy.
//!
//! The clock is read before a message is sent and when its answer has been copied out; freeing the answer's line
//! comes after that, as it does in an application that acts on a message first. The answering side sends back what it
//! copied out before it frees the line, which is what a handle that frees on drop is for.

use std::hint::spin_loop;

use beeline_mmio::{LoadWindow, StoreKernel, StoreWindow, clock};
use beeline_window::{Receiver, Sent, Writer};

use crate::figure::Row;
use crate::placed::Placed;
use crate::{BenchError, Bound, Check, Figure, LINE_PAYLOAD_BYTES, Latencies, Report, Settings};
use beeline_floor::{FloorError, LocalCredits, MEMORY, Sides, Start, WindowMemory};

const BENCH: &str = "window-round-trip";

/// One side: a window to send into and one to receive from.
struct End {
    writer: Writer<StoreWindow, LocalCredits>,
    receiver: Receiver<LoadWindow, LocalCredits>,
}

impl End {
    /// Sends a stamped message and gives the ticks until its answer has been copied out; `None` when the other side
    /// has failed.
    #[inline]
    fn ask(&mut self, payload: &mut [u8], start: &Start<'_>) -> Result<Option<u64>, BenchError> {
        let sent = clock::now_ticks();
        while self.writer.try_send(payload)? == Sent::Full {
            spin_loop();
        }
        loop {
            if let Some(mut message) = self.receiver.poll()? {
                message.copy_out(payload);
                return Ok(Some(clock::now_ticks() - sent));
            }
            if start.is_over() {
                return Ok(None);
            }
            spin_loop();
        }
    }

    /// Waits for a message and sends it back.
    #[inline]
    fn answer(&mut self, payload: &mut [u8], start: &Start<'_>) -> Result<(), BenchError> {
        loop {
            if let Some(mut message) = self.receiver.poll()? {
                message.copy_out(payload);
                while self.writer.try_send(payload)? == Sent::Full {
                    spin_loop();
                }
                return Ok(());
            }
            if start.is_over() {
                return Ok(());
            }
            spin_loop();
        }
    }
}

/// Round trips through a fresh pair of windows: nanoseconds of each.
///
/// # Errors
/// [`BenchError`].
pub fn window_trips(settings: &Settings, kernel: StoreKernel) -> Result<Vec<f64>, BenchError> {
    let (there, back) =
        (WindowMemory::new(settings.window_lines)?, WindowMemory::new(settings.window_lines)?);
    let mut ping = End { writer: there.writer(kernel), receiver: back.receiver(kernel) };
    let mut pong = End { writer: back.writer(kernel), receiver: there.receiver(kernel) };
    let calibration = clock::Calibration::measure();
    let trips = settings.trips();
    let both = Sides::run::<BenchError>(
        settings.cores,
        move |start| {
            let mut ticks = Vec::with_capacity(trips as usize);
            start.wait();
            for stamp in 0..trips {
                let mut payload = [0; LINE_PAYLOAD_BYTES];
                payload[LINE_PAYLOAD_BYTES - 8..].copy_from_slice(&stamp.to_le_bytes());
                let Some(taken) = ping.ask(&mut payload, &start)? else { break };
                let found = u64::from_le_bytes(*payload.last_chunk().expect("the payload has 56 bytes"));
                if found != stamp {
                    let path = "window round trip".to_owned();
                    return Err(FloorError::Corrupt { path, found, expected: stamp }.into());
                }
                ticks.push(taken);
            }
            Ok(ticks)
        },
        move |start| {
            start.wait();
            let mut payload = [0; LINE_PAYLOAD_BYTES];
            for _ in 0..trips {
                pong.answer(&mut payload, &start)?;
            }
            Ok(())
        },
    )?;
    Ok(both.first.into_iter().map(|ticks| calibration.to_ns(ticks)).collect())
}

/// Runs every kernel, the bare copy and the bare line.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let kernels = StoreKernel::available().into_iter().filter(|kernel| *kernel != StoreKernel::St64b);
    let mut windows: Vec<_> = kernels.map(|kernel| (kernel, Latencies::new())).collect();
    let (mut bare_copy, mut bare_line) = (Latencies::new(), Latencies::new());
    let placed = Placed::run(settings, || {
        bare_copy.add_round(&beeline_floor::bare_trips(
            settings.cores,
            settings.window_lines,
            settings.trips(),
            1,
        )?);
        bare_line.add_round(&beeline_floor::bare_trips(
            settings.cores,
            settings.window_lines,
            settings.trips(),
            0,
        )?);
        for (kernel, latencies) in &mut windows {
            latencies.add_round(&window_trips(settings, *kernel)?);
        }
        Ok(())
    })?;
    let figure = |name, kernel: StoreKernel, latencies| {
        let (kernel, count) = (kernel.name(), settings.trips());
        Figure::latency(Row { bench: BENCH, name, kernel, memory: MEMORY, size_bytes: 64, count }, latencies)
    };
    let bare_copy = figure("bare copy", StoreKernel::Cached, bare_copy);
    let bare_line = figure("bare line", StoreKernel::Cached, bare_line);
    let windows = windows.into_iter().map(|(kernel, latencies)| figure("window", kernel, latencies));
    let figures: Vec<_> = [bare_copy, bare_line].into_iter().chain(windows).collect();
    Ok(placed.report(BENCH, &figures, checks))
}

/// The cached window against the bare copy, the first figure.
fn checks(figures: &[Figure]) -> Vec<Check> {
    let [bare_copy, _, windows @ ..] = figures else { return Vec::new() };
    let cached = windows.iter().filter(|figure| figure.kernel == StoreKernel::Cached.name());
    cached.map(|window| Check::ratio(BENCH, window, bare_copy, Bound::AtMost(1.15))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_floor::rounds::Keep;

    #[test]
    fn messages_go_round_with_every_kernel() -> Result<(), BenchError> {
        let Ok(settings) = Settings::quick() else { return Ok(()) };
        let settings =
            Settings { rounds: 2, trip_thousands: 1, window_lines: 64, keep: Keep::All, ..settings };
        let report = run(&settings)?;
        assert!(report.figures.iter().all(|figure| figure.samples.len() == 2000 && figure.rounds.len() == 2));
        assert_eq!(report.checks.len(), 1);
        Ok(())
    }
}
