//! What every bench is told: how long, on which cores.

use beeline_mmio::cpu;

use crate::BenchError;

/// Two cores: one for each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// Sender, or the side that holds the clock.
    pub first: usize,
    /// Receiver, or the side that answers.
    pub second: usize,
}

impl Cores {
    /// The first two cores that this process may run on.
    ///
    /// # Errors
    /// [`BenchError::Cores`] when there is one only: two spinning sides on it would measure the scheduler.
    pub fn pair() -> Result<Self, BenchError> {
        match *cpu::allowed_cores() {
            [first, second, ..] => Ok(Cores { first, second }),
            ref cores => Err(BenchError::Cores { allowed: cores.len() }),
        }
    }
}

/// Pins the calling thread.
///
/// # Errors
/// [`BenchError::Pin`].
pub(crate) fn pin(core: usize) -> Result<(), BenchError> {
    cpu::pin_current_thread(core).map_err(|error| BenchError::Pin { core, reason: error.to_string() })
}

/// How a bench is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Cores of the two sides.
    pub cores: Cores,
    /// Rounds of each path; paths alternate within a round.
    pub rounds: u32,
    /// Messages a round of a stream, in thousands.
    pub stream_thousands: u32,
    /// Round trips a round, in thousands.
    pub trip_thousands: u32,
    /// Lines of every window and ring, a power of two.
    pub window_lines: u32,
}

impl Settings {
    /// The settings that reported figures are made with: some seconds a bench.
    ///
    /// # Errors
    /// As [`Cores::pair`].
    pub fn full() -> Result<Self, BenchError> {
        let cores = Cores::pair()?;
        Ok(Settings { cores, rounds: 15, stream_thousands: 4000, trip_thousands: 50, window_lines: 16384 })
    }

    /// A short look, under a second a bench on a quiet machine.
    ///
    /// # Errors
    /// As [`Cores::pair`].
    pub fn quick() -> Result<Self, BenchError> {
        Ok(Settings { rounds: 5, stream_thousands: 500, trip_thousands: 5, ..Settings::full()? })
    }

    pub(crate) fn stream_messages(&self) -> u64 {
        u64::from(self.stream_thousands) * 1000
    }

    pub(crate) fn trips(&self) -> u64 {
        u64::from(self.trip_thousands) * 1000
    }
}
