//! A PCI Express link in virtual time.
//!
//! [`Link`] joins two ends. A model hands it packets ([`Tlp`]: a kind, an address, a length; no bytes) and is handed them
//! back at the other end, in an order that [`may_pass`] permits, at the picosecond at which their last byte is there. What
//! it is made of stands alone as well: [`requests`] and [`completions`] cut transfers into packets, [`Credits`] say what a
//! transmitter may send, [`TransmitQueue`] what goes next, [`Serializer`] when it is there.
//!
//! Section numbers are those of the PCI Express Base Specification, revision 6.0. One virtual channel, one traffic class.
//! Not modelled: errors and replays, power states, PADs behind a packet that leaves lanes over, ordered sets among flits.
//!
//! From: a model that has cut its transfers into packets. To: a model at the other end, which frees what it has taken.
//! [`Hop`] puts two links in a row, [`Switch`] joins any number. Not here: root complex, devices.

mod credits;
mod dllp;
mod event;
mod hop;
mod link;
mod malformed;
mod ordering;
mod queue;
mod rate;
mod serializer;
mod settings;
mod split;
mod switch;
mod tlp;

pub use credits::{Advertised, Amount, Credits, Limit, TooManyCredits};
pub use dllp::{AckRule, DLLP_BYTES, Dllp, UpdateRule, latency_limit, latency_limit_symbols};
pub use event::{Arrival, LinkEvent, LinkId, LinkStep, Packet, Passed, Side};
pub use hop::{Hop, HopEvent};
pub use link::Link;
pub use malformed::Malformed;
pub use ordering::{MayPass, may_pass};
pub use queue::TransmitQueue;
pub use rate::{Encoding, Generation, Lanes, WireTime};
pub use serializer::{Carried, CarriedKind, FLIT_BYTES, FLIT_TLP_BYTES, Serializer};
pub use settings::{LinkSettings, SettingsError};
pub use split::{Answers, Cut, PAGE_BYTES, Piece, Pieces, completions, requests, runs};
pub use switch::{
    Downstream, Entered, Group, LinkEnd, Receiver, Switch, SwitchError, SwitchEvent, UPSTREAM_PORT,
};
pub use tlp::{Class, Header, Kind, Tlp};
