//! Do whole lines leave whole? One core stores lines of eight equal words, another looks at them.
//!
//! A line seen with words of two stores has been seen in part. The looker loads a line with one instruction where
//! the CPU has one; on a CPU that splits that load, a line may look partial that was not, never the other way round.

use core::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use beeline_contract_memory::{LoadPort, StorePort};

use crate::{Region, StoreKernel, cpu, thread};

/// How often lines were seen, and how often in part. Prints as a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeLines {
    /// The kernel that stored them.
    pub kernel: StoreKernel,
    pub stored: u64,
    /// Lines seen with a value not seen there before.
    pub seen: u64,
    /// Of those, lines with words of two stores.
    pub partial: u64,
}

/// Why nobody can watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotWatch {
    /// There is no second core.
    #[error("whole lines cannot be watched for: this process has one core (`taskset -cp $$` shows which)")]
    OneCore,
    /// A thread cannot be started.
    #[error("whole lines cannot be watched for: the process cannot start a thread ({0})")]
    NoThread(std::io::ErrorKind),
}

/// Lines used, so that one is stored while another is looked at.
const LINES: u32 = 16;

/// Stores lines with `kernel` for `duration` into 16 lines at `offset_bytes` (a multiple of 64), and watches from
/// another core. The lines may hold anything; on a device they must read back what was stored.
#[track_caller]
pub fn whole_lines(
    region: &Region,
    offset_bytes: usize,
    kernel: StoreKernel,
    duration: Duration,
) -> Result<WholeLines, CannotWatch> {
    let mut store = region.store_window(offset_bytes, LINES, kernel);
    let mut load = region.load_window(offset_bytes, LINES);
    let other = cpu::another_core().ok_or(CannotWatch::OneCore)?;
    for line in 0..LINES {
        store.store_line(line, &[0; 8]);
    }
    store.fence();
    let (watching, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let watched: Result<_, CannotWatch> = std::thread::scope(|scope| {
        let watcher = thread::spawn_in(scope, "beeline-watch", || {
            // Where pinning fails, the scheduler still puts two busy threads on two cores.
            let _ = cpu::pin_current_thread(other);
            // Relaxed, here and below: the flags only start and end loops.
            watching.store(true, Ordering::Relaxed);
            watch(&mut load, &done)
        })
        .map_err(|error| CannotWatch::NoThread(error.kind()))?;
        while !watching.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let start = Instant::now();
        let mut stored = 0u64;
        while start.elapsed() < duration || stored == 0 {
            // Several between looks at the clock, which takes as long as some of them.
            for _ in 0..LINES {
                stored += 1;
                store.store_line(stored as u32, &[stored; 8]);
            }
        }
        done.store(true, Ordering::Relaxed);
        Ok((stored, watcher.join().expect("the watching thread does not panic")))
    });
    let (stored, (seen, partial)) = watched?;
    Ok(WholeLines { kernel, stored, seen, partial })
}

/// Looks at the lines until told to end, and once more: lines seen, lines seen in part.
fn watch(load: &mut impl LoadPort, done: &AtomicBool) -> (u64, u64) {
    let mut last = [0; LINES as usize];
    let (mut seen, mut partial) = (0, 0);
    loop {
        let ends = done.load(Ordering::Relaxed);
        for (line, last) in (0..LINES).zip(&mut last) {
            let words = load.load_line(line);
            let torn = words.iter().any(|word| *word != words[0]);
            if torn || words[0] != *last {
                seen += 1;
                partial += u64::from(torn);
                *last = words[0];
            }
        }
        if ends {
            return (seen, partial);
        }
        if cfg!(miri) {
            std::thread::yield_now();
        }
    }
}

impl fmt::Display for WholeLines {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WholeLines { kernel, stored, seen, partial } = self;
        let so = match (seen, partial) {
            (0, _) => "so nothing is known",
            (_, 0) => "so they leave whole, as far as was seen",
            _ => "so a receiver must not count on whole lines",
        };
        write!(
            out,
            "of {stored} lines stored with {kernel}, another core saw {seen}, {partial} of them in part: {so}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_kernel_are_watched() {
        let duration = Duration::from_millis(if cfg!(miri) { 0 } else { 3 });
        for kernel in StoreKernel::available().into_iter().filter(|kernel| kernel.is_for_memory()) {
            let region = Region::private(4096);
            match whole_lines(&region, 1024, kernel, duration) {
                Ok(report) => {
                    assert!(report.stored >= u64::from(LINES) && report.seen >= report.partial, "{report}");
                    let last: Vec<u64> =
                        (0..16).map(|line| region.word(1024 + line * 64 + 56).load()).collect();
                    assert_eq!(last.iter().max(), Some(&report.stored), "{report}");
                }
                Err(error) => assert!(error == CannotWatch::OneCore && cpu::another_core().is_none()),
            }
            assert_eq!((region.word(1016).load(), region.word(2048).load()), (0, 0), "neighbours");
        }
    }

    /// A line that is torn on purpose is counted: the watcher is not blind.
    #[test]
    fn a_torn_line_is_counted() {
        let region = Region::private(1024);
        let mut store = region.store_window(0, LINES, StoreKernel::Cached);
        store.store_line(3, &[5; 8]);
        store.store_line(4, &[6; 8]);
        store.store_word(4, 7, 5);
        let counts = watch(&mut region.load_window(0, LINES), &AtomicBool::new(true));
        assert_eq!(counts, (2, 1));
    }

    #[test]
    fn a_report_says_what_follows() {
        let mut report = WholeLines { kernel: StoreKernel::NtSse2, stored: 10, seen: 4, partial: 0 };
        assert!(
            report.to_string().ends_with("saw 4, 0 of them in part: so they leave whole, as far as was seen")
        );
        report.partial = 1;
        assert!(report.to_string().ends_with("a receiver must not count on whole lines"));
        (report.seen, report.partial) = (0, 0);
        assert!(report.to_string().ends_with("so nothing is known"));
    }
}
