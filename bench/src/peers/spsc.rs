//! `rtrb`, the fastest public single-producer single-consumer ring crate we know, used in chunks: one publication of
//! its indices for many messages, slots written and read in place.

use std::hint::spin_loop;
use std::time::Instant;

use rtrb::RingBuffer;

use crate::{BenchError, Settings};
use beeline_floor::{Sides, Source, Sum};

/// Chunk sizes that are tried; the best one counts.
pub const CHUNKS: [usize; 3] = [16, 64, 256];

/// A message, aligned as a line of a window is.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Slot([u64; 8]);

/// Messages a second through a fresh ring of as many slots as a window has lines.
///
/// # Errors
/// [`BenchError`].
pub fn rate(settings: &Settings, chunk: usize) -> Result<f64, BenchError> {
    let (mut producer, mut consumer) = RingBuffer::<Slot>::new(settings.window_lines as usize);
    let (messages, source) = (settings.stream_messages(), &Source::new());
    let both = Sides::run::<BenchError>(
        settings.cores,
        move |start| {
            let started = start.wait();
            let mut number = 0;
            while number < messages {
                let wanted = chunk.min((messages - number) as usize);
                let Ok(slots) = producer.write_chunk_uninit(wanted) else {
                    if start.is_over() {
                        break;
                    }
                    spin_loop();
                    continue;
                };
                slots.fill_from_iter((number..).map(|number| slot(source.message(number))));
                number += wanted as u64;
            }
            Ok(started)
        },
        move |start| {
            start.wait();
            let (mut sum, mut received) = (Sum::default(), 0);
            while received < messages {
                let wanted = chunk.min((messages - received) as usize);
                let Ok(slots) = consumer.read_chunk(wanted) else {
                    if start.is_over() {
                        break;
                    }
                    spin_loop();
                    continue;
                };
                let (first, second) = slots.as_slices();
                for slot in first.iter().chain(second) {
                    sum.add(slot.0.iter().fold(0, |all, word| all ^ word));
                }
                slots.commit_all();
                received += wanted as u64;
            }
            Ok((sum, Instant::now()))
        },
    )?;
    let (sum, ended) = both.second;
    source.check("rtrb", sum, messages, 8)?;
    Ok(beeline_floor::rate(messages, ended - both.first))
}

#[inline(always)]
fn slot(message: &[u8; 64]) -> Slot {
    let chunks = message.as_chunks::<8>().0;
    Slot(std::array::from_fn(|index| u64::from_le_bytes(chunks[index])))
}
