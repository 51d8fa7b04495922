//! Measured comparisons: our paths and their rivals, side by side in one run.
//!
//! Every bench is a library function that gives a [`Report`] of [`Figure`]s with their raw samples, and [`Verdict`]s
//! where there is a target. The `beeline-bench` program lists, runs, prints and writes them; `beeline compare` reuses
//! the pieces. A figure is only ever compared with another one of the same run, as a ratio: rounds of the two
//! alternate, so that what else the machine does hits both. Rivals in this process are in `peers`, those in processes of
//! their own in [`rivals`], the floors in [`floor`], what goes through a NIC process in [`nic`]: that one, and any other
//! process of ours, is this program in a hidden subcommand ([`Role`]).
//!
//! Not here: figures of virtual time, but for how fast it is ([`simulation`]), and published figures (`bench/published/`).
//!
//! A new row is a function `fn(&Settings) -> Result<Report, BenchError>` and one line in `registry.rs`.
#![forbid(unsafe_code)]

mod duel;
pub mod echo;
mod error;
mod figure;
pub mod floor;
pub mod key_value;
pub mod kv;
mod memory;
pub mod nic;
pub mod nic_one_way;
pub mod nic_rate;
mod output;
mod patience;
pub mod peer_death;
pub mod peers;
mod private_domain;
mod registry;
pub mod rivals;
mod role;
pub mod round_trip;
pub mod rpc_rate;
pub mod rpc_ring;
pub mod rpc_round_trip;
mod settings;
pub mod simulation;
pub mod store;
pub mod stream;
mod traffic;
mod verdict;
pub mod veth;
pub mod wire_round_trip;
pub mod work;

pub use duel::{Duel, Start};
pub use error::{BenchError, with_causes};
pub use figure::{Figure, Latencies, Missing, Report, Row, Value};
pub use memory::{LocalCredits, MEMORY, Unreceived, WindowMemory};
pub use output::{to_table, write_csv};
pub use private_domain::PrivateDomain;
pub use registry::{BENCHES, Bench, find};
pub use role::{Program, Role};
pub use settings::{Cores, Settings, pin};
pub use traffic::{Source, Sum};
pub use verdict::{Bound, Verdict, paired_ratio};

/// Payload of a one-line message: a line less the header word.
pub const LINE_PAYLOAD_BYTES: usize = 56;
