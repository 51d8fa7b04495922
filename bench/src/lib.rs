//! Measured comparisons: our paths and their rivals, side by side in one run.
//!
//! Every bench is a library function that gives a [`Report`] of [`Figure`]s with their raw samples, and [`Check`]s
//! where there is a target. The `beeline-bench` program lists, runs, prints and writes them. A figure is only ever compared
//! with another one of the same run, as a ratio: rounds of the two alternate, so that what else the machine does hits both.
//! Rivals in this process are in `peers`, those in processes of their own in [`rivals`]. The floors are `lab/floor`; what goes
//! through a NIC process is a job of `host/session`.
//!
//! Not here: figures of virtual time, but for how fast it is ([`simulation`]), and published figures (`bench/published/`).
//!
//! A new row is a function `fn(&Settings) -> Result<Report, BenchError>` and one line in `registry.rs`.
#![forbid(unsafe_code)]

pub mod attack;
pub mod byte_stream;
pub mod bytes;
mod check;
pub mod connect;
pub mod connection;
pub mod copy_sizes;
pub mod dma;
mod domain_args;
pub mod echo;
mod error;
mod fabric;
pub mod fail_over;
pub mod fan_in;
mod figure;
pub mod frames_under_attack;
pub mod group;
pub mod idle;
pub mod ip_round_trip;
pub mod key_value;
pub mod kv;
pub mod kv_fill;
pub mod lap;
mod median;
pub mod nic_one_way;
pub mod nic_rate;
mod output;
mod paths;
pub mod peer_death;
pub mod peers;
mod placed;
pub mod programs;
mod registry;
mod report;
pub mod rivals;
pub mod round_trip;
pub mod rpc_rate;
pub mod rpc_ring;
pub mod rpc_round_trip;
pub mod segment;
mod settings;
pub mod simulation;
pub mod sisci;
pub mod sockets_programs;
pub mod store;
pub mod stream;
mod transfer;
pub mod veth;
pub mod waiter;
pub mod wake_up;
pub mod watch_latency;
pub mod wire_round_trip;
pub mod work;

pub use check::{Bound, Check, paired_ratio};
pub use error::BenchError;
pub use figure::{Figure, Latencies, Row, Value};
pub use output::{to_table, write_csv};
pub use registry::{BENCHES, Bench, find, run_all};
pub use report::{Failed, Missing, Report};
pub use settings::Settings;

/// Payload of a one-line message: a line less the header word.
pub const LINE_PAYLOAD_BYTES: usize = 56;
