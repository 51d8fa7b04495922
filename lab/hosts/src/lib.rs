//! A fabric of several hosts in virtual time: members of `host/fabric` on hosts that are joined by PCI Express.
//!
//! Nothing of the fabric is written twice: a member here is the state machine that runs in processes, over words that are pushed into the
//! memory of other hosts ([`Across`]). From: a platform file ([`hosts`]), and programs ([`run`]). To: `link/sim`. Not here: what
//! anything costs. Records 0049, 0060, 0061, 0066, 0070 and 0091.
#![forbid(unsafe_code)]

mod assembly;
mod attached;
mod between;
mod device;
mod devices;
mod dma;
mod dma_job;
mod dma_measures;
mod engine;
mod group;
mod interrupt;
mod interrupt_latency;
mod lines;
mod mapped;
mod measure;
mod member;
mod messages;
mod names;
mod ntb;
mod peer;
mod programs;
mod session;
mod throughput;
mod wiring;
mod words;
mod yard;

pub use assembly::{Shape, hosts};
pub use device::Device;
pub use dma_job::DmaQueueId;
pub use dma_measures::{Mover, dma_rate_gbps, move_latency_ns};
pub use group::HeldGroup;
pub use interrupt::{Connected, Interrupt, InterruptOptions};
pub use interrupt_latency::{interrupt_latency_ns, message_latency_ns};
pub use mapped::{Mapped, Start};
pub use measure::{multicast_ns, ping_pong_ns, store_latency_ns};
pub use member::HostMember;
pub use messages::{DataConnected, DataInterrupt};
pub use ntb::{
    Agreed, Limits, NTB_DOORBELL, NtbCosts, NtbError, NtbLink, NtbMethod, NtbPort, NtbRow, OFFER_WORDS,
    Offer, Unfit, ntb_costs, ntb_latencies, ntb_of,
};
pub use programs::{Core, Program, run};
pub use throughput::{store_rate_gbps, store_time_ns, striped_rate_gbps};
pub use wiring::{BANK_BYTES, Wiring, node_of};
pub use words::{Across, Published, View};
