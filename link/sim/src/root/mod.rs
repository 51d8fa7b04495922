//! The root complex: between cores and memory on one side, and the wire on the other.
//!
//! From: cores ([`crate::cpu`]) and the link. To: the link and memory. Not here: what the bytes are ([`crate::machine`]).

mod bandwidth;
mod inbound;
mod outbound;
mod settings;

pub use bandwidth::Bandwidth;
pub use inbound::Inbound;
pub use outbound::{Outbound, Outgoing};
pub use settings::RootSettings;
