//! The ordering table, pair by pair, and a queue that obeys it.

use beeline_link_sim::pcie::{
    Advertised, Amount, Class, Credits, Kind, MayPass, Tlp, TransmitQueue, may_pass,
};
use proptest::prelude::*;

/// A cell of the table.
#[derive(Clone, Copy, Debug)]
enum Cell {
    Yes,
    /// "Y/N".
    Either,
    /// "a) No b) Y/N": no, unless one of these holds.
    NoUnless(&'static [Unless]),
}

/// What the notes of the table ask of the second packet.
#[derive(Clone, Copy, Debug)]
enum Unless {
    /// Relaxed ordering is set.
    Relaxed,
    /// ID-based ordering is set, and its requester ID is not that of the first.
    OtherRequester,
    /// ID-based ordering is set, and its completer ID is not the requester ID of the first.
    OtherCompleter,
    /// It answers a write to I/O or configuration space.
    AnswersWrite,
    /// Unless its transaction ID differs.
    OtherTransaction,
}

use Cell::{Either, NoUnless, Yes};
use Unless::{AnswersWrite, OtherCompleter, OtherRequester, OtherTransaction, Relaxed};

/// The ordering rules of the PCI Express Base Specification, section 2.4.1: rows are the packet that comes second, columns
/// the one that it would pass: posted, read, other request without a posted answer, completion.
const TABLE: [(&str, [Cell; 4]); 4] = [
    ("A posted", [NoUnless(&[Relaxed, OtherRequester]), Yes, Yes, Either]),
    ("B read", [NoUnless(&[OtherRequester]), Either, Either, Either]),
    ("C non-posted with data", [NoUnless(&[Relaxed, OtherRequester]), Either, Either, Either]),
    (
        "D completion",
        [NoUnless(&[Relaxed, OtherCompleter, AnswersWrite]), Yes, Yes, NoUnless(&[OtherTransaction])],
    ),
];

/// Kinds, and their row or column.
const KINDS: [(Kind, usize); 7] = [
    (Kind::MemoryWrite, 0),
    (Kind::Message, 0),
    (Kind::MemoryRead, 1),
    (Kind::NonPostedWrite, 2),
    (Kind::Atomic, 2),
    (Kind::CompletionWithData, 3),
    (Kind::Completion, 3),
];

fn holds(unless: Unless, second: &Tlp, first: &Tlp) -> bool {
    match unless {
        Relaxed => second.relaxed,
        OtherRequester => second.id_ordered && second.requester != first.requester,
        OtherCompleter => second.id_ordered && second.completer != first.requester,
        AnswersWrite => second.kind == Kind::Completion,
        OtherTransaction => (second.requester, second.tag) != (first.requester, first.tag),
    }
}

fn expected(row: usize, column: usize, second: &Tlp, first: &Tlp) -> MayPass {
    match TABLE[row].1[column] {
        Yes => MayPass::Yes,
        Either => MayPass::Either,
        NoUnless(reasons) if reasons.iter().any(|reason| holds(*reason, second, first)) => MayPass::Either,
        NoUnless(_) => MayPass::No,
    }
}

/// Every kind with every attribute, ID and tag of two.
fn packets() -> impl Iterator<Item = (Tlp, usize)> {
    KINDS.into_iter().flat_map(|(kind, place)| {
        (0..32_u16).map(move |bits| {
            let bit = |n: u16| bits >> n & 1;
            let tlp = Tlp {
                relaxed: bit(0) == 1,
                id_ordered: bit(1) == 1,
                requester: bit(2),
                completer: bit(3),
                tag: bit(4),
                ..Tlp::new(kind, 0, 4)
            };
            (tlp, place)
        })
    })
}

#[test]
fn every_pair_is_as_the_table_says() {
    let mut pairs = 0;
    for (second, row) in packets() {
        for (first, column) in packets() {
            let expected = expected(row, column, &second, &first);
            assert_eq!(may_pass(&second, &first), expected, "{}: {second:?} over {first:?}", TABLE[row].0);
            pairs += 1;
        }
    }
    assert_eq!(pairs, 224 * 224);
}

/// The rules that software relies on, one by one.
#[test]
fn what_drivers_rely_on_holds() {
    let [write, read, answer] =
        [Kind::MemoryWrite, Kind::MemoryRead, Kind::CompletionWithData].map(|kind| Tlp::new(kind, 0, 64));
    assert_eq!(may_pass(&write, &write), MayPass::No, "data before the flag that announces it");
    assert_eq!(may_pass(&read, &write), MayPass::No, "a read flushes the writes in front of it");
    assert_eq!(may_pass(&answer, &write), MayPass::No, "an answer pushes the data in front of it");
    assert_eq!(may_pass(&write, &read), MayPass::Yes, "no deadlock");
    assert_eq!(may_pass(&answer, &read), MayPass::Yes, "no deadlock");
    assert_eq!(may_pass(&answer, &answer), MayPass::No, "parts of an answer come in order");
    let relaxed = Tlp { relaxed: true, ..read };
    assert_eq!(may_pass(&relaxed, &write), MayPass::No, "relaxed ordering does not free a read");
    let other = Tlp { id_ordered: true, requester: 1, ..read };
    assert_eq!(may_pass(&other, &write), MayPass::Either);
}

fn any_tlp() -> impl Strategy<Value = Tlp> {
    let kind = prop::sample::select(KINDS.map(|(kind, _)| kind).to_vec());
    let length = prop::sample::select(vec![4u32, 16, 64, 128]);
    (kind, length, any::<[bool; 2]>(), 0u16..3, 0u16..3, 0u16..2).prop_map(
        |(kind, length_bytes, [relaxed, id_ordered], requester, completer, tag)| Tlp {
            relaxed,
            id_ordered,
            requester,
            completer,
            tag,
            ..Tlp::new(kind, 0, if kind.has_data() { length_bytes } else { 4 })
        },
    )
}

proptest! {
    /// Packets leave once, and one that leaves before an older one may pass it. When all credits are back, all leave.
    #[test]
    fn a_queue_obeys_the_table(
        tlps in prop::collection::vec(any_tlp(), 1..60),
        headers in 1u32..6,
        data_units in 8u32..20,
        look_ahead in 0usize..4,
        freed in prop::collection::vec(0usize..8, 200),
    ) {
        let mut queue = TransmitQueue::new(look_ahead);
        let mut credits = Credits::new([Advertised::finite(headers, data_units); 3]);
        let mut left: Vec<Tlp> = Vec::new();
        let mut held: Vec<Tlp> = Vec::new();
        let mut coming = tlps.iter().enumerate();
        for count in freed {
            for (body, tlp) in coming.by_ref().take(count) {
                queue.push(Tlp { body: body as u32, ..*tlp });
            }
            while let Some(tlp) = queue.take(&mut credits) {
                left.push(tlp);
                held.push(tlp);
            }
            for tlp in held.drain(..count.min(held.len())) {
                credits.give(tlp.kind.class(), Amount::of(&tlp)).unwrap();
            }
        }
        prop_assert!(queue.is_empty(), "{} of {} left", left.len(), tlps.len());
        prop_assert_eq!(left.len(), tlps.len());
        for (place, second) in left.iter().enumerate() {
            for first in left[place + 1..].iter().filter(|first| first.body < second.body) {
                prop_assert_ne!(may_pass(second, first), MayPass::No, "{:?} over {:?}", second, first);
            }
        }
    }
}

/// What must be able to pass does, when the class in front of it has no credits.
#[test]
fn requests_without_credits_stop_neither_writes_nor_answers() {
    let none_for_reads = || {
        let mut credits = Credits::new([Advertised::finite(8, 64); 3]);
        while credits.take(&Tlp::new(Kind::MemoryRead, 0, 4)) {}
        credits
    };
    for kind in [Kind::MemoryWrite, Kind::CompletionWithData, Kind::Completion] {
        let (mut queue, mut credits) = (TransmitQueue::new(0), none_for_reads());
        queue.push(Tlp::new(Kind::MemoryRead, 0, 4));
        queue.push(Tlp::new(kind, 0, 4));
        assert_eq!(queue.take(&mut credits).map(|tlp| tlp.kind), Some(kind));
        assert_eq!(queue.take(&mut credits), None);
        assert_eq!(queue.len(Class::NonPosted), 1);
    }
}
