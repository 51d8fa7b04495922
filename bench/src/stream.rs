//! A stream of 64 B messages from one core to another: our window with every kernel, beside the rivals of `peers`.
//!
//! Every sender takes its messages from the same buffers; every receiver reads each word of the payload once, where
//! it lies, and adds it up. The sums are compared, so a path that loses or changes a word gives no figure.

use std::hint::spin_loop;
use std::time::Instant;

use beeline_contract_memory::{CreditSink, LoadPort};
use beeline_mmio::{StoreKernel, StoreWindow};
use beeline_window::{Message, MessageRef, Sent, Writer};

use crate::check::fastest;
use crate::paths::{self, Path};
use crate::peers::{descriptor, spsc};
use crate::rivals::Workshop;
use crate::rivals::rings::{self, Built};
use crate::{BenchError, Bound, Check, Figure, LINE_PAYLOAD_BYTES, Report, Settings};
use beeline_floor::{LocalCredits, Sides, Source, Start, Sum, WindowMemory};

const BENCH: &str = "window-stream";

/// Words of a one-line message's payload.
const WORDS: usize = LINE_PAYLOAD_BYTES / 8;

/// Messages a second through a fresh window.
///
/// # Errors
/// [`BenchError`].
pub fn window_rate(settings: &Settings, kernel: StoreKernel) -> Result<f64, BenchError> {
    let memory = WindowMemory::new(settings.window_lines)?;
    let (mut writer, mut receiver) = (memory.writer(kernel), memory.receiver(kernel));
    let (messages, source) = (settings.stream_messages(), &Source::new());
    let both = Sides::run::<BenchError>(
        settings.cores,
        move |start| send_each(source, messages, &start, |message| writer.try_send(message)),
        move |start| {
            start.wait();
            let (mut sum, mut received) = (Sum::default(), 0);
            while received < messages {
                let Some(message) = receiver.poll()? else {
                    if start.is_over() {
                        break;
                    }
                    spin_loop();
                    continue;
                };
                add_to(&mut sum, &message);
                received += 1;
            }
            Ok((sum, Instant::now()))
        },
    )?;
    let (sum, ended) = both.second;
    source.check("window stream", sum, messages, WORDS)?;
    Ok(beeline_floor::rate(messages, ended - both.first))
}

/// Sends the messages of the source one by one, and says when it began.
#[inline(always)]
pub(crate) fn send_each<E: Into<BenchError>>(
    source: &Source,
    messages: u64,
    start: &Start<'_>,
    mut try_send: impl FnMut(&[u8]) -> Result<Sent, E>,
) -> Result<Instant, BenchError> {
    let started = start.wait();
    for number in 0..messages {
        while try_send(&source.message(number)[..LINE_PAYLOAD_BYTES]).map_err(Into::into)? == Sent::Full {
            if start.is_over() {
                return Ok(started);
            }
            spin_loop();
        }
    }
    Ok(started)
}

/// Adds a message to a sum, for which every word of it is read.
#[inline(always)]
pub(crate) fn add_to<L: LoadPort, S: CreditSink>(sum: &mut Sum, message: &Message<'_, L, S>) {
    sum.add(message.fold_words(0, |all, word| all ^ word));
}

/// As [`add_to`], in bulk.
#[inline(always)]
pub(crate) fn add_in_bulk<L: LoadPort, S: CreditSink>(sum: &mut Sum, message: &MessageRef<'_, L, S>) {
    sum.add(message.fold_words(0, |all, word| all ^ word));
}

/// The messages of a source as they are sent in bulk: the first [`LINE_PAYLOAD_BYTES`] bytes of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload([u8; 64]);

impl AsRef<[u8]> for Payload {
    #[inline(always)]
    fn as_ref(&self) -> &[u8] {
        &self.0[..LINE_PAYLOAD_BYTES]
    }
}

/// Every message of a source once, in order.
pub(crate) fn payloads(source: &Source) -> Vec<Payload> {
    (0..Source::MESSAGES as u64).map(|number| Payload(*source.message(number))).collect()
}

/// Sends the payloads over and over, in bulk, and says when it began.
pub(crate) fn send_all_of(
    payloads: &[Payload],
    messages: u64,
    writer: &mut Writer<StoreWindow, LocalCredits>,
    start: &Start<'_>,
) -> Result<Instant, BenchError> {
    let started = start.wait();
    let mut number = 0;
    while number < messages {
        let first = number as usize % payloads.len();
        let left = (messages - number).min((payloads.len() - first) as u64) as usize;
        let sent = writer.try_send_all(&payloads[first..first + left])?.0;
        if sent == 0 {
            if start.is_over() {
                break;
            }
            spin_loop();
        }
        number += sent as u64;
    }
    Ok(started)
}

/// Messages that a receiver in bulk takes at most before it looks at anything else.
pub(crate) const BULK: usize = 64;

/// As [`window_rate`], with messages sent and taken in bulk.
///
/// # Errors
/// [`BenchError`].
pub fn bulk_rate(settings: &Settings, kernel: StoreKernel) -> Result<f64, BenchError> {
    let memory = WindowMemory::new(settings.window_lines)?;
    let (mut writer, mut receiver) = (memory.writer(kernel), memory.receiver(kernel));
    let (messages, source) = (settings.stream_messages(), &Source::new());
    let payloads = &payloads(source);
    let both = Sides::run::<BenchError>(
        settings.cores,
        move |start| send_all_of(payloads, messages, &mut writer, &start),
        move |start| {
            start.wait();
            let (mut sum, mut received) = (Sum::default(), 0);
            while received < messages {
                let taken = receiver.drain(BULK, |message| add_in_bulk(&mut sum, &message))?;
                if taken == 0 {
                    if start.is_over() {
                        break;
                    }
                    spin_loop();
                }
                received += taken as u64;
            }
            Ok((sum, Instant::now()))
        },
    )?;
    let (sum, ended) = both.second;
    source.check("window stream in bulk", sum, messages, WORDS)?;
    Ok(beeline_floor::rate(messages, ended - both.first))
}

fn bare_rate(settings: &Settings, kernel: StoreKernel) -> Result<f64, BenchError> {
    let (cores, messages) = (settings.cores, settings.stream_messages());
    Ok(beeline_floor::bare_stream_rate(cores, settings.window_lines, messages, kernel)?)
}

/// A path of lines.
fn path<'s>(
    settings: &Settings,
    name: String,
    kernel: &'static str,
    round: impl Fn() -> Result<f64, BenchError> + 's,
) -> Path<'s> {
    Path { name, kernel, size_bytes: 64, count: settings.stream_messages(), round: Box::new(round) }
}

fn paths<'s>(settings: &'s Settings, built: &'s [Built]) -> Vec<Path<'s>> {
    type Round = fn(&Settings, StoreKernel) -> Result<f64, BenchError>;
    // The floor is as good as its best kernel, as the window is: between far cores that is not the cached one.
    let by_kernel: [(&str, Round); 3] =
        [("window", window_rate), ("window in bulk", bulk_rate), ("bare line stream", bare_rate)];
    let by_kernel = by_kernel.into_iter().flat_map(|(name, round)| {
        let kernels = StoreKernel::available().into_iter().filter(|kernel| *kernel != StoreKernel::St64b);
        kernels.map(move |kernel| {
            path(settings, name.to_owned(), kernel.name(), move || round(settings, kernel))
        })
    });
    let chunks = spsc::Ring::ALL.into_iter().flat_map(|ring| {
        spsc::CHUNKS.into_iter().map(move |chunk| {
            let name = format!("{} in chunks of {chunk}", ring.name);
            path(settings, name, "-", move || (ring.rate)(settings, chunk))
        })
    });
    let in_c = built.iter().flat_map(|built| {
        let chunks = built.ring.chunks.iter();
        chunks.map(move |&chunk| {
            path(settings, built.ring.title(chunk), "-", move || built.rate(settings, chunk))
        })
    });
    let batches = descriptor::BATCHES.into_iter().map(|batch| {
        let name = format!("descriptor ring in batches of {batch}");
        path(settings, name, StoreKernel::Cached.name(), move || descriptor::rate(settings, batch))
    });
    by_kernel.chain(chunks).chain(in_c).chain(batches).collect()
}

/// Runs every kernel and every rival that is installed.
///
/// # Errors
/// [`BenchError`]; a rival that is not installed is no error.
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let workshop = Workshop::new(&settings.program)?;
    let (built, missing) = rings::build(BENCH, &workshop)?;
    Ok(Report { missing, ..paths::measure(BENCH, settings, &paths(settings, &built), checks)? })
}

/// Compares the best of our paths with the best of all rings, with the descriptor ring, and with the floor.
fn checks(figures: &[Figure]) -> Vec<Check> {
    let best_of = |is_meant: fn(&Figure) -> bool| fastest(figures.iter().filter(|figure| is_meant(figure)));
    let window = best_of(|figure| figure.name.starts_with("window"));
    let ring = best_of(is_ring);
    let descriptor = best_of(is_descriptor_ring);
    let bare = best_of(|figure| figure.name.starts_with("bare"));
    let mut checks = Vec::new();
    if let (Some(window), Some(ring)) = (window, ring) {
        let least = if window.placement == "far" { 2.0 } else { 1.2 };
        checks.push(Check::ratio(BENCH, window, ring, Bound::AtLeast(least)));
    }
    if let (Some(window), Some(descriptor)) = (window, descriptor) {
        checks.push(Check::ratio(BENCH, window, descriptor, Bound::AtLeast(1.5)));
    }
    if let (Some(window), Some(bare)) = (window, bare) {
        checks.push(Check::ratio(BENCH, window, bare, Bound::AtLeast(0.85)));
    }
    checks
}

fn is_descriptor_ring(figure: &Figure) -> bool {
    figure.name.starts_with("descriptor ring")
}

/// Whether a figure is a rival's: a descriptor ring, or a ring of a crate or of a library in C, whatever its name.
fn is_ring(figure: &Figure) -> bool {
    let names = spsc::Ring::ALL.iter().map(|ring| ring.name).chain(rings::ALL.iter().map(|ring| ring.name));
    let is_named = |name: &str| figure.name.split(' ').next() == name.split(' ').next();
    is_descriptor_ring(figure) || names.into_iter().any(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Row;
    use beeline_floor::rounds::Keep;

    #[test]
    fn every_path_delivers_what_was_sent() -> Result<(), BenchError> {
        let Ok(settings) = Settings::quick() else { return Ok(()) };
        // Fewer lines than messages, so that each path goes round its ring.
        let settings =
            Settings { rounds: 1, stream_thousands: 3, window_lines: 2048, keep: Keep::All, ..settings };
        let report = run(&settings)?;
        let is_missing = |ring: &&rings::Ring| report.missing.iter().any(|missing| missing.name == ring.name);
        let in_c = rings::ALL.iter().filter(|ring| !is_missing(ring)).map(|ring| ring.chunks.len());
        let rings =
            spsc::Ring::ALL.len() * spsc::CHUNKS.len() + descriptor::BATCHES.len() + in_c.sum::<usize>();
        assert_eq!(report.figures.iter().filter(|figure| is_ring(figure)).count(), rings);
        assert_eq!(report.checks.len(), 3);
        assert!(report.figures.iter().all(|figure| figure.rounds.len() == 1 && figure.rounds[0] > 0.0));
        Ok(())
    }

    fn figures(placement: &str, rates: &[(&str, f64)]) -> Vec<Figure> {
        let figure = |(name, rate): &(&str, f64)| {
            let row = Row { bench: BENCH, name, kernel: "-", memory: "-", size_bytes: 64, count: 1 };
            Figure { placement: placement.to_owned(), ..Figure::rate(row, vec![*rate]) }
        };
        rates.iter().map(figure).collect()
    }

    #[test]
    fn fastest_ring_of_any_kind_is_what_the_window_is_compared_with() {
        for fastest in [
            "rtrb in chunks of 16",
            "yring in chunks of 64",
            "gil in chunks of 256",
            "ringbuf in chunks of 16",
            "ck_ring",
            "rte_ring in place in chunks of 1024",
            "descriptor ring in batches of 64",
        ] {
            let mut rates = vec![("window", 90.0), ("window in bulk", 130.0), ("bare line stream", 500.0)];
            rates.extend(spsc::Ring::ALL.map(|ring| (ring.name, 60.0)));
            rates.extend([("descriptor ring in batches of 16", 50.0), (fastest, 100.0)]);
            let near = &checks(&figures("near", &rates))[0];
            assert_eq!(near.target, format!("window in bulk / {fastest}"));
            assert_eq!((near.found, near.bound, near.pass), (1.3, Bound::AtLeast(1.2), true));
            let far = &checks(&figures("far", &rates))[0];
            assert_eq!((far.found, far.bound, far.pass), (1.3, Bound::AtLeast(2.0), false));
        }
    }
}
