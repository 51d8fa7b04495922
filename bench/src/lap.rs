//! A stream of 64 B messages through a lap window beside the same stream through a blank one: what it costs that receivers
//! never write, and what a second receiver costs.
//!
//! Receivers of lap windows have read-only mappings. Two of them share the receiving core and take turns, since only two cores
//! are pinned; so their figure is of the sender's work for both and not of two cores that read at once.

use std::hint::spin_loop;
use std::time::Instant;

use beeline_floor::{Sides, Source, Sum, lap_window};
use beeline_mmio::StoreKernel;

use crate::paths::{self, Path};
use crate::stream::{BULK, bulk_rate, send_each, window_rate};
use crate::{BenchError, LINE_PAYLOAD_BYTES, Report, Settings};

const BENCH: &str = "window-lap";

/// Messages a second through a fresh lap window, each to every one of `receivers`.
///
/// # Errors
/// [`BenchError`].
pub fn lap_rate(settings: &Settings, kernel: StoreKernel, receivers: usize) -> Result<f64, BenchError> {
    let (mut writer, mut receivers) = lap_window(settings.window_lines, kernel, receivers)?;
    let (messages, source) = (settings.stream_messages(), &Source::new());
    let both = Sides::run::<BenchError>(
        settings.cores,
        move |start| send_each(source, messages, &start, |message| writer.try_send(message)),
        move |start| {
            start.wait();
            let mut sums = vec![(Sum::default(), 0); receivers.len()];
            while sums.iter().any(|(_, received)| *received < messages) {
                let mut taken = 0;
                for (receiver, (sum, received)) in receivers.iter_mut().zip(&mut sums) {
                    let drained = receiver.drain(BULK, |message| {
                        let mut all = 0;
                        message.for_each_word(|word| all ^= word);
                        sum.add(all);
                    })?;
                    *received += drained as u64;
                    taken += drained;
                }
                if taken == 0 {
                    if start.is_over() {
                        break;
                    }
                    spin_loop();
                }
            }
            Ok((sums, Instant::now()))
        },
    )?;
    let (sums, ended) = both.second;
    for (sum, _) in sums {
        source.check("lap window", sum, messages, LINE_PAYLOAD_BYTES / 8)?;
    }
    Ok(beeline_floor::rate(messages, ended - both.first))
}

/// Cached stores, and the widest non-temporal ones that this CPU has.
fn kernels() -> impl Iterator<Item = StoreKernel> {
    let streaming = [StoreKernel::NtAvx512, StoreKernel::NtAvx2, StoreKernel::NtSse2, StoreKernel::Stnp];
    let widest = streaming.into_iter().find(|kernel| kernel.is_available());
    [StoreKernel::Cached].into_iter().chain(widest)
}

/// Runs every path with each kernel.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    type Round = fn(&Settings, StoreKernel) -> Result<f64, BenchError>;
    let rounds: [(&str, Round); 4] = [
        ("window", window_rate),
        ("window in bulk", bulk_rate),
        ("lap window", |settings, kernel| lap_rate(settings, kernel, 1)),
        ("lap window, two receivers", |settings, kernel| lap_rate(settings, kernel, 2)),
    ];
    let paths: Vec<_> = kernels()
        .flat_map(|kernel| {
            rounds.map(|(name, round)| Path {
                name: name.to_owned(),
                kernel: kernel.name(),
                size_bytes: 64,
                count: settings.stream_messages(),
                round: Box::new(move || round(settings, kernel)),
            })
        })
        .collect();
    // Nothing is asked of it: which window is faster depends on the placement, and blank windows are the default.
    paths::measure(BENCH, settings, &paths, |_| Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_floor::rounds::Keep;

    #[test]
    fn every_path_delivers_what_was_sent() -> Result<(), BenchError> {
        let Ok(settings) = Settings::quick() else { return Ok(()) };
        // Fewer lines than messages, so that each path goes round its window.
        let settings =
            Settings { rounds: 1, stream_thousands: 3, window_lines: 1024, keep: Keep::All, ..settings };
        let report = run(&settings)?;
        assert_eq!(report.figures.len(), 4 * kernels().count());
        assert!(report.figures.iter().all(|figure| figure.rounds.len() == 1 && figure.rounds[0] > 0.0));
        Ok(())
    }
}
