//! A descriptor ring between two cores, as a good driver and a good NIC would share one: payloads in a buffer each,
//! 16-byte descriptors in a ring, the producer's index published once a batch, descriptors read in runs, payloads
//! prefetched as far ahead as our window does it, completions published once a batch. Payload lines are stored and
//! loaded by the same kernels as the window's.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use beeline_link_contract::{LoadPort, StorePort};
use beeline_mmio::{LoadWindow, StoreKernel, StoreWindow};
use beeline_window::PREFETCH_LINES;

use crate::traffic::{Source, Sum};
use crate::{BenchError, Duel, Settings, Start, WindowMemory, duel};

/// Batch sizes that are tried; the best one counts.
pub const BATCHES: [u64; 3] = [16, 64, 256];

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
    let (messages, source) = (settings.stream_messages(), Source::new());
    let out = buffers.store_window(StoreKernel::Cached);
    let into = buffers.load_window();
    let duel = Duel::run(
        settings.cores,
        |start| Ok(produce(&start, &ring, out, &source, messages, batch)),
        |start| Ok((consume(&start, &ring, into, messages, batch), Instant::now())),
    )?;
    let (sum, ended) = duel.second;
    source.check("descriptor ring", sum, messages, 8)?;
    Ok(duel::rate(messages, ended - duel.first))
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
    let mut free_until = entries;
    for number in 0..messages {
        while number >= free_until {
            // A batch that is not full must not be waited for.
            ring.tail.0.store(number, Ordering::Release);
            // Acquire: pairs with the consumer's release of `head`, so its loads of a buffer come before our stores.
            free_until = ring.head.0.load(Ordering::Acquire) + entries;
            if start.is_over() {
                return started;
            }
            spin_loop();
        }
        let line = number as u32 & (out.lines() - 1);
        out.store_lines(line, source.message(number));
        let [address, length] = ring.descriptor(number);
        // Relaxed: published by `tail`.
        address.store(u64::from(line), Ordering::Relaxed);
        length.store(64, Ordering::Relaxed);
        if (number + 1).is_multiple_of(batch) {
            // Release: pairs with the consumer's acquire of `tail`.
            ring.tail.0.store(number + 1, Ordering::Release);
        }
    }
    // Release: as above.
    ring.tail.0.store(messages, Ordering::Release);
    started
}

fn consume(start: &Start<'_>, ring: &Ring, mut into: LoadWindow, messages: u64, batch: u64) -> Sum {
    start.wait();
    let mut sum = Sum::default();
    let (mut done, mut available) = (0, 0);
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
        let ahead = done + u64::from(PREFETCH_LINES);
        if ahead < available {
            // Relaxed: a hint, whatever it says.
            let address = ring.descriptor(ahead)[0].load(Ordering::Relaxed);
            into.prefetch(address as u32 & (into.lines() - 1));
        }
        let [address, length] = ring.descriptor(done);
        // Relaxed: ordered by the acquire of `tail`.
        let (line, length) = (address.load(Ordering::Relaxed) as u32, length.load(Ordering::Relaxed));
        let words = into.load_line(line & (into.lines() - 1));
        sum.add(words.into_iter().take(length.min(64) as usize / 8));
        done += 1;
        if done.is_multiple_of(batch) {
            // Release: pairs with the producer's acquire of `head`.
            ring.head.0.store(done, Ordering::Release);
        }
    }
    sum
}
