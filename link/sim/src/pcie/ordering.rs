//! Who may overtake whom: the ordering table of PCI Express.
//!
//! Base Specification, section 2.4.1 (transaction ordering rules), within one traffic class. The names of the entries in
//! the comments below are those of that table: rows A to D are the packet that comes second, columns 2 to 5 the one that
//! it would pass. Left out: PASIDs, unordered I/O, and what only bridges to PCI need (entries A5b).

use super::{Class, Kind, Tlp};

/// What the table says about a pair of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MayPass {
    /// The second must be able to pass, or the link could deadlock.
    Yes,
    /// The second must not pass.
    No,
    /// The specification allows passing and not passing; the transmitter chooses.
    Either,
}

/// Whether `second`, which came after `first`, may leave before it.
#[inline]
pub fn may_pass(second: &Tlp, first: &Tlp) -> MayPass {
    match (second.kind.class(), first.kind.class()) {
        (Class::Posted, Class::Posted) => allowed(passes_posted(second, first)),
        (Class::NonPosted, Class::Posted) => allowed(request_passes_posted(second, first)),
        (Class::Completion, Class::Posted) => allowed(completion_passes_posted(second, first)),
        // A3, A4, D3, D4: what is posted, and answers, never wait for requests that need an answer.
        (Class::Posted | Class::Completion, Class::NonPosted) => MayPass::Yes,
        // A5a, B3 to B5, C3 to C5.
        (Class::Posted | Class::NonPosted, _) => MayPass::Either,
        // D5b: answers to one request stay in order of addresses; D5a: others need not.
        (Class::Completion, Class::Completion) => allowed(transaction(second) != transaction(first)),
    }
}

fn allowed(free: bool) -> MayPass {
    if free { MayPass::Either } else { MayPass::No }
}

/// A2b: a write passes a write if it is relaxed, or from another requester and ordered by ID.
fn passes_posted(second: &Tlp, first: &Tlp) -> bool {
    second.relaxed || second.id_ordered && second.requester != first.requester
}

/// B2b and C2b: relaxed ordering frees requests with data and not reads; ID-based ordering frees both.
fn request_passes_posted(second: &Tlp, first: &Tlp) -> bool {
    let relaxed = second.relaxed && second.kind != Kind::MemoryRead;
    relaxed || second.id_ordered && second.requester != first.requester
}

/// D2b: answers to I/O and configuration writes pass always; others if relaxed, or if ordered by ID and the completer is
/// not the requester of the write.
fn completion_passes_posted(second: &Tlp, first: &Tlp) -> bool {
    let by_id = second.id_ordered && second.completer != first.requester;
    second.kind == Kind::Completion || second.relaxed || by_id
}

fn transaction(tlp: &Tlp) -> (u16, u16) {
    (tlp.requester, tlp.tag)
}
