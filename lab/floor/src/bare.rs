//! The floors: what the same memory and cores do with no protocol at all.
//!
//! *Bare copy*: two pinned threads copy 64 B with cached stores into the next line of a window-sized ring and poll
//! its last word; no header, credits, blanking or checks. The floor of every round trip.
//! *Bare line stream*: one core stores lines, the other looks whether they have arrived, reads them and makes them free
//! again; lines are all there is, no header, length, handle or error. The floor of every stream in which the receiver
//! gives lines back by writing them.
//! *Bare store loop*: one core stores line after line into a window; no header, length or account. The floor of
//! every sender.

use std::hint::spin_loop;
use std::time::Instant;

use beeline_contract_memory::{CreditSink, CreditSource, LoadPort, StorePort};
use beeline_mmio::{LoadWindow, StoreKernel, StoreWindow, clock};

use crate::{Cores, FloorError, Sides, Source, Sum, WindowMemory, rate};

/// One end of a bare copy: a ring to copy into and one to poll.
#[derive(Debug)]
pub struct BareEnd {
    out: StoreWindow,
    into: LoadWindow,
    line: u32,
}

impl BareEnd {
    /// Both ends of a pair of rings.
    pub fn pair(there: &WindowMemory, back: &WindowMemory) -> [BareEnd; 2] {
        let end = |out: &WindowMemory, into: &WindowMemory| {
            BareEnd::new(out.store_window(StoreKernel::Cached), into.load_window())
        };
        [end(there, back), end(back, there)]
    }

    /// The end that copies into `out`, which stores with the cached kernel, and polls `into`.
    pub fn new(out: StoreWindow, into: LoadWindow) -> Self {
        BareEnd { out, into, line: 0 }
    }

    /// Copies 64 B that end in `stamp` into each of the next `lines` lines.
    #[inline]
    pub fn copy(&mut self, stamp: u64, lines: u32) {
        for line in 0..lines {
            self.out.store_line(self.line.wrapping_add(line), &[stamp; 8]);
        }
    }

    /// Whether each of the next `lines` lines ends in `stamp`; the last one is looked at first.
    #[inline]
    pub fn arrived(&mut self, stamp: u64, lines: u32) -> bool {
        (0..lines).rev().all(|line| self.into.load_word(self.line.wrapping_add(line), 7) == stamp)
    }

    /// Moves on by so many lines.
    #[inline]
    pub fn step(&mut self, lines: u32) {
        self.line = self.line.wrapping_add(lines);
    }
}

/// Round trips of the bare copy in a ring of `window_lines`: nanoseconds of each of `trips`. `step` is 1 for the bare
/// copy and 0 for the bare line, where both sides use one line again and again.
///
/// # Errors
/// [`FloorError::Map`], [`FloorError::Pin`].
pub fn bare_trips(cores: Cores, window_lines: u32, trips: u64, step: u32) -> Result<Vec<f64>, FloorError> {
    let rings = [WindowMemory::new(window_lines)?, WindowMemory::new(window_lines)?];
    let [mut ping, mut pong] = BareEnd::pair(&rings[0], &rings[1]);
    let calibration = clock::Calibration::measure();
    let both = Sides::run::<FloorError>(
        cores,
        move |start| {
            let mut ticks = Vec::with_capacity(trips as usize);
            start.wait();
            for stamp in 1..=trips {
                let sent = clock::now_ticks();
                ping.copy(stamp, 1);
                while !ping.arrived(stamp, 1) {
                    spin_loop();
                }
                ticks.push(clock::now_ticks() - sent);
                ping.step(step);
            }
            Ok(ticks)
        },
        move |start| {
            start.wait();
            for stamp in 1..=trips {
                while !pong.arrived(stamp, 1) {
                    spin_loop();
                }
                pong.copy(stamp, 1);
                pong.step(step);
            }
            Ok(())
        },
    )?;
    Ok(both.first.into_iter().map(|ticks| calibration.to_ns(ticks)).collect())
}

/// The middle of [`bare_trips`], in ns; `trips` is at least 1.
///
/// # Errors
/// As [`bare_trips`].
pub fn bare_trip_p50_ns(cores: Cores, window_lines: u32, trips: u64, step: u32) -> Result<f64, FloorError> {
    let mut trips_ns = bare_trips(cores, window_lines, trips, step)?;
    trips_ns.sort_by(f64::total_cmp);
    Ok(trips_ns[trips_ns.len() / 2])
}

/// Lines a second of a bare store loop into a window with no receiver: the messages of `source`, whole lines, over
/// and over. Runs on the calling thread.
pub fn bare_store_rate(port: &mut StoreWindow, source: &Source, lines: u64) -> f64 {
    let start = Instant::now();
    let mask = u64::from(port.lines()) - 1;
    for number in 0..lines {
        port.store_lines((number & mask) as u32, source.message(number));
    }
    // Everything stored has to leave the core within the time that is counted.
    port.fence();
    rate(lines, start.elapsed())
}

/// How far ahead the bare line stream prefetches, at its best here.
const AHEAD_LINES: u64 = 32;

/// Lines a second of the bare line stream of `lines` lines through a window of `window_lines`.
///
/// # Errors
/// [`FloorError`].
pub fn bare_stream_rate(
    cores: Cores,
    window_lines: u32,
    lines: u64,
    kernel: StoreKernel,
) -> Result<f64, FloorError> {
    let memory = WindowMemory::new(window_lines)?;
    let (mut out, mut into) = (memory.store_window(kernel), memory.load_window().for_sender(kernel));
    let (mut credits, mut freed) = (memory.credits(), memory.credits());
    let window = u64::from(window_lines);
    let (source, blank, mask) = (&Source::new(), memory.config().blank, window - 1);
    let both = Sides::run::<FloorError>(
        cores,
        move |start| {
            let started = start.wait();
            let mut limit = window;
            for line in 0..lines {
                while line >= limit {
                    limit = credits.freed_lines() + window;
                }
                out.store_lines((line & mask) as u32, source.message(line));
            }
            Ok(started)
        },
        move |start| {
            start.wait();
            let (mut sum, mut known_until) = (Sum::default(), 0);
            for line in 0..lines {
                let at = (line & mask) as u32;
                while into.arrived(at, blank).0 != 0xff {
                    spin_loop();
                }
                if line < known_until {
                    into.prefetch(((line + AHEAD_LINES) & mask) as u32);
                } else if into.arrived(((line + 2 * AHEAD_LINES) & mask) as u32, blank).0 != 0 {
                    known_until = line + AHEAD_LINES;
                }
                sum.add((0..8).fold(0, |all, word| all ^ into.load_word(at, word)));
                into.blank_line(at, blank);
                if (line + 1) & (window / 8 - 1) == 0 || line + 1 == lines {
                    freed.publish(line + 1);
                }
            }
            Ok((sum, Instant::now()))
        },
    )?;
    let (sum, ended) = both.second;
    source.check("bare line stream", sum, lines, 8)?;
    Ok(rate(lines, ended - both.first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_copies_go_round_and_bare_stores_land() -> Result<(), FloorError> {
        let Ok(cores) = Cores::pair() else { return Ok(()) };
        for step in [0, 1] {
            let trips = bare_trips(cores, 64, 1000, step)?;
            assert_eq!(trips.len(), 1000);
            assert!(trips.iter().all(|ns| *ns > 0.0));
        }
        assert!(bare_stream_rate(cores, 64, 500_000, StoreKernel::Cached)? > 0.0);
        let memory = WindowMemory::new(8)?;
        let source = Source::new();
        let mut port = memory.store_window(StoreKernel::Cached);
        assert!(bare_store_rate(&mut port, &source, 11) > 0.0);
        let mut line = [0; 64];
        memory.load_window().load_lines(2, &mut line);
        assert_eq!(&line, source.message(10), "the last line that fell on line 2");
        Ok(())
    }
}
