//! A descriptor ring between two cores, as a good driver and a good NIC would share one: payloads in a buffer each,
//! 16-byte descriptors in a ring, the producer's index published once a batch, descriptors read in runs, payloads
//! prefetched as far ahead as our window does it, completions published once a batch. Payload lines are stored and
//! loaded by the same kernels as the window's.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use beeline_contract_memory::{LoadPort, StorePort};
use beeline_mmio::{LoadWindow, StoreKernel, StoreWindow};
use beeline_window::PREFETCH_LINES;

use crate::{BenchError, Settings};
use beeline_floor::{Sides, Source, Start, Sum, WindowMemory};

/// Batch sizes that are tried; the best one counts.
pub const BATCHES: [u64; 4] = [16, 64, 256, 1024];

/// Four descriptors: what fits a line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Descriptors([[AtomicU64; 2]; 4]);

/// An index on a line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Index(AtomicU64);

/// What the two sides share besides the buffers.
#[derive(Debug)]
struct Ring {
    descriptors: Vec<Descriptors>,
    /// Descriptors made available, absolute.
    tail: Index,
    /// Descriptors completed, absolute.
    head: Index,
}

impl Ring {
    fn new(entries: u32) -> Self {
        let descriptors = (0..entries.div_ceil(4)).map(|_| Descriptors::default()).collect();
        Ring { descriptors, tail: Index::default(), head: Index::default() }
    }

    #[inline(always)]
    fn descriptor(&self, number: u64) -> &[AtomicU64; 2] {
        let entry = number as usize & (self.descriptors.len() * 4 - 1);
        &self.descriptors[entry / 4].0[entry % 4]
    }
}

/// Messages a second through a fresh ring of as many entries as a window has lines.
///
/// # Errors
/// [`BenchError`].
pub fn rate(settings: &Settings, batch: u64) -> Result<f64, BenchError> {
    let buffers = WindowMemory::new(settings.window_lines)?;
    let ring = Ring::new(settings.window_lines);
    let (messages, source) = (settings.stream_messages(), &Source::new());
    let ring = &ring;
    let out = buffers.store_window(StoreKernel::Cached);
    let into = buffers.load_window().for_sender(StoreKernel::Cached);
    let both = Sides::run::<BenchError>(
        settings.cores,
        move |start| Ok(produce(&start, ring, out, source, messages, batch)),
        move |start| Ok((consume(&start, ring, into, messages, batch), Instant::now())),
    )?;
    let (sum, ended) = both.second;
    source.check("descriptor ring", sum, messages, 8)?;
    Ok(beeline_floor::rate(messages, ended - both.first))
}

fn produce(
    start: &Start<'_>,
    ring: &Ring,
    mut out: StoreWindow,
    source: &Source,
    messages: u64,
    batch: u64,
) -> Instant {
    let started = start.wait();
    let entries = u64::from(out.lines());
    let (mut number, mut free_until) = (0, entries);
    while number < messages {
        let end = (number + batch).min(messages);
        while end > free_until {
            // Acquire: pairs with the consumer's release of `head`, so its loads of a buffer come before our stores.
            free_until = ring.head.0.load(Ordering::Acquire) + entries;
            if start.is_over() {
                return started;
            }
            spin_loop();
        }
        // Payloads in one run and descriptors in another: runs of stores go out together.
        for number in number..end {
            out.store_lines(number as u32 & (out.lines() - 1), source.message(number));
        }
        for number in number..end {
            let [address, length] = ring.descriptor(number);
            // Relaxed: published by `tail`.
            address.store(number & (entries - 1), Ordering::Relaxed);
            length.store(64, Ordering::Relaxed);
        }
        // Release: pairs with the consumer's acquire of `tail`.
        ring.tail.0.store(end, Ordering::Release);
        number = end;
    }
    started
}

fn consume(start: &Start<'_>, ring: &Ring, mut into: LoadWindow, messages: u64, batch: u64) -> Sum {
    start.wait();
    let mut sum = Sum::default();
    let (mut done, mut available, mut completed) = (0, 0, 0);
    while done < messages {
        if done == available {
            // A batch that is not full must not be waited for.
            ring.head.0.store(done, Ordering::Release);
            // Acquire: pairs with the producer's release of `tail`.
            available = ring.tail.0.load(Ordering::Acquire);
            if start.is_over() {
                break;
            }
            spin_loop();
            continue;
        }
        for number in done..available {
            let ahead = number + u64::from(PREFETCH_LINES);
            if ahead < available {
                // Relaxed: a hint, whatever it says.
                let address = ring.descriptor(ahead)[0].load(Ordering::Relaxed);
                into.prefetch(address as u32 & (into.lines() - 1));
            }
            sum.add(payload(ring, &mut into, number));
            if number + 1 - completed >= batch {
                completed = number + 1;
                // Release: pairs with the producer's acquire of `head`.
                ring.head.0.store(completed, Ordering::Release);
            }
        }
        done = available;
    }
    sum
}

/// Reads the payload behind a descriptor, where it lies; what the descriptor says is bounded, as ours would be.
#[inline(always)]
fn payload(ring: &Ring, into: &mut LoadWindow, number: u64) -> u64 {
    let [address, length] = ring.descriptor(number);
    // Relaxed: ordered by the acquire of `tail`.
    let (line, length) = (address.load(Ordering::Relaxed) as u32, length.load(Ordering::Relaxed));
    let line = line & (into.lines() - 1);
    if length == 64 {
        return (0..8).fold(0, |all, word| all ^ into.load_word(line, word));
    }
    (0..length.min(64) as u32 / 8).fold(0, |all, word| all ^ into.load_word(line, word))
}
