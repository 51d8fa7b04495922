//! Interrupts: what a member makes for others to trigger, and what they do.
//!
//! An interrupt is an entry of its member's board, found by number and connected to by a claim, as a segment is. What happens at the speed
//! of stores is not the member's: whoever triggers has a [`Trigger`](remote::Trigger), which raises a count that it alone stores, and
//! whoever waits has a [`Take`](take::Take), which compares counts with what it has seen (eXpressWare, SISCI: interrupts; decision 0044).

pub(crate) mod bell;
pub(crate) mod local;
pub(crate) mod remote;
pub(crate) mod take;

use crate::ids::{InterruptNumber, Name, NameKind, NodeId, Slot};

/// Bytes of the longest message of a data interrupt.
pub const MAX_MESSAGE_BYTES: usize = 2048;

/// What triggers of an interrupt are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptKind {
    /// All that come between two waits are one.
    Plain,
    /// Each that comes is one, and has its wait.
    Counting,
    /// Each is a message.
    Data,
}

/// Where an interrupt is on the board of its member, and which of those that were there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The entry of the board.
    pub slot: Slot,
    pub incarnation: u32,
}

/// The name under which others look for an interrupt of a node. [`NodeId::GROUPS`] stands for the fabric, whose interrupts all carry messages.
pub(crate) fn name_of(node: NodeId, number: InterruptNumber, has_data: bool) -> Name {
    let kind = match (node, has_data) {
        (NodeId::GROUPS, true) => NameKind::GroupInterrupt,
        (_, true) => NameKind::DataInterrupt,
        (_, false) => NameKind::Interrupt,
    };
    Name { kind, number: number.0 }
}
