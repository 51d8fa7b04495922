//! Stores of messages into mapped memory, fenced as each policy says, and the time until a line can be read back: HotOS'25 §2.1 and
//! figure 2, for whatever is mapped, a BAR first of all.
//!
//! No header, no credits and no receiver: a device behind a BAR makes nothing of what is stored.

use std::time::{Duration, Instant};

use beeline_contract_memory::{StorePort, StoreTask};
use beeline_mmio::clock::{Calibration, now_ticks};
use beeline_mmio::{LINE_BYTES, Region, StoreWindow, WORD_BYTES, fence};
use beeline_window::FencePolicy;

use crate::Source;

/// Lines between two looks at the clock: a look takes as long as some three lines.
const BURST_LINES: u32 = 1024;
/// Round trips of a line that are timed whatever they take, and the most that are kept.
const LEAST_TRIPS: u64 = 16;
const MOST_TRIPS: u64 = 1 << 20;

/// Messages that were stored, all of them out of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FencedRun {
    pub message_bytes: u32,
    pub messages: u64,
    pub took: Duration,
}

impl FencedRun {
    /// Stored bytes a second, in Gbit/s.
    pub fn gbps(&self) -> f64 {
        self.messages as f64 * f64::from(self.message_bytes) * 8.0 / self.took.as_secs_f64() / 1e9
    }
}

/// Stores messages of `message_bytes` over and over into a window for `at_least` so long, and once round it at least, with the fences of
/// `policy`. A message is whole lines, a power of two of them, at most as many as the window and 256.
pub fn fenced_stores<P: StorePort>(
    port: &mut P,
    source: &Source,
    message_bytes: u32,
    policy: FencePolicy,
    at_least: Duration,
) -> FencedRun {
    let message_lines = message_bytes / LINE_BYTES as u32;
    assert!(
        message_lines.is_power_of_two() && message_lines <= port.lines(),
        "{message_bytes} bytes are no message of a window of {} lines",
        port.lines()
    );
    let (window_lines, mut first_line, mut messages) = (port.lines(), 0, 0);
    let burst_lines = BURST_LINES.min(window_lines).max(message_lines);
    let start = Instant::now();
    loop {
        port.run_stores(Burst { source, first_line, burst_lines, message_lines, window_lines, policy });
        first_line = (first_line + burst_lines) % window_lines;
        messages += u64::from(burst_lines / message_lines);
        // Only whole laps have as many fences as a wrap asks for.
        if first_line == 0 && start.elapsed() >= at_least {
            break;
        }
    }
    // What is counted has to leave the core within the time that is counted.
    port.fence();
    FencedRun { message_bytes, messages, took: start.elapsed() }
}

/// Stores without a look at the clock, from a line of the window on and not past its end.
struct Burst<'a> {
    source: &'a Source,
    first_line: u32,
    burst_lines: u32,
    message_lines: u32,
    window_lines: u32,
    policy: FencePolicy,
}

impl StoreTask for Burst<'_> {
    type Output = ();

    fn run<P: StorePort + ?Sized>(self, port: &mut P) {
        let end = self.first_line + self.burst_lines;
        for line in (self.first_line..end).step_by(self.message_lines as usize) {
            let message = self.source.run(u64::from(line), u64::from(self.message_lines));
            match self.policy {
                FencePolicy::PerLine => {
                    for (at, bytes) in (line..).zip(message.chunks_exact(LINE_BYTES)) {
                        port.store_lines(at, bytes);
                        port.fence();
                    }
                }
                FencePolicy::PerMessage => {
                    port.store_lines(line, message);
                    port.fence();
                }
                _ => port.store_lines(line, message),
            }
        }
        if self.policy == FencePolicy::PerWrap && end == self.window_lines {
            port.fence();
        }
    }
}

/// Times of lines that were stored and read back.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadBack {
    pub times_ns: Vec<f64>,
    /// Lines whose last word was another one than had been stored.
    pub wrong: u64,
}

/// Stores one line after the other into a window that begins at offset 0 of `region` and loads its last word, with a full fence in
/// between, which keeps the load from being answered by the core's own buffers; for `at_least` so long. A load of a device follows the
/// stores on the bus, so each time is that of a line on its way to the device and of a word on its way back.
pub fn read_back(region: &Region, port: &mut StoreWindow, at_least: Duration) -> ReadBack {
    let lines = port.lines();
    let words_of_line = LINE_BYTES / WORD_BYTES;
    let words = region.read_words(0, lines as usize * words_of_line);
    let calibration = Calibration::measure();
    let (mut times_ns, mut wrong) = (Vec::new(), 0);
    let start = Instant::now();
    for trip in 0..MOST_TRIPS {
        if trip >= LEAST_TRIPS && start.elapsed() >= at_least {
            break;
        }
        let line = trip as u32 & (lines - 1);
        let stamp = trip + 1;
        let stored = now_ticks();
        port.store_line(line, &[stamp; 8]);
        fence::order_all();
        let found = words.load(line as usize * words_of_line + words_of_line - 1);
        times_ns.push(calibration.to_ns(now_ticks() - stored));
        wrong += u64::from(found != stamp);
    }
    ReadBack { times_ns, wrong }
}

#[cfg(test)]
mod tests {
    use beeline_contract_memory::{Line, forward_store_port};
    use beeline_mmio::StoreKernel;

    use super::*;

    /// A window that notes what is done to it: lines by number, a fence by `None`.
    struct Noted {
        port: StoreWindow,
        done: Vec<Option<u32>>,
    }

    impl StorePort for Noted {
        forward_store_port! {
            |this| this.port;
            lines, store_word, store_head_line, store_head_line_unless, store_prefixed_line_unless, store_padded_line, hints,
            wake_receiver, progress
        }

        fn store_line(&mut self, line: u32, words: &Line) {
            self.done.push(Some(line));
            self.port.store_line(line, words);
        }

        fn store_lines(&mut self, first_line: u32, bytes: &[u8]) {
            self.done.extend((first_line..).take(bytes.len() / LINE_BYTES).map(Some));
            self.port.store_lines(first_line, bytes);
        }

        fn run_stores<T: StoreTask>(&mut self, task: T) -> T::Output {
            task.run(self)
        }

        fn fence(&mut self) {
            self.done.push(None);
            self.port.fence();
        }
    }

    #[test]
    fn each_line_is_stored_in_turn_and_each_policy_has_its_fences() {
        const LINES: u32 = 4096;
        let region = Region::private(LINES as usize * LINE_BYTES);
        let source = Source::new();
        for message_bytes in [64, 256, 8192] {
            let messages = LINES / (message_bytes / 64);
            // The last fence waits for the stores, whatever the policy.
            let expected = [1, 2, messages + 1, LINES + 1];
            for (policy, expected) in FencePolicy::ALL.into_iter().zip(expected) {
                let port = region.store_window(0, LINES, StoreKernel::Cached);
                let mut port = Noted { port, done: Vec::new() };
                let run = fenced_stores(&mut port, &source, message_bytes, policy, Duration::ZERO);
                assert_eq!((run.messages, run.message_bytes), (messages.into(), message_bytes), "{policy}");
                let lines: Vec<u32> = port.done.iter().copied().flatten().collect();
                assert!(lines.iter().copied().eq(0..LINES), "{policy}, {message_bytes} B");
                assert_eq!(port.done.len() - lines.len(), expected as usize, "{policy}, {message_bytes} B");
                assert_eq!(port.done.last(), Some(&None));
            }
        }
        let mut line = [0; 64];
        region.copy_out(5 * 64, &mut line);
        assert_eq!(&line, source.message(5));
    }

    #[test]
    fn message_as_long_as_the_window_and_a_window_of_one_burst_go_round() {
        let region = Region::private(8192);
        let mut port = region.store_window(0, 128, StoreKernel::Cached);
        let run =
            fenced_stores(&mut port, &Source::new(), 8192, FencePolicy::PerLine, Duration::from_millis(2));
        assert!(run.took >= Duration::from_millis(2) && run.messages >= 1);
        let whole = FencedRun { message_bytes: 64, messages: 1_000_000_000, took: Duration::from_secs(4) };
        assert_eq!(whole.gbps(), 128.0);
    }

    #[test]
    #[should_panic(expected = "8192 bytes are no message of a window of 64 lines")]
    fn message_that_is_longer_than_the_window_is_refused() {
        let mut port = Region::private(4096).store_window(0, 64, StoreKernel::Cached);
        fenced_stores(&mut port, &Source::new(), 8192, FencePolicy::None, Duration::ZERO);
    }

    #[test]
    fn lines_are_read_back_as_they_were_stored() {
        let region = Region::private(4096);
        for kernel in StoreKernel::available().into_iter().filter(|kernel| kernel.is_for_memory()) {
            let mut port = region.store_window(0, 64, kernel);
            let back = read_back(&region, &mut port, Duration::ZERO);
            assert_eq!((back.times_ns.len() as u64, back.wrong), (LEAST_TRIPS, 0), "{kernel}");
            assert_eq!((region.word(0).load(), region.word(15 * 64).load()), (1, 16), "a line for each trip");
        }
        // Stores that go elsewhere are not those that are read.
        let other = Region::private(4096);
        let back = read_back(&region, &mut other.store_window(0, 64, StoreKernel::Cached), Duration::ZERO);
        assert_eq!(back.wrong, 0, "the same words are there from before");
        region.fill(0, 4096, 0);
        let back = read_back(&region, &mut other.store_window(0, 64, StoreKernel::Cached), Duration::ZERO);
        assert_eq!(back.wrong, LEAST_TRIPS);
    }
}
