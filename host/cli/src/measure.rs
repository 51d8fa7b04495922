//! The loops that are timed: one thread sends and polls its own receive ring, so that there is one clock.
//!
//! The NIC, another process on another core, gives every frame back to its sender. Every frame is compared byte for
//! byte after its time was taken.

use beeline_driver::{Receive, Sent, Transmit};
use beeline_mmio::clock::{Calibration, now_ticks};
use hdrhistogram::Histogram;

use crate::failure::Failure;
use crate::session::{Job, Rx, Session, Watchdog};
use crate::traffic::Frames;

/// Times of frames, in ns.
pub type Times = Histogram<u64>;

/// Passes through the NIC that are timed one by one.
pub struct Latency {
    /// Frame bytes.
    pub frame_bytes: usize,
    /// Passes of one sample: 1 for one-way, 2 for a round trip (the frame there, the answer back).
    pub passes: u32,
    /// Samples.
    pub samples: u64,
    /// Untimed samples before.
    pub warm_up: u64,
    /// Ticks to ns.
    pub calibration: Calibration,
}

impl Job for Latency {
    type Output = Times;

    fn run<T: Transmit>(self, session: &mut Session, tx: &mut T, rx: &mut Rx) -> Result<Times, Failure> {
        let mac = session.mac();
        let mut sent = Frames::new(self.frame_bytes, mac, mac).buffer();
        let mut expected = sent.clone();
        let mut found = Vec::with_capacity(padded(self.frame_bytes, tx));
        expected.resize(padded(self.frame_bytes, tx), 0);
        let mut times = new_times();
        for sample in 0..self.warm_up + self.samples {
            Frames::number(&mut sent, sample);
            expected[..sent.len()].copy_from_slice(&sent);
            let start = now_ticks();
            let mut end = start;
            for _ in 0..self.passes {
                send_one(session, tx, &sent)?;
                end = receive_one(session, rx, &mut found)?;
                if let Some(wrong) = Frames::difference(&expected, &found) {
                    return Err(Failure::new(format!("frame {sample} of {} bytes: {wrong}", sent.len())));
                }
            }
            if sample >= self.warm_up {
                times.saturating_record(self.calibration.to_ns(end - start) as u64);
            }
        }
        Ok(times)
    }
}

/// An empty histogram of times up to a minute, three digits kept.
pub fn new_times() -> Times {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are constants that the crate accepts")
}

/// Bytes a frame has on arrival: some interfaces pad (kPIO+WC to multiples of 8).
fn padded<T: Transmit>(bytes: usize, tx: &T) -> usize {
    bytes.next_multiple_of(tx.declared().frame_multiple_bytes)
}

/// Hands a frame over, waiting for room.
///
/// # Errors
/// The queue refuses the frame, or room does not come.
pub fn send_one<T: Transmit>(session: &mut Session, tx: &mut T, frame: &[u8]) -> Result<(), Failure> {
    let mut watchdog = Watchdog::new();
    loop {
        match tx.try_send(frame).map_err(|e| Failure::new("cannot send").because(e))? {
            Sent::Sent => return Ok(()),
            Sent::Full => {
                tx.progress().map_err(|e| Failure::new("cannot send").because(e))?;
                watchdog.idle(session, "room to send")?;
            }
        }
    }
}

/// Waits for a frame; the time in ticks at which it was in hand. Its bytes are copied to `found` after that.
///
/// # Errors
/// The device broke the protocol, or nothing comes.
pub fn receive_one(session: &mut Session, rx: &mut Rx, found: &mut Vec<u8>) -> Result<u64, Failure> {
    let mut watchdog = Watchdog::new();
    loop {
        if let Some(mut frame) = rx.poll().map_err(|e| Failure::new("cannot receive").because(e))? {
            let end = now_ticks();
            frame.copy_to(found);
            return Ok(end);
        }
        watchdog.idle(session, "a frame to come back")?;
    }
}

/// Frames a second.
pub struct Rate {
    /// Frame bytes.
    pub frame_bytes: usize,
    /// Frames to send.
    pub frames: u64,
    /// Frames handed over at once.
    pub burst: usize,
    /// Frames that may be under way.
    pub in_flight: u64,
    /// Ticks to ns.
    pub calibration: Calibration,
}

/// What a [`Rate`] measured.
#[derive(Clone, Copy, Debug)]
pub struct Rated {
    /// From the first frame handed over to the last one in hand, in s.
    pub seconds: f64,
    /// Time of this thread inside calls that sent or received something, per frame, in ns.
    pub host_ns_per_frame: f64,
}

impl Job for Rate {
    type Output = Rated;

    fn run<T: Transmit>(self, session: &mut Session, tx: &mut T, rx: &mut Rx) -> Result<Rated, Failure> {
        let mac = session.mac();
        let frames = Frames::new(self.frame_bytes, mac, mac);
        let mut buffers: Vec<Vec<u8>> = (0..self.burst).map(|_| frames.buffer()).collect();
        let mut expected = frames.buffer();
        expected.resize(padded(self.frame_bytes, tx), 0);
        let mut found = Vec::with_capacity(expected.len());
        let (mut sent, mut received, mut busy_ticks) = (0u64, 0u64, 0u64);
        let mut watchdog = Watchdog::new();
        let start = now_ticks();
        while received < self.frames {
            let before = (sent, received);
            let begin = now_ticks();
            let room =
                (self.frames - sent).min(self.in_flight - (sent - received)).min(self.burst as u64) as usize;
            // A burst is offered whole or not at all, as a program that batches would.
            if room == self.burst || (room > 0 && sent + room as u64 == self.frames) {
                sent += self.offer(tx, &mut buffers[..room], sent)?;
            }
            received += self.take(rx, &mut expected, &mut found, received)?;
            if before == (sent, received) {
                tx.progress().map_err(|e| Failure::new("cannot send").because(e))?;
                watchdog.idle(session, "frames to come back")?;
            } else {
                busy_ticks += now_ticks() - begin;
                watchdog.pat();
            }
        }
        let seconds = self.calibration.to_ns(now_ticks() - start) / 1e9;
        let host_ns_per_frame = self.calibration.to_ns(busy_ticks) / self.frames as f64;
        Ok(Rated { seconds, host_ns_per_frame })
    }
}

/// Longest burst; the references to a burst's frames lie on the stack.
pub const MAX_BURST: usize = 64;

impl Rate {
    fn offer<T: Transmit>(&self, tx: &mut T, buffers: &mut [Vec<u8>], first: u64) -> Result<u64, Failure> {
        for (frame, number) in buffers.iter_mut().zip(first..) {
            Frames::number(frame, number);
        }
        let mut burst: [&[u8]; MAX_BURST] = [&[]; MAX_BURST];
        for (slot, frame) in burst.iter_mut().zip(buffers.iter()) {
            *slot = frame;
        }
        let count = buffers.len().min(MAX_BURST);
        let taken = tx.try_send_burst(&burst[..count]).map_err(|e| Failure::new("cannot send").because(e))?;
        Ok(taken as u64)
    }

    fn take(
        &self,
        rx: &mut Rx,
        expected: &mut [u8],
        found: &mut Vec<u8>,
        first: u64,
    ) -> Result<u64, Failure> {
        let mut count = 0;
        while count < self.burst as u64 {
            let Some(mut frame) = rx.poll().map_err(|e| Failure::new("cannot receive").because(e))? else {
                break;
            };
            frame.copy_to(found);
            drop(frame);
            Frames::number(&mut expected[..self.frame_bytes], first + count);
            if let Some(wrong) = Frames::difference(expected, found) {
                let number = first + count;
                return Err(Failure::new(format!("frame {number} of {} bytes: {wrong}", self.frame_bytes)));
            }
            count += 1;
        }
        Ok(count)
    }
}
