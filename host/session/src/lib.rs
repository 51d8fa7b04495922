//! A NIC process, a port of it, and one job on one of its interfaces.
//!
//! A [`PrivateNic`] is always a process of its own, on the other core; a [`Session`] opens a port of it, and a [`Job`]
//! runs with both halves of a queue: [`Latency`], [`ThereAndBack`] and [`TransmitRate`] are the timed ones. One thread
//! sends and receives, so that there is one clock. Every frame that comes back is compared byte for byte, every frame
//! that does not is counted by the device, and what is wrong gives an error instead of a figure. The arrangement with
//! loop-back is the one that kPIO+WC measures in section IV.
//!
//! Also here: other processes of the same program ([`Role`]), domains for one run ([`PrivateDomain`]), and the NIC
//! process itself ([`serve`]).
//!
//! Frames go from here to `host/driver` and through `link/shm` to `nic/process`. Not here: tables and reports
//! (`app/beeline`, `bench/`).
#![forbid(unsafe_code)]

mod error;
mod exchange;
mod frames;
mod idle_watch;
mod latency;
mod nic_options;
mod private_domain;
mod private_nic;
mod rate;
mod role;
mod serve;
mod session;
mod watchdog;

pub use error::{NicError, how_to_start, with_causes};
pub use exchange::{finish, padded_bytes, receive_one, send_one};
pub use frames::{Frames, HEADER_BYTES};
pub use idle_watch::IdleWatch;
pub use latency::{Latency, Times, new_times};
pub use nic_options::NicOptions;
pub use private_domain::PrivateDomain;
pub use private_nic::PrivateNic;
pub use rate::{BURST, IN_FLIGHT, MAX_BURST, Rated, ThereAndBack, TransmitRate};
pub use role::{Program, Role};
pub use serve::{ServeArgs, Sizes, check_uplinks, end_with_stdin, process_config, run_ready, serve};
pub use session::{Job, Queue, Rx, Session, SessionOptions, TIMEOUT, kernel_name};
pub use watchdog::Watchdog;
