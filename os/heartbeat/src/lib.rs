//! Whether the other side of a link is there, where no kernel sees both sides: link state by heartbeats with a declared bound.
//!
//! Two guests, or two hosts, share some memory and nothing else. Each pushes a line there in every half period and looks at the
//! other's ([`beeline_contract_link::StatePort`], [`MappedState`]); [`LinkState`] makes of it whether the link is up, in which
//! [`Session`], or why it is down ([`Down`]). [`HeartbeatLink`] does so by itself: one thread of the process beats for all links.
//!
//! Not here: peers under one kernel, which tells of their ends (`os/domain`). What kind of link it is says its
//! [`beeline_contract_link::LinkKind`], and a link whose kind has the kernel's evidence has no heartbeat: that does not compile.
//! Neither is here what the memory is used for, nor connections over a wire, which end by a silence of their own
//! (`host/datagram`). The protocol is that of Bidirectional Forwarding Detection (RFC 5880) over memory instead of packets:
//! each side names the other's number before the link is up. Decision 0036.
#![forbid(unsafe_code)]

mod beater;
mod kinds;
mod line;
mod link;
mod mapped;
mod peer;
mod state;
mod status;

pub use kinds::MappedFile;
pub use link::HeartbeatLink;
pub use mapped::{MappedState, Side};
pub use peer::{Gone, PeerEvidence};
pub use state::{Acceptance, LinkState};
pub use status::{Counters, Down, Session, Status};
