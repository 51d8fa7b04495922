//! A short timing of store kernels between this core and another.
//!
//! It is made of the same ports as a window, with a word of credit and without messages. Each kernel is timed in
//! several short stretches, of which the best counts: an interrupted stretch says nothing about the kernel.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use beeline_contract_memory::{LoadPort, StorePort};

use super::{StoreKernel, Traffic};
use crate::clock::{Calibration, now_ticks};
use crate::{LoadWindow, Region, StoreWindow, Word, cpu, thread};

/// Time that a store kernel took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelTiming {
    pub kernel: StoreKernel,
    /// Nanoseconds: of a line in a stream, or there and back.
    pub ns: f64,
}

/// A window of 64 KiB each way: it fits every second-level cache, as windows in use do.
const LINES: u32 = 1024;
const WINDOW_BYTES: usize = LINES as usize * crate::LINE_BYTES;
/// Where the credit word lies, on a page of its own after the two windows.
const CREDIT_AT: usize = 2 * WINDOW_BYTES;
const BLANK: u64 = 1 << 63;
const STRETCHES: u32 = if cfg!(miri) { 1 } else { 8 };
/// Lines of a stretch in a stream: some 10 microseconds.
const STREAM_LINES: u32 = if cfg!(miri) { 8 } else { 2 * LINES };
/// Round trips of a stretch.
const ROUND_TRIPS: u32 = if cfg!(miri) { 4 } else { 64 };
/// How long all of it may take before it is given up: the other core may be somebody else's. Alone on two cores it is
/// done in some milliseconds.
const TIMEOUT: Duration = Duration::from_millis(if cfg!(miri) { 600_000 } else { 250 });
/// How far ahead the reader asks for lines.
const AHEAD: u32 = 16;

/// Times `kernels` with a second thread on another core; `None` where there is no other core, or it is not to be had.
pub(super) fn between_cores(traffic: Traffic, kernels: &[StoreKernel]) -> Option<Vec<KernelTiming>> {
    let other = cpu::another_core()?;
    let region = Region::private(CREDIT_AT + 4096);
    region.fill(0, CREDIT_AT, BLANK);
    let meeting = Meeting {
        start: Barrier::new(2),
        given_up: AtomicBool::new(false),
        deadline: Instant::now() + TIMEOUT,
    };
    let best = std::thread::scope(|scope| {
        let answering = thread::spawn_in(scope, "beeline-timing", || {
            let pinned = cpu::pin_current_thread(other).is_ok();
            if !pinned {
                meeting.give_up();
            }
            meeting.start.wait();
            (0..).zip(kernels).try_for_each(|(turn, kernel)| match traffic {
                Traffic::Stream => Reader::new(&region, *kernel).read(turn, &meeting),
                Traffic::Latency => Echo::new(&region, *kernel, 1).answer(&meeting),
            })
        })
        .ok()?;
        meeting.start.wait();
        let mut best = Vec::with_capacity(kernels.len());
        for (turn, kernel) in (0..).zip(kernels) {
            let ticks = match traffic {
                Traffic::Stream => stream(&region, *kernel, turn, &meeting),
                Traffic::Latency => Echo::new(&region, *kernel, 0).ask(&meeting),
            };
            best.extend(ticks);
        }
        let answered = answering.join().expect("the answering thread does not panic");
        answered.map(|()| best)
    })?;
    let clock = Calibration::measure();
    let per_stretch = match traffic {
        Traffic::Stream => STREAM_LINES,
        Traffic::Latency => ROUND_TRIPS,
    };
    let timing = |(kernel, ticks): (&StoreKernel, u64)| KernelTiming {
        kernel: *kernel,
        // At least one tick: a clock too coarse to see a stretch must not make it free.
        ns: clock.to_ns(ticks.max(1)) / f64::from(per_stretch),
    };
    (best.len() == kernels.len()).then(|| kernels.iter().zip(best).map(timing).collect())
}

/// Times `kernels` into a window that nobody reads.
pub(super) fn alone(kernels: &[StoreKernel]) -> Vec<KernelTiming> {
    let region = Region::private(WINDOW_BYTES);
    let clock = Calibration::measure();
    let time = |kernel: &StoreKernel| {
        let mut window = region.store_window(0, LINES, *kernel);
        let stretch = || {
            let start = now_ticks();
            for line in 0..STREAM_LINES {
                window.store_head_line(line, u64::from(line), &[7; 56]);
            }
            now_ticks() - start
        };
        let best = std::iter::repeat_with(stretch).take(STRETCHES as usize).min().unwrap_or(u64::MAX);
        KernelTiming { kernel: *kernel, ns: clock.to_ns(best.max(1)) / f64::from(STREAM_LINES) }
    };
    kernels.iter().map(time).collect()
}

/// How the two threads find out that one of them cannot go on.
struct Meeting {
    start: Barrier,
    given_up: AtomicBool,
    deadline: Instant,
}

impl Meeting {
    fn give_up(&self) {
        // Relaxed: it only ends loops; nothing is read on the strength of it.
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Spins until `done`; `None` when all of it takes too long, or the other thread has given up.
    #[inline(always)]
    fn until<T>(&self, mut done: impl FnMut() -> Option<T>) -> Option<T> {
        if let Some(value) = done() {
            return Some(value);
        }
        loop {
            for _ in 0..1000 {
                if let Some(value) = done() {
                    return Some(value);
                }
                std::hint::spin_loop();
            }
            if cfg!(miri) {
                std::thread::yield_now();
            }
            // Relaxed: as in `give_up`.
            if Instant::now() > self.deadline || self.given_up.load(Ordering::Relaxed) {
                self.give_up();
                return None;
            }
        }
    }
}

/// The positions that the kernel whose turn it is takes in a stream: they go on from kernel to kernel, as the absolute
/// count of credits does.
fn positions(turn: u32) -> std::ops::Range<u32> {
    let lines = STRETCHES * STREAM_LINES;
    turn * lines..(turn + 1) * lines
}

/// Stores the stretches of one kernel, as fast as credits allow; gives the ticks of the best.
fn stream(region: &Region, kernel: StoreKernel, turn: u32, meeting: &Meeting) -> Option<u64> {
    let mut window = region.store_window(0, LINES, kernel);
    let freed = region.word(CREDIT_AT);
    let payload = std::hint::black_box([7; 56]);
    let (mut best, mut credits) = (u64::MAX, 0);
    let mut start = now_ticks();
    for position in positions(turn) {
        if u64::from(position) >= credits + u64::from(LINES) {
            credits = meeting.until(|| {
                // Acquire: pairs with the reader's release, so that no store is overtaken by its blanking.
                let freed = freed.load_acquire();
                (u64::from(position) < freed + u64::from(LINES)).then_some(freed)
            })?;
        }
        window.store_head_line(position, u64::from(position), &payload);
        if (position + 1) % STREAM_LINES == 0 {
            let now = now_ticks();
            best = best.min(now - start);
            start = now;
        }
    }
    window.fence();
    let end = u64::from(positions(turn).end);
    meeting.until(|| (freed.load_acquire() == end).then_some(best))
}

/// Reads and blanks what [`stream`] stores.
struct Reader {
    window: LoadWindow,
    freed: Word,
}

impl Reader {
    fn new(region: &Region, kernel: StoreKernel) -> Self {
        Reader { window: region.load_window(0, LINES).for_sender(kernel), freed: region.word(CREDIT_AT) }
    }

    fn read(mut self, turn: u32, meeting: &Meeting) -> Option<()> {
        let end = positions(turn).end;
        for position in positions(turn) {
            self.window.prefetch(position + AHEAD);
            meeting.until(|| (self.window.arrived(position, BLANK).0 == 0xff).then_some(()))?;
            self.window.blank_line(position, BLANK);
            if (position + 1) % (LINES / 8) == 0 || position + 1 == end {
                self.freed.store_release(u64::from(position + 1));
            }
        }
        Some(())
    }
}

/// One end of a line that goes there and back.
struct Echo {
    store: StoreWindow,
    load: LoadWindow,
}

impl Echo {
    fn new(region: &Region, kernel: StoreKernel, side: usize) -> Self {
        let (out, back) = if side == 0 { (0, WINDOW_BYTES) } else { (WINDOW_BYTES, 0) };
        Echo { store: region.store_window(out, LINES, kernel), load: region.load_window(back, LINES) }
    }

    fn ask(mut self, meeting: &Meeting) -> Option<u64> {
        let mut best = u64::MAX;
        for stretch in 0..STRETCHES {
            let start = now_ticks();
            for i in 0..ROUND_TRIPS {
                let line = stretch * ROUND_TRIPS + i;
                self.store.store_head_line(line, u64::from(line), &[7; 56]);
                self.wait(line, meeting)?;
            }
            best = best.min(now_ticks() - start);
        }
        Some(best)
    }

    fn answer(mut self, meeting: &Meeting) -> Option<()> {
        for line in 0..STRETCHES * ROUND_TRIPS {
            self.wait(line, meeting)?;
            self.store.store_head_line(line, u64::from(line), &[7; 56]);
        }
        Some(())
    }

    /// Waits for a line and blanks it for the next kernel.
    #[inline(always)]
    fn wait(&mut self, line: u32, meeting: &Meeting) -> Option<()> {
        meeting.until(|| (self.load.arrived(line, BLANK).0 == 0xff).then_some(()))?;
        self.load.blank_line(line, BLANK);
        Some(())
    }
}
