//! Passes through the NIC, timed one by one.
//!
//! The clock is read before a frame is handed over and when it is in hand again; it is copied and compared after that.

use beeline_driver::Transmit;
use beeline_mmio::clock::{Calibration, now_ticks};
use hdrhistogram::Histogram;

use crate::{Frames, Job, NicError, Rx, Session, padded_bytes, receive_one, send_one};

/// Times of frames, in ns.
pub type Times = Histogram<u64>;

/// An empty histogram of times up to a minute, three digits kept.
pub fn new_times() -> Times {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are constants that the crate accepts")
}

/// Frames through the NIC and back, one at a time.
#[derive(Debug)]
pub struct Latency<R> {
    pub frame_bytes: usize,
    /// Passes of one sample: 1 for one-way, 2 for a round trip (the frame there, the answer back).
    pub passes: u32,
    pub samples: u64,
    /// Untimed samples before.
    pub warm_up: u64,
    /// Ticks to ns.
    pub calibration: Calibration,
    /// Gets the ns of each sample, outside of what is timed.
    pub record: R,
}

impl<R: FnMut(f64)> Job for Latency<R> {
    type Output = ();
    type Error = NicError;

    fn run<T: Transmit>(mut self, session: &mut Session, tx: &mut T, rx: &mut Rx) -> Result<(), NicError> {
        let mac = session.mac();
        let mut sent = Frames::new(self.frame_bytes, mac, mac).buffer();
        let mut expected = sent.clone();
        expected.resize(padded_bytes(self.frame_bytes, tx), 0);
        let mut found = Vec::with_capacity(expected.len());
        for number in 0..self.warm_up + self.samples {
            Frames::number(&mut sent, number);
            expected[..sent.len()].copy_from_slice(&sent);
            let start = now_ticks();
            let mut end = start;
            for _ in 0..self.passes {
                send_one(session, tx, &sent)?;
                end = receive_one(session, rx, &mut found)?;
                Frames::check(&expected, &found, number)?;
            }
            if number >= self.warm_up {
                (self.record)(self.calibration.to_ns(end - start));
            }
        }
        Ok(())
    }
}
