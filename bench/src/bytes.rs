//! Messages of 1 KB and 8 KB, copied in and copied out: our window in bulk, beside the same bytes through a ring that is
//! filled and emptied by `memcpy`, with one publication of its indices a message.
//!
//! Each message ends in its number, which the receiver compares, on both paths.

use std::hint::spin_loop;
use std::time::Instant;

use beeline_floor::{FloorError, Sides, Start, WindowMemory};
use beeline_mmio::StoreKernel;
use beeline_window::Sent;
use rtrb::RingBuffer;

use crate::check::fastest;
use crate::paths::{self, Path};
use crate::stream::BULK;
use crate::{BenchError, Bound, Check, Figure, Report, Settings};

const BENCH: &str = "window-bytes";
/// Sizes of a message.
const SIZES: [usize; 2] = [1024, 8192];
/// Messages of the application, one after the other in its memory.
const SOURCE: usize = 8;

/// Messages a round, as a fraction of those of a stream of lines, by size: rounds take about as long.
fn messages(settings: &Settings, bytes: usize) -> u64 {
    settings.stream_messages() / (bytes as u64 / 64)
}

/// The sender's messages: each is numbered before it leaves.
struct Numbered(Vec<u8>);

impl Numbered {
    fn new(bytes: usize) -> Self {
        Numbered((0..SOURCE * bytes).map(|at| (at * 7 + 1) as u8 & 0x7f).collect())
    }

    /// Writes the number into the place that it has in turn, and returns it as it is sent.
    #[inline(always)]
    fn message(&mut self, number: u64, bytes: usize) -> &[u8] {
        let start = number as usize % SOURCE * bytes;
        let message = &mut self.0[start..start + bytes];
        message[bytes - 8..].copy_from_slice(&number.to_le_bytes());
        message
    }
}

#[inline(always)]
fn check(path: &'static str, out: &[u8], expected: u64) -> Result<(), FloorError> {
    let found = out.last_chunk().map_or(u64::MAX, |last| u64::from_le_bytes(*last));
    if found == expected {
        return Ok(());
    }
    Err(FloorError::Corrupt { path: path.to_owned(), found, expected })
}

/// Messages a second between two sides: `send` takes a message or says that there is no room, `receive` copies what is there
/// into the buffer, message by message, checks that they are those from a number on, and says how many they were.
fn rate(
    settings: &Settings,
    bytes: usize,
    mut send: impl FnMut(&[u8]) -> Result<bool, BenchError> + Send,
    mut receive: impl FnMut(&mut [u8], u64) -> Result<u64, BenchError> + Send,
) -> Result<f64, BenchError> {
    let messages = messages(settings, bytes);
    let both = Sides::run::<BenchError>(
        settings.cores,
        move |start: Start<'_>| {
            let (mut source, started) = (Numbered::new(bytes), start.wait());
            for number in 0..messages {
                let message = source.message(number, bytes);
                while !send(message)? {
                    if start.is_over() {
                        return Ok(started);
                    }
                    spin_loop();
                }
            }
            Ok(started)
        },
        move |start| {
            let (mut out, mut received) = (vec![0; bytes], 0);
            start.wait();
            while received < messages && !start.is_over() {
                received += receive(&mut out, received)?;
            }
            Ok(Instant::now())
        },
    )?;
    Ok(beeline_floor::rate(messages, both.second - both.first))
}

/// Messages a second through a window, taken in bulk and copied out.
///
/// # Errors
/// [`BenchError`].
pub fn window_rate(settings: &Settings, kernel: StoreKernel, bytes: usize) -> Result<f64, BenchError> {
    let memory = WindowMemory::new(settings.window_lines)?;
    let (mut writer, mut receiver) = (memory.writer(kernel), memory.receiver(kernel));
    rate(
        settings,
        bytes,
        move |message| Ok(writer.try_send(message)? == Sent::Sent),
        move |out, first| {
            let (mut number, mut checked) = (first, Ok(()));
            receiver.drain(BULK, |mut message| {
                message.copy_out(out);
                if checked.is_ok() {
                    checked = check("window of bytes", out, number);
                }
                number += 1;
            })?;
            checked?;
            Ok(number - first)
        },
    )
}

/// Messages a second through a ring of as many bytes as the window has.
///
/// # Errors
/// [`BenchError`].
pub fn ring_rate(settings: &Settings, bytes: usize) -> Result<f64, BenchError> {
    let (mut producer, mut consumer) = RingBuffer::<u8>::new(settings.window_lines as usize * 64);
    rate(
        settings,
        bytes,
        move |message| {
            let Ok(mut slots) = producer.write_chunk(message.len()) else { return Ok(false) };
            let (first, second) = slots.as_mut_slices();
            let (front, back) = message.split_at(first.len());
            first.copy_from_slice(front);
            second.copy_from_slice(back);
            slots.commit_all();
            Ok(true)
        },
        move |out, first_number| {
            let Ok(slots) = consumer.read_chunk(out.len()) else { return Ok(0) };
            let (first, second) = slots.as_slices();
            let (front, back) = out.split_at_mut(first.len());
            front.copy_from_slice(first);
            back.copy_from_slice(second);
            slots.commit_all();
            check("ring of bytes", out, first_number)?;
            Ok(1)
        },
    )
}

/// Runs both sizes, with every kernel for memory.
///
/// # Errors
/// [`BenchError`].
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let path = |name, kernel, bytes: usize, round| Path {
        name,
        kernel,
        size_bytes: bytes as u32,
        count: messages(settings, bytes),
        round,
    };
    let mut all = Vec::new();
    for bytes in SIZES {
        for kernel in StoreKernel::available().into_iter().filter(|kernel| kernel.is_for_memory()) {
            let round = Box::new(move || window_rate(settings, kernel, bytes));
            all.push(path(format!("window in bulk, {bytes} B"), kernel.name(), bytes, round as _));
        }
        let round = Box::new(move || ring_rate(settings, bytes));
        all.push(path(format!("memcpy through a ring, {bytes} B"), "-", bytes, round as _));
    }
    paths::measure(BENCH, settings, &all, checks)
}

/// The best window against the ring, at each size.
fn checks(figures: &[Figure]) -> Vec<Check> {
    let best = |bytes: usize, prefix: &'static str| {
        fastest(
            figures
                .iter()
                .filter(move |figure| figure.size_bytes as usize == bytes && figure.name.starts_with(prefix)),
        )
    };
    let ratio = |bytes| {
        let (window, ring) = (best(bytes, "window")?, best(bytes, "memcpy")?);
        Some(Check::ratio(BENCH, window, ring, Bound::AtLeast(0.9)))
    };
    SIZES.into_iter().filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_floor::rounds::Keep;

    #[test]
    fn both_paths_carry_messages_of_both_sizes() -> Result<(), BenchError> {
        let Ok(settings) = Settings::quick() else { return Ok(()) };
        let settings =
            Settings { rounds: 1, stream_thousands: 40, window_lines: 512, keep: Keep::All, ..settings };
        let report = run(&settings)?;
        assert_eq!(report.checks.len(), SIZES.len());
        assert!(report.figures.iter().all(|figure| figure.rounds.len() == 1 && figure.rounds[0] > 0.0));
        Ok(())
    }

    #[test]
    fn message_that_is_another_one_is_found() {
        let mut source = Numbered::new(1024);
        assert!(check("path", source.message(5, 1024), 5).is_ok());
        assert!(check("path", source.message(6, 1024), 5).is_err());
    }
}
