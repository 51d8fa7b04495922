//! What is timed: the writer and the receiver that programs run, over memory as windows have it, between two cores.

use std::time::Instant;

use beeline_contract_memory::{CreditSink, CreditSource, LoadPort, StorePort};
use beeline_mmio::clock::{Calibration, now_ticks};
use beeline_mmio::{LINE_BYTES, LoadWindow, MemoryOptions, Region, SharedMemory, StoreKernel, Word};
use beeline_window::{HEAD_BYTES, ReceiveError, Receiver, Sent, Taken, WindowConfig, Writer};

use crate::meeting::{Meeting, on_both};
use crate::tuning::{ReceiveTuning, receiver};

/// Lines of a window as a receiver offers it unless told otherwise.
const LINES: u32 = 16 * 1024;
const WINDOW_BYTES: usize = LINES as usize * LINE_BYTES;
/// Credits lie behind the two windows, each on a page of its own.
const CREDITS_AT: [usize; 2] = [2 * WINDOW_BYTES, 2 * WINDOW_BYTES + 4096];
/// No payload here has such a word.
const BLANK: u64 = 0xb1a7_c0de_5eed_0b1a;
/// Each candidate is timed once in each round: one round may meet an interrupt, or a change of placement.
pub(crate) const ROUNDS: u64 = 5;
/// Messages before the clock starts, and those that it times.
const WARM_UP: usize = LINES as usize;
const TIMED: usize = 2 * LINES as usize;
/// Messages of one call.
const CALL: usize = 64;
/// Payload of every message: one whole line.
const PAYLOAD: [u8; HEAD_BYTES] = [0x5a; HEAD_BYTES];
/// Round trips before the clock starts, and those that it times.
const WARM_TRIPS: u64 = 30;
const TIMED_TRIPS: u64 = 200;
/// Round trips of the bare line, of which the middle counts: some hundred microseconds where cores are near.
const LINE_TRIPS: u64 = 1000;

/// How messages are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taking {
    /// In bulk, where groups of lines matter.
    Drain,
    /// One by one, where lines are prefetched.
    Poll,
}

/// One way to use the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub kernel: StoreKernel,
    pub receive: ReceiveTuning,
    pub taking: Taking,
}

/// Two windows between two cores, and their credits.
#[derive(Debug)]
pub(crate) struct Bench {
    region: Region,
    cores: [usize; 2],
    deadline: Instant,
    clock: Calibration,
}

impl Bench {
    /// `None` when there is no memory to share.
    pub(crate) fn new(cores: [usize; 2], deadline: Instant) -> Option<Self> {
        let bytes = CREDITS_AT[1] + 4096;
        let memory = SharedMemory::create("beeline-tuning", bytes, MemoryOptions::default());
        let region = memory.and_then(|memory| memory.map()).ok()?;
        region.fill(0, 2 * WINDOW_BYTES, BLANK);
        Some(Bench { region, cores, deadline, clock: Calibration::measure() })
    }

    /// Nanoseconds of a bare line there and back, the middle of many; no message, header or credit.
    pub(crate) fn line_ns(&self) -> Option<f64> {
        let end = |out: usize, into: usize| {
            let store = self.region.store_window(out * WINDOW_BYTES, LINES, StoreKernel::Cached);
            (store, self.region.load_window(into * WINDOW_BYTES, LINES))
        };
        let ((mut out, into), (mut back, from)) = (end(0, 1), end(1, 0));
        let (ticks, ()) = on_both(
            self.cores,
            self.deadline,
            move |meeting| {
                meeting.meet(0)?;
                let mut ticks = Vec::with_capacity(LINE_TRIPS as usize);
                for stamp in 1..=LINE_TRIPS {
                    let sent = now_ticks();
                    out.store_line(0, &[stamp; 8]);
                    meeting.until(|| (into.load_word(0, 7) == stamp).then_some(()))?;
                    ticks.push(now_ticks() - sent);
                }
                Some(ticks)
            },
            move |meeting| {
                meeting.meet(0)?;
                (1..=LINE_TRIPS).try_for_each(|stamp| {
                    meeting.until(|| (from.load_word(0, 7) == stamp).then_some(()))?;
                    back.store_line(0, &[stamp; 8]);
                    Some(())
                })
            },
        )?;
        for window in 0..2 {
            self.region.fill(window * WINDOW_BYTES, LINE_BYTES, BLANK);
        }
        let ns = ticks.into_iter().map(|ticks| self.clock.to_ns(ticks.max(1)));
        Some(crate::choose::middle(ns))
    }

    /// Nanoseconds a message of each candidate in a stream, for each round.
    pub(crate) fn streams(&self, candidates: &[Candidate]) -> Option<Vec<Vec<f64>>> {
        self.rounds(
            candidates.len(),
            TIMED as u64,
            |index, meeting| self.send(candidates[index].kernel, meeting),
            |index, meeting| self.receive(candidates[index], meeting),
        )
    }

    /// Nanoseconds of a message there and its answer back with each kernel, for each round.
    pub(crate) fn round_trips(&self, kernels: &[StoreKernel]) -> Option<Vec<Vec<f64>>> {
        self.rounds(
            kernels.len(),
            TIMED_TRIPS,
            |index, meeting| self.answer(kernels[index], meeting),
            |index, meeting| self.ask(kernels[index], meeting),
        )
    }

    /// Takes the turns of all candidates in all rounds; `timed` gives the ticks of `count` messages.
    fn rounds(
        &self,
        candidates: usize,
        count: u64,
        other: impl Fn(usize, &Meeting) -> Option<()> + Sync,
        timed: impl Fn(usize, &Meeting) -> Option<u64> + Sync,
    ) -> Option<Vec<Vec<f64>>> {
        let turns = || (0..ROUNDS * candidates as u64).map(|turn| (turn, turn as usize % candidates));
        let (_, ticks) = on_both(
            self.cores,
            self.deadline,
            |meeting| {
                turns().try_for_each(|(turn, index)| {
                    meeting.meet(turn)?;
                    other(index, meeting)
                })
            },
            |meeting| {
                let turn = |(turn, index)| {
                    // The other side has fenced and looks at no credit until this one comes to the meeting.
                    CREDITS_AT.into_iter().for_each(|at| self.region.word(at).store(0));
                    meeting.meet(turn)?;
                    timed(index, meeting)
                };
                turns().map(turn).collect::<Option<Vec<u64>>>()
            },
        )?;
        let ns = |ticks: &u64| self.clock.to_ns((*ticks).max(1)) / count as f64;
        Some(ticks.chunks(candidates).map(|round| round.iter().map(ns).collect()).collect())
    }

    fn writer(&self, window: usize, kernel: StoreKernel) -> Writer<impl StorePort + use<>, LocalCredits> {
        let port = self.region.store_window(window * WINDOW_BYTES, LINES, kernel);
        Writer::new(port, self.credits(window), WindowConfig::blank(BLANK, 0))
    }

    fn receiver(&self, window: usize, tuning: ReceiveTuning) -> Receiver<LoadWindow, LocalCredits> {
        let port = self.region.load_window(window * WINDOW_BYTES, LINES);
        receiver(tuning, port, self.credits(window), WindowConfig::blank(BLANK, 0))
    }

    fn credits(&self, window: usize) -> LocalCredits {
        LocalCredits(self.region.word(CREDITS_AT[window]))
    }

    fn send(&self, kernel: StoreKernel, meeting: &Meeting) -> Option<()> {
        let mut writer = self.writer(0, kernel);
        let messages = std::hint::black_box([PAYLOAD; CALL]);
        let mut left = WARM_UP + TIMED;
        while left > 0 {
            let sent = meeting.until(|| match writer.try_send_all(&messages[..left.min(CALL)]) {
                Ok(Taken(0)) => None,
                sent => Some(sent),
            })?;
            left -= sent.ok()?.0;
        }
        writer.fence();
        Some(())
    }

    fn receive(&self, candidate: Candidate, meeting: &Meeting) -> Option<u64> {
        let mut receiver = self.receiver(0, candidate.receive);
        let mut sum = 0u64;
        self.take(&mut receiver, candidate.taking, WARM_UP, meeting, &mut sum)?;
        let start = now_ticks();
        self.take(&mut receiver, candidate.taking, TIMED, meeting, &mut sum)?;
        let ticks = now_ticks() - start;
        // Every byte was read; a way to store or look that loses one is not taken.
        let words = ((WARM_UP + TIMED) * (HEAD_BYTES / 8)) as u64;
        let expected = words.wrapping_mul(u64::from_le_bytes([PAYLOAD[0]; 8]));
        (sum == expected).then_some(ticks)
    }

    /// Takes `count` messages and adds up their words.
    fn take(
        &self,
        receiver: &mut Receiver<LoadWindow, LocalCredits>,
        taking: Taking,
        count: usize,
        meeting: &Meeting,
        sum: &mut u64,
    ) -> Option<()> {
        let mut left = count;
        while left > 0 {
            let taken = meeting.until(|| {
                let taken = match taking {
                    Taking::Drain => receiver.drain(left.min(CALL), |message| {
                        *sum = message.fold_words(*sum, u64::wrapping_add);
                    }),
                    Taking::Poll => poll(receiver, sum),
                };
                (taken != Ok(0)).then_some(taken)
            })?;
            left -= taken.ok()?;
        }
        Some(())
    }

    fn ask(&self, kernel: StoreKernel, meeting: &Meeting) -> Option<u64> {
        let mut writer = self.writer(0, kernel);
        let mut receiver = self.receiver(1, ReceiveTuning::for_sender(Some(kernel)));
        let (mut sum, mut start) = (0, 0);
        for trip in 0..WARM_TRIPS + TIMED_TRIPS {
            if trip == WARM_TRIPS {
                start = now_ticks();
            }
            send_one(&mut writer, meeting)?;
            self.take(&mut receiver, Taking::Poll, 1, meeting, &mut sum)?;
        }
        let ticks = now_ticks() - start;
        writer.fence();
        Some(ticks)
    }

    fn answer(&self, kernel: StoreKernel, meeting: &Meeting) -> Option<()> {
        let mut writer = self.writer(1, kernel);
        let mut receiver = self.receiver(0, ReceiveTuning::for_sender(Some(kernel)));
        let mut sum = 0;
        for _ in 0..WARM_TRIPS + TIMED_TRIPS {
            self.take(&mut receiver, Taking::Poll, 1, meeting, &mut sum)?;
            send_one(&mut writer, meeting)?;
        }
        writer.fence();
        Some(())
    }
}

fn send_one(writer: &mut Writer<impl StorePort, LocalCredits>, meeting: &Meeting) -> Option<()> {
    let sent = meeting.until(|| match writer.try_send(&PAYLOAD) {
        Ok(Sent::Full) => None,
        sent => Some(sent),
    })?;
    sent.ok().map(drop)
}

#[inline(always)]
fn poll(receiver: &mut Receiver<LoadWindow, LocalCredits>, sum: &mut u64) -> Result<usize, ReceiveError> {
    let Some(message) = receiver.poll()? else { return Ok(0) };
    message.for_each_word(|word| *sum = sum.wrapping_add(word));
    Ok(1)
}

/// A credit word between two threads that never sleep.
#[derive(Debug)]
struct LocalCredits(Word);

impl CreditSource for LocalCredits {
    #[inline]
    fn freed_lines(&mut self) -> u64 {
        // Acquire: pairs with `publish`.
        self.0.load_acquire()
    }
}

impl CreditSink for LocalCredits {
    #[inline]
    fn publish(&mut self, freed_lines: u64) {
        // Release: pairs with `freed_lines`.
        self.0.store_release(freed_lines);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use beeline_mmio::cpu;

    use super::*;
    use crate::tuning::Prefetch;

    fn bench() -> Option<Bench> {
        Bench::new(cpu::two_cores()?, Instant::now() + Duration::from_secs(100))
    }

    #[test]
    fn line_goes_there_and_back() {
        let Some(bench) = bench() else { return };
        assert!(bench.line_ns().expect("no deadline passed") > 0.0);
    }

    /// Each candidate finds the window as the first one did, and every message of each arrives.
    #[test]
    fn candidates_of_every_kind_are_timed_in_every_round() {
        let Some(bench) = bench() else { return };
        let receive =
            ReceiveTuning { prefetch: Prefetch::Write { lines: 16 }, in_groups: false, credit_parts: 32 };
        let kernels = StoreKernel::available().into_iter().filter(|kernel| kernel.is_for_memory());
        let candidates: Vec<Candidate> = kernels
            .zip([Taking::Drain, Taking::Poll].into_iter().cycle())
            .map(|(kernel, taking)| Candidate { kernel, receive, taking })
            .collect();
        let rounds = bench.streams(&candidates).expect("no deadline passed");
        assert_eq!(rounds.len() as u64, ROUNDS);
        assert!(rounds.iter().all(|round| round.len() == candidates.len()), "{rounds:?}");
        assert!(rounds.iter().flatten().all(|ns| *ns > 0.0 && ns.is_finite()), "{rounds:?}");
        let kernels: Vec<StoreKernel> = candidates.iter().map(|candidate| candidate.kernel).collect();
        let trips = bench.round_trips(&kernels).expect("no deadline passed");
        assert!(trips.iter().all(|round| round.len() == kernels.len()), "{trips:?}");
        assert!(bench.line_ns().is_some(), "the line is free between the streams");
    }
}
