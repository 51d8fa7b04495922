//! Two hosts that a bridge with registers and windows joins: what a driver of such a bridge does, and messages across it.
//!
//! The bridge is `link/sim`'s. [`NtbPort`] is what a driver asks of it, [`Offer`] what both sides tell each other by scratchpads before
//! anything else, [`NtbLink`] windows of `host/window` through it, and `transport.rs` messages as Linux's `ntb_transport` sends them, to compare.
//! `docs/ntb.md` says which of it is which of real hardware. Record 0091.

mod costs;
mod latencies;
mod link;
mod offer;
mod port;
mod transport;

pub use costs::{NtbCosts, ntb_costs};
pub use latencies::{NtbMethod, NtbRow, ntb_latencies, ntb_of};
pub use link::{Agreed, NTB_DOORBELL, NtbError, NtbLink};
pub use offer::{Limits, OFFER_WORDS, Offer, Unfit};
pub use port::NtbPort;
