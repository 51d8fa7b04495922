//! The behavioural NIC: what the hardware does, in Rust, without a clock or a pin.
//!
//! [`Nic`] is a [`Device`](beeline_contract_device::Device): a link calls it when a write, a read, a DMA answer, a frame or
//! time arrives and asks it what it wants. It runs unchanged behind real memory (`link/shm`), virtual PCIe time
//! (`link/sim`) and in tests, and the RTL (`nic/rtl`) must agree with it on every vector in `spec/vectors`.
//!
//! Read in the order a frame goes: [`Nic`] (`nic.rs`), `bar.rs` and `interfaces.rs` (the list of engines), `mmio/` (ours),
//! `kpio/`, `descriptor/`, `inline/`, `enso/`, `niq/` and `coherent/` (what we compare with; `fetch/` is what they share),
//! `egress/`, and `rx/` for the way back. `lifecycle.rs`, `queue_state.rs` and `registers.rs` are the control side. Not
//! here: memory, threads, sockets, the wire, and anything of the host.
#![forbid(unsafe_code)]

mod bar;
mod coherent;
mod config;
mod counters;
mod deadlines;
mod descriptor;
mod dma_port;
mod egress;
mod engine;
mod enso;
mod fetch;
mod inline;
mod interfaces;
mod interrupts;
mod kpio;
mod lifecycle;
mod mmio;
mod nic;
mod niq;
mod outgoing;
mod pieces;
mod queue_state;
mod registers;
mod rx;
mod watch_port;

pub use config::{ConfigError, NicConfig};
pub use counters::{Counters, DISPLACEMENT_BUCKETS, TLP_BYTES_BUCKETS};
pub use nic::Nic;
