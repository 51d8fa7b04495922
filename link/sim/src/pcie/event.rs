//! What can happen on a link, and where.

use super::{Dllp, Tlp};
use crate::des::Picoseconds;

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Side {
    /// Towards the root complex.
    Upstream,
    /// Towards the device.
    Downstream,
}

impl Side {
    /// The end across.
    #[inline]
    pub const fn other(self) -> Side {
        match self {
            Side::Upstream => Side::Downstream,
            Side::Downstream => Side::Upstream,
        }
    }
}

/// Which link of a model; its events carry it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u16);

/// Something that happens on a link. A model's event can be made from it; the model hands it to
/// [`Link::happen`](super::Link::happen) of the link that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEvent {
    pub link: LinkId,
    /// At which of its ends.
    pub side: Side,
    pub what: LinkStep,
}

/// What happens at an end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LinkStep {
    /// The wire that leaves this side is free.
    WireFree,
    /// The next TLP on its way is at this side.
    TlpArrives,
    /// The next DLLP on its way is at this side.
    DllpArrives,
    /// It may be time for this side to acknowledge, or to give credits back.
    Answer,
}

/// A packet that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The end of the link at which the packet arrived. Whoever takes the packet there calls
    /// [`Link::free`](super::Link::free) when it has left the buffer.
    pub side: Side,
    /// The packet.
    pub tlp: Tlp,
}

/// A packet on the wire, as a protocol analyser at the transmitter shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    pub at: Picoseconds,
    pub ends_at: Picoseconds,
    /// Which end it left.
    pub from: Side,
    pub packet: Packet,
}

/// A packet of one of the two layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    Tlp(Tlp),
    Dllp(Dllp),
}

/// Wraps a step of a link as an event of the model.
pub(super) fn event<E: From<LinkEvent>>(link: LinkId, side: Side, what: LinkStep) -> E {
    LinkEvent { link, side, what }.into()
}
