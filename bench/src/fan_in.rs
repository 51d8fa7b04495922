//! One receiver of many windows, one of which has a sender that is busy: what the others cost it.
//!
//! The receiver goes round all windows and takes what each has, at most 256 messages at a time; 63 of them never have any.

use std::time::Instant;

use beeline_floor::{Sides, Source, Sum, WindowMemory};
use beeline_mmio::StoreKernel;

use crate::paths::{self, Path};
use crate::stream::{add_in_bulk, payloads, send_all_of};
use crate::{BenchError, Bound, Check, Figure, LINE_PAYLOAD_BYTES, Report, Settings};

const BENCH: &str = "window-fan-in";
/// Windows of one receiver.
const WINDOWS: [usize; 2] = [1, 64];
/// Messages that are taken of one window at a time.
const TURN: usize = 256;
/// Lines of each: 64 such windows are what a server with as many clients has.
const LINES: u32 = 1024;

/// Messages a second to a receiver of so many windows, the middle one of which has a sender.
///
/// # Errors
/// [`BenchError`].
pub fn rate(settings: &Settings, windows: usize) -> Result<f64, BenchError> {
    let memories = (0..windows).map(|_| WindowMemory::new(LINES)).collect::<Result<Vec<_>, _>>()?;
    let mut receivers: Vec<_> = memories.iter().map(|memory| memory.receiver(StoreKernel::Cached)).collect();
    let mut writer = memories[windows / 2].writer(StoreKernel::Cached);
    let (messages, source) = (settings.stream_messages(), &Source::new());
    let payloads = &payloads(source);
    let both = Sides::run::<BenchError>(
        settings.cores,
        move |start| send_all_of(payloads, messages, &mut writer, &start),
        move |start| {
            start.wait();
            let (mut sum, mut received) = (Sum::default(), 0);
            while received < messages && !start.is_over() {
                for receiver in &mut receivers {
                    received += receiver.drain(TURN, |message| add_in_bulk(&mut sum, &message))? as u64;
                }
            }
            Ok((sum, Instant::now()))
        },
    )?;
    let (sum, ended) = both.second;
    source.check("windows of one receiver", sum, messages, LINE_PAYLOAD_BYTES / 8)?;
    Ok(beeline_floor::rate(messages, ended - both.first))
}

/// Runs both numbers of windows.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let path = |windows: usize| Path {
        name: format!("receiver of {windows}"),
        kernel: StoreKernel::Cached.name(),
        size_bytes: 64,
        count: settings.stream_messages(),
        round: Box::new(move || rate(settings, windows)),
    };
    paths::measure(BENCH, settings, &WINDOWS.map(path), checks)
}

fn checks(figures: &[Figure]) -> Vec<Check> {
    let [one, many] = figures else { return Vec::new() };
    vec![Check::ratio(BENCH, many, one, Bound::AtLeast(0.5))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_floor::rounds::Keep;

    #[test]
    fn what_one_of_many_windows_carries_arrives() -> Result<(), BenchError> {
        let Ok(settings) = Settings::quick() else { return Ok(()) };
        let report = run(&Settings { rounds: 1, stream_thousands: 5, keep: Keep::All, ..settings })?;
        assert_eq!((report.figures.len(), report.checks.len()), (2, 1));
        Ok(())
    }
}
