//! What every bench is told: how long, on which cores.

use std::time::Duration;

use beeline_floor::Cores;
use beeline_floor::rounds::Keep;
use beeline_session::Program;

use crate::BenchError;

/// How a bench is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Cores of the two sides.
    pub cores: Cores,
    /// Rounds of each path; paths alternate within a round.
    pub rounds: u32,
    /// Whether rounds in which the cores moved are dropped.
    pub keep: Keep,
    /// Messages a round of a stream, in thousands.
    pub stream_thousands: u32,
    /// Round trips a round, in thousands.
    pub trip_thousands: u32,
    /// Items of a store that is filled, in thousands.
    pub fill_thousands: u32,
    /// Only cases with this in their names, of a bench that has cases.
    pub only: Option<String>,
    /// Lines of every window and ring, a power of two.
    pub window_lines: u32,
    /// What NIC processes and victims are started from: it has the hidden subcommands of `beeline-bench`.
    pub program: Program,
}

impl Settings {
    /// The settings that reported figures are made with: some seconds a bench.
    ///
    /// # Errors
    /// As [`Cores::pair`]; [`BenchError::Role`] when this program's own file cannot be found.
    pub fn full() -> Result<Self, BenchError> {
        let cores = Cores::pair()?;
        let program = Program::own()?;
        Ok(Settings {
            cores,
            rounds: 15,
            keep: Keep::Steady,
            stream_thousands: 4000,
            trip_thousands: 50,
            fill_thousands: 1000,
            only: None,
            window_lines: 16384,
            program,
        })
    }

    /// A short look, under a second a bench on a quiet machine.
    ///
    /// # Errors
    /// As [`Settings::full`].
    pub fn quick() -> Result<Self, BenchError> {
        Ok(Settings {
            rounds: 5,
            stream_thousands: 500,
            trip_thousands: 5,
            fill_thousands: 200,
            ..Settings::full()?
        })
    }

    pub(crate) fn stream_messages(&self) -> u64 {
        u64::from(self.stream_thousands) * 1000
    }

    pub(crate) fn trips(&self) -> u64 {
        u64::from(self.trip_thousands) * 1000
    }

    pub(crate) fn fill_items(&self) -> u64 {
        u64::from(self.fill_thousands) * 1000
    }

    /// How long a round of GETs lasts about: as long as the trips of a round would at a microsecond each.
    pub(crate) fn round_of_gets(&self) -> Duration {
        Duration::from_micros(self.trips())
    }
}
