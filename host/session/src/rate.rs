//! Frames a second, handed over in bursts: there and back, and onto the wire with no way back.
//!
//! There and back, one thread does both halves, so the figure is of a program that sends and receives. Onto the wire,
//! nothing is received: the device transmits to a switch with nobody there, and its own counter tells what it did.

use beeline_driver::{Receive, Transmit};
use beeline_mmio::clock::{Calibration, now_ticks};

use crate::{Frames, Job, NicError, Rx, Session, Watchdog, finish, padded_bytes};

/// Frames handed over at once where nothing else is asked for: what DPDK programs use.
pub const BURST: usize = 32;

/// Frames that may be under way there and back where nothing else is asked for.
pub const IN_FLIGHT: u64 = 256;

/// Longest burst; the references to a burst's frames lie on the stack.
pub const MAX_BURST: usize = 64;

const _: () = assert!(BURST <= MAX_BURST);

/// A station address that no port has: a switch without up-links and other ports sends such a frame nowhere.
const NOBODY: [u8; 6] = [2, 0, 0, 0, 0, 0xfe];

/// Rate of one measurement.
#[derive(Clone, Copy, Debug)]
pub struct Rated {
    /// Frames measured.
    pub frames: u64,
    /// From the first frame handed over to the last one in hand, or finished by the device, in s.
    pub seconds: f64,
    /// Time of this thread inside calls that sent or received something, per frame, in ns.
    pub host_ns_per_frame: f64,
}

impl Rated {
    fn new(frames: u64, calibration: Calibration, all_ticks: u64, busy_ticks: u64) -> Self {
        let seconds = calibration.to_ns(all_ticks) / 1e9;
        Rated { frames, seconds, host_ns_per_frame: calibration.to_ns(busy_ticks) / frames as f64 }
    }

    /// Returns frames divided by the measured seconds.
    pub fn frames_per_second(&self) -> f64 {
        self.frames as f64 / self.seconds
    }
}

/// Buffers of one burst's frames.
struct Burst {
    buffers: Vec<Vec<u8>>,
}

impl Burst {
    /// Makes buffers for `count` frames, at most [`MAX_BURST`].
    fn new(frames: &Frames, count: usize) -> Self {
        Burst { buffers: (0..count.clamp(1, MAX_BURST)).map(|_| frames.buffer()).collect() }
    }

    /// Offers `count` frames, numbered from `first` on; how many were taken.
    fn offer<T: Transmit>(&mut self, tx: &mut T, first: u64, count: u64) -> Result<u64, NicError> {
        let count = self.buffers.len().min(count as usize);
        let mut burst: [&[u8]; MAX_BURST] = [&[]; MAX_BURST];
        for ((slot, frame), number) in burst.iter_mut().zip(&mut self.buffers[..count]).zip(first..) {
            Frames::number(frame, number);
            *slot = frame;
        }
        Ok(tx.try_send_burst(&burst[..count])?.0 as u64)
    }
}

/// Frames a second through a NIC that gives every frame back to its sender.
#[derive(Clone, Copy, Debug)]
pub struct ThereAndBack {
    pub frame_bytes: usize,
    /// Frames to send.
    pub frames: u64,
    /// Frames handed over at once, at most [`MAX_BURST`].
    pub burst: usize,
    /// Frames that may be under way.
    pub in_flight: u64,
    /// Ticks to ns.
    pub calibration: Calibration,
}

impl Job for ThereAndBack {
    type Output = Rated;
    type Error = NicError;

    fn run<T: Transmit>(self, session: &mut Session, tx: &mut T, rx: &mut Rx) -> Result<Rated, NicError> {
        let mac = session.mac();
        let frames = Frames::new(self.frame_bytes, mac, mac);
        let mut burst = Burst::new(&frames, self.burst);
        let whole = burst.buffers.len() as u64;
        let mut expected = frames.buffer();
        expected.resize(padded_bytes(self.frame_bytes, tx), 0);
        let mut found = Vec::with_capacity(expected.len());
        let (mut sent, mut received, mut busy_ticks) = (0, 0, 0);
        let mut watchdog = Watchdog::new();
        let start = now_ticks();
        while received < self.frames {
            let before = (sent, received);
            let begin = now_ticks();
            let room = (self.frames - sent).min(self.in_flight - (sent - received)).min(whole);
            // A burst is offered whole or not at all, as a program that batches would.
            if room == whole || (room > 0 && sent + room == self.frames) {
                sent += burst.offer(tx, sent, room)?;
            }
            received += self.take(rx, &mut expected, &mut found, received)?;
            if before == (sent, received) {
                tx.progress()?;
                watchdog.idle(session, "frames to come back")?;
            } else {
                busy_ticks += now_ticks() - begin;
                watchdog.pat();
            }
        }
        Ok(Rated::new(self.frames, self.calibration, now_ticks() - start, busy_ticks))
    }
}

impl ThereAndBack {
    /// Takes what has come, a burst at most, and compares it.
    fn take(
        &self,
        rx: &mut Rx,
        expected: &mut [u8],
        found: &mut Vec<u8>,
        first: u64,
    ) -> Result<u64, NicError> {
        let mut count = 0;
        while count < self.burst as u64 {
            let Some(mut frame) = rx.poll()? else { break };
            frame.copy_to(found);
            drop(frame);
            Frames::number(&mut expected[..self.frame_bytes], first + count);
            Frames::check(expected, found, first + count)?;
            count += 1;
        }
        Ok(count)
    }
}

/// Frames a second that a NIC without loop-back, whose only port this is, puts on the wire.
#[derive(Clone, Copy, Debug)]
pub struct TransmitRate {
    pub frame_bytes: usize,
    /// Frames to send.
    pub frames: u64,
    /// Frames handed over at once, at most [`MAX_BURST`].
    pub burst: usize,
    /// Ticks to ns.
    pub calibration: Calibration,
}

impl Job for TransmitRate {
    type Output = Rated;
    type Error = NicError;

    fn run<T: Transmit>(self, session: &mut Session, tx: &mut T, _rx: &mut Rx) -> Result<Rated, NicError> {
        let mut burst = Burst::new(&Frames::new(self.frame_bytes, NOBODY, session.mac()), self.burst);
        let counted_before = session.frames_on_the_wire()?;
        let (mut sent, mut busy_ticks) = (0, 0);
        let mut watchdog = Watchdog::new();
        let start = now_ticks();
        while sent < self.frames {
            let begin = now_ticks();
            let taken = burst.offer(tx, sent, self.frames - sent)?;
            if taken == 0 {
                tx.progress()?;
                watchdog.idle(session, "room to send")?;
            } else {
                sent += taken;
                busy_ticks += now_ticks() - begin;
                watchdog.pat();
            }
        }
        finish(session, tx)?;
        let all_ticks = now_ticks() - start;
        // The counter wraps, its growth does not.
        let counted = session.frames_on_the_wire()?.wrapping_sub(counted_before);
        if counted != sent {
            return Err(NicError::Miscounted { sent, counted });
        }
        Ok(Rated::new(sent, self.calibration, all_ticks, busy_ticks))
    }
}
