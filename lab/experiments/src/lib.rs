//! Experiments in virtual time: a host half, a machine and a NIC put together, traffic sent through them, and what came
//! of it.
//!
//! The host halves are those of `host/driver` and the NIC is that of `nic/model`, or with the feature `rtl` the RTL of `nic/rtl` on its clock
//! (or anything else behind the device trait): nothing of either is written twice. From: platform files and what a user
//! asks for. To: `link/sim`. Not here: the machine, and what is printed.
#![forbid(unsafe_code)]

mod assembly;
mod branches;
mod bring_up;
mod cost;
mod counter;
pub mod devices;
mod error;
mod experiment;
mod frames;
mod latencies;
pub mod measure;
mod nic;
mod outcome;
#[cfg(feature = "rtl")]
mod rtl;
mod run;
mod sender;
mod spans;
mod trace;
mod traffic;
mod watched;

pub use assembly::{Data, machine, machine_for};
pub use branches::check_devices;
pub use bring_up::Station;
pub use cost::Cost;
pub use error::LabError;
pub use experiment::{Experiment, Measured};
pub use frames::Frames;
pub use latencies::{LatencyHistogram, Summary};
pub use nic::{NicKind, NicShape, model_nic};
pub use outcome::{FrameTimes, Outcome, Share};
#[cfg(feature = "rtl")]
pub use rtl::rtl_nic;
pub use sender::Run;
pub use spans::Spans;
pub use trace::{Numbered, Trace};
pub use traffic::{Arrivals, Traffic};
pub use watched::{Act, Noted, Watched};
