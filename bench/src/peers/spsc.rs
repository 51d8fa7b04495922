//! Public single-producer single-consumer ring crates, each used in chunks as well as its safe interface allows: one
//! publication of an index for many messages, slots of a line, written and read in place where the crate lets us.
//!
//! `gil` has no safe call that publishes a chunk, so its producer publishes each message and its consumer reads in chunks.
//! `yring` lends no slot to its caller: slots are pushed and popped by value, and its indices are published once a chunk.

use std::hint::spin_loop;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::time::Instant;

use ringbuf::HeapRb;
use ringbuf::traits::{Consumer as _, Observer as _, Producer as _, Split as _};
use rtrb::RingBuffer;

use crate::{BenchError, Settings};
use beeline_floor::{Sides, Source, Sum};

/// Chunk sizes that are tried; the best one counts.
pub const CHUNKS: [usize; 4] = [16, 64, 256, 1024];

/// A ring crate.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    /// The crate's name.
    pub name: &'static str,
    /// Messages a second through a fresh ring of as many slots as a window has lines, in chunks of a size.
    pub rate: fn(&Settings, usize) -> Result<f64, BenchError>,
}

impl Ring {
    /// Every crate that is tried; the best one counts.
    pub const ALL: [Ring; 4] = [
        Ring { name: "rtrb", rate: rtrb },
        Ring { name: "yring", rate: yring },
        Ring { name: "gil", rate: gil },
        Ring { name: "ringbuf", rate: ringbuf },
    ];
}

/// A message, aligned as a line of a window is.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Slot([u64; 8]);

fn rtrb(settings: &Settings, chunk: usize) -> Result<f64, BenchError> {
    let (mut producer, mut consumer) = RingBuffer::<Slot>::new(settings.window_lines as usize);
    rate(
        settings,
        ("rtrb", chunk),
        move |source, numbers| {
            let Ok(slots) = producer.write_chunk_uninit(length(&numbers)) else { return 0 };
            slots.fill_from_iter(numbers.map(|number| slot(source, number)))
        },
        move |wanted, sum| {
            let Ok(slots) = consumer.read_chunk(wanted) else { return 0 };
            let (first, second) = slots.as_slices();
            first.iter().chain(second).for_each(|slot| add(sum, slot));
            slots.commit_all();
            wanted
        },
    )
}

fn yring(settings: &Settings, chunk: usize) -> Result<f64, BenchError> {
    let (mut producer, mut consumer) = yring::spsc::<Slot>(settings.window_lines as usize);
    rate(
        settings,
        ("yring", chunk),
        move |source, mut numbers| {
            let wanted = length(&numbers);
            let sent =
                numbers.position(|number| producer.push(slot(source, number)).is_err()).unwrap_or(wanted);
            // An index that did not move is not stored again: its line stays with the consumer.
            if sent > 0 {
                producer.flush();
            }
            sent
        },
        move |wanted, sum| {
            let mut taken = 0;
            while taken < wanted {
                if let Some(slot) = consumer.pop() {
                    add(sum, &slot);
                    taken += 1;
                } else if taken > 0 || consumer.prefetch() == 0 {
                    break;
                }
            }
            if taken > 0 {
                consumer.release();
            } else {
                fall_behind(wanted);
            }
            taken
        },
    )
}

fn gil(settings: &Settings, chunk: usize) -> Result<f64, BenchError> {
    let slots = NonZeroUsize::new(settings.window_lines as usize).unwrap_or(NonZeroUsize::MIN);
    let (mut sender, mut receiver) = gil::spsc::channel::<Slot>(slots);
    rate(
        settings,
        ("gil", chunk),
        move |source, mut numbers| {
            let wanted = length(&numbers);
            numbers.position(|number| sender.try_send(slot(source, number)).is_err()).unwrap_or(wanted)
        },
        move |wanted, sum| {
            let mut slots = receiver.read_guard();
            let taken = slots.len().min(wanted);
            slots.as_slice()[..taken].iter().for_each(|slot| add(sum, slot));
            if taken == 0 {
                fall_behind(wanted);
            }
            // Published when the guard is dropped.
            slots.advance(taken);
            taken
        },
    )
}

fn ringbuf(settings: &Settings, chunk: usize) -> Result<f64, BenchError> {
    let (mut producer, mut consumer) = HeapRb::<Slot>::new(settings.window_lines as usize).split();
    rate(
        settings,
        ("ringbuf", chunk),
        move |source, numbers| {
            if producer.vacant_len() < length(&numbers) {
                return 0;
            }
            producer.push_iter(numbers.map(|number| slot(source, number)))
        },
        move |wanted, sum| {
            let (first, second) = consumer.as_slices();
            if first.len() + second.len() < wanted {
                return 0;
            }
            first.iter().chain(second).take(wanted).for_each(|slot| add(sum, slot));
            consumer.skip(wanted)
        },
    )
}

/// Messages a second between two sides: `put` sends messages of these numbers and says how many had room, `take` adds up to
/// so many messages to the sum and says how many were there. `named` is the ring's name and the messages a chunk has.
fn rate(
    settings: &Settings,
    named: (&str, usize),
    mut put: impl FnMut(&Source, Range<u64>) -> usize + Send,
    mut take: impl FnMut(usize, &mut Sum) -> usize + Send,
) -> Result<f64, BenchError> {
    let (name, chunk) = named;
    let (messages, source) = (settings.stream_messages(), &Source::new());
    let both = Sides::run::<BenchError>(
        settings.cores,
        move |start| {
            let started = start.wait();
            let mut number = 0;
            while number < messages {
                let end = messages.min(number + chunk as u64);
                let sent = put(source, number..end);
                if sent == 0 {
                    if start.is_over() {
                        break;
                    }
                    spin_loop();
                }
                number += sent as u64;
            }
            Ok(started)
        },
        move |start| {
            start.wait();
            let (mut sum, mut received) = (Sum::default(), 0);
            while received < messages {
                let taken = take(length(&(received..messages)).min(chunk), &mut sum);
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
    source.check(name, sum, messages, 8)?;
    Ok(beeline_floor::rate(messages, ended - both.first))
}

/// Lets a producer get ahead by about this many messages: a consumer at its heels finds few of them at each look, and shares
/// a line with it each time. For rings that cannot be asked to wait until a chunk is there.
fn fall_behind(messages: usize) {
    (0..messages).for_each(|_| spin_loop());
}

#[inline(always)]
fn length(numbers: &Range<u64>) -> usize {
    (numbers.end - numbers.start) as usize
}

#[inline(always)]
fn slot(source: &Source, number: u64) -> Slot {
    let chunks = source.message(number).as_chunks::<8>().0;
    Slot(std::array::from_fn(|index| u64::from_le_bytes(chunks[index])))
}

#[inline(always)]
fn add(sum: &mut Sum, slot: &Slot) {
    sum.add(slot.0.iter().fold(0, |all, word| all ^ word));
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use beeline_floor::FloorError;
    use beeline_floor::rounds::Keep;

    /// A ring that hands over what `change` makes of the message of this number.
    fn changed(change: impl Fn(u64, Slot) -> Slot + Send) -> Option<Result<f64, BenchError>> {
        let settings =
            Settings { rounds: 1, stream_thousands: 1, keep: Keep::All, ..Settings::quick().ok()? };
        let (sender, receiver) = mpsc::channel();
        let put = move |source: &Source, numbers: Range<u64>| {
            let sent = numbers.map(|number| sender.send(change(number, slot(source, number))));
            sent.filter(Result::is_ok).count()
        };
        let take =
            move |wanted, sum: &mut Sum| receiver.try_iter().take(wanted).map(|slot| add(sum, &slot)).count();
        Some(rate(&settings, ("changed", 16), put, take))
    }

    #[test]
    fn ring_that_changes_one_word_has_no_figure() {
        let Some(honest) = changed(|_, slot| slot) else { return };
        assert!(honest.is_ok_and(|rate| rate > 0.0));
        let flipped = changed(|number, mut slot| {
            slot.0[7] ^= u64::from(number == 999);
            slot
        });
        assert!(matches!(flipped, Some(Err(BenchError::Floor(FloorError::Corrupt { .. })))));
    }
}
