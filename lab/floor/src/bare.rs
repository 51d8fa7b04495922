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
use std::time::{Duration, Instant};

use beeline_contract_memory::{CreditSink, CreditSource, GROUP_LINES, Groups, LoadPort, StorePort};
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

/// Lines that the sender of the bare line stream stores before it looks at the credits again, and that its receiver waits for
/// before it reads the first of them. A divisor of every window's lines and of the source's messages.
const RUN_LINES: u64 = 64;
const RUN_GROUPS: u32 = RUN_LINES as u32 / GROUP_LINES;
const _: () = assert!(
    (Source::MESSAGES as u64).is_multiple_of(RUN_LINES) && RUN_LINES.is_multiple_of(GROUP_LINES as u64)
);

/// Lines a second of the bare line stream of `lines` lines, rounded up to whole runs, through a window of `window_lines`, at
/// least 256.
///
/// The sender stores runs straight from its source. The receiver waits for the last line of a run; then it tests a group and folds
/// the words of each line in one pass of vectors, and makes it free. Only one line of a run is looked at while its sender may be at
/// it, because a line that is looked at before it is stored must be fetched back. No pause between looks: one takes as long as
/// some lines.
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
    let (mut out, mut into) = (memory.store_window(kernel), memory.load_window());
    let (mut credits, mut freed) = (memory.credits(), memory.credits());
    let (window, lines) = (u64::from(window_lines), lines.next_multiple_of(RUN_LINES));
    let (source, blank, mask) = (&Source::new(), memory.config().blank, window - 1);
    let both = Sides::run::<FloorError>(
        cores,
        move |start| {
            let started = start.wait();
            let mut limit = window;
            for line in (0..lines).step_by(RUN_LINES as usize) {
                while line + RUN_LINES > limit {
                    limit = credits.freed_lines() + window;
                }
                out.store_lines((line & mask) as u32, source.run(line, RUN_LINES));
            }
            Ok(started)
        },
        move |start| {
            start.wait();
            let mut sum = Sum::default();
            for line in (0..lines).step_by(RUN_LINES as usize) {
                let at = (line & mask) as u32;
                while into.arrived_words(at + RUN_LINES as u32 - 1, blank) != 0xff {}
                let mut run = into.groups(at, RUN_GROUPS);
                for group in 0..RUN_GROUPS {
                    let sums = loop {
                        if let Some(sums) = run.sums(group, blank) {
                            break sums;
                        }
                    };
                    sums.into_iter().for_each(|words| sum.add(words));
                    run.blank(group, blank);
                }
                if (line + RUN_LINES) & (window / 8 - 1) == 0 || line + RUN_LINES == lines {
                    freed.publish(line + RUN_LINES);
                }
            }
            Ok((sum, Instant::now()))
        },
    )?;
    let (sum, ended) = both.second;
    source.check("bare line stream", sum, lines, 8)?;
    Ok(rate(lines, ended - both.first))
}

/// Lines a second of each end of the bare line stream alone, sender and receiver, on the calling thread: a window is filled
/// and then emptied, `laps` times.
///
/// # Errors
/// [`FloorError`].
pub fn bare_work_rates(window_lines: u32, laps: u64) -> Result<[f64; 2], FloorError> {
    let memory = WindowMemory::new(window_lines)?;
    let (mut out, mut into) = (memory.store_window(StoreKernel::Cached), memory.load_window());
    let (source, blank, mut sum) = (Source::new(), memory.config().blank, Sum::default());
    let mut took = [Duration::ZERO; 2];
    for lap in 0..laps {
        let start = Instant::now();
        for line in (0..window_lines).step_by(RUN_LINES as usize) {
            let number = lap * u64::from(window_lines) + u64::from(line);
            out.store_lines(line, source.run(number, RUN_LINES));
        }
        let stored = Instant::now();
        let groups = window_lines / GROUP_LINES;
        let mut run = into.groups(0, groups);
        for group in 0..groups {
            run.sums(group, blank).unwrap_or_default().into_iter().for_each(|words| sum.add(words));
            run.blank(group, blank);
        }
        took[0] += stored - start;
        took[1] += stored.elapsed();
    }
    let lines = laps * u64::from(window_lines);
    source.check("bare line stream on one core", sum, lines, 8)?;
    Ok(took.map(|took| rate(lines, took)))
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
        assert!(bare_stream_rate(cores, 256, 500_000, StoreKernel::Cached)? > 0.0);
        assert!(bare_work_rates(256, 5)?.iter().all(|rate| *rate > 0.0));
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
