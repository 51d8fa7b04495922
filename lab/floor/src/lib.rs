//! Two pinned threads with a window between them, and what they do with no protocol at all: the floor of every figure.
//!
//! Measurements of this machine stand on it: `bench/`, and `beeline compare`. A figure is only ever compared with another
//! one of the same run. Not here: rivals and reports (`bench/`), virtual time (`lab/experiments`).
#![forbid(unsafe_code)]

mod bare;
mod cores;
mod error;
mod fenced;
mod memory;
mod placement;
pub mod rounds;
mod sides;
mod traffic;

pub use bare::{BareEnd, bare_store_rate, bare_stream_rate, bare_trip_p50_ns, bare_trips, bare_work_rates};
pub use cores::{Cores, on_core, pin};
pub use error::FloorError;
pub use fenced::{FencedRun, ReadBack, fenced_stores, read_back};
pub use memory::{LapEnds, LocalCredits, MEMORY, Unreceived, WindowMemory, lap_window};
pub use placement::{LineTrip, Placement};
pub use sides::{Sides, Start, rate};
pub use traffic::{Source, Sum};
