//! Members that this one uses, and members that use this one.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use beeline_contract_adapter::{Adapter, PublishPort, ViewPort};

use crate::access::Access;
use crate::board::layout::{Claim, EntryState, Phase, count_word};
use crate::board::{Entry, is_of, read_entry, read_life, read_link};
use crate::claims::{Unclaimed, claim};
use crate::held::Held;
use crate::ids::{AdapterNumber, MemberNumber, Name, NameKind, NodeId, PairId, Slot};
use crate::link::{LinkWord, Links, Paths};
use crate::refusal::Refusal;
use crate::segment::remote::Connection;
use crate::segment::users::Seen;

/// Connections of one member to one segment. What a member says beyond is a lie, and counts as these.
pub(crate) const MAX_CONNECTIONS: u32 = 1024;

/// How often a claim is tried that the other side's changes get in the way of.
const CLAIMS: u32 = 4;

/// The pairs of this member.
pub(crate) struct Pairs<A: Adapter> {
    pub(crate) providers: BTreeMap<PairId, Provider<A>>,
    pub(crate) consumers: BTreeMap<PairId, Consumer<A::View>>,
}

/// A member whose segments this one uses.
pub(crate) struct Provider<A: Adapter> {
    pub(crate) node: NodeId,
    pub(crate) member: MemberNumber,
    /// Nothing while it is being reached.
    pub(crate) ports: Option<Ports<A>>,
}

pub(crate) struct Ports<A: Adapter> {
    board: A::View,
    claims: A::Claims,
    /// What `claims` says is of these: entries that were ever connected to. The incarnation of an interrupt's is the one whose triggers the
    /// count beside its claim is of.
    held: BTreeMap<Slot, Held>,
}

/// A member that uses segments of this one.
pub(crate) struct Consumer<V> {
    pub(crate) node: NodeId,
    /// Its user, if that is another one than this member's.
    pub(crate) user: Option<u32>,
    pub(crate) claims: V,
}

impl<V: ViewPort> Consumer<V> {
    /// Whether it claims any incarnation of an entry.
    pub(crate) fn claims_any(&self, slot: Slot) -> bool {
        Claim::of(self.claims.load(u32::from(slot.0))).keeps_entry()
    }

    /// What it says of its connections to an entry of this member's board.
    pub(crate) fn seen(&self, pair: PairId, slot: Slot, incarnation: u32) -> Seen {
        let claim = Claim::of(self.claims.load(u32::from(slot.0)));
        let claim = (claim.incarnation == incarnation).then_some(claim);
        let count = claim.map_or(0, |claim| claim.count.min(MAX_CONNECTIONS));
        Seen { pair, node: self.node, count, ended: claim.map(|claim| claim.ended) }
    }
}

impl<A: Adapter> Pairs<A> {
    pub(crate) fn new() -> Self {
        Pairs { providers: BTreeMap::new(), consumers: BTreeMap::new() }
    }

    pub(crate) fn provider_of(&self, member: MemberNumber) -> Option<PairId> {
        self.providers.iter().find(|(_, provider)| provider.member == member).map(|(pair, _)| *pair)
    }

    /// The words of a pair that is made and whose member has not left.
    pub(crate) fn ports(&self, pair: PairId) -> Option<&Ports<A>> {
        self.providers.get(&pair)?.ports.as_ref().filter(|ports| ports.is_open())
    }

    /// The board of a pair that is made.
    pub(crate) fn board(&self, pair: PairId) -> Option<&A::View> {
        self.providers.get(&pair)?.ports.as_ref().map(|ports| &ports.board)
    }

    pub(crate) fn ports_mut(&mut self, pair: PairId) -> Option<&mut Ports<A>> {
        self.providers.get_mut(&pair)?.ports.as_mut()
    }

    /// What members that may connect say of their connections to an entry of this member's board.
    pub(crate) fn seen(
        &self,
        access: Arc<Access>,
        slot: Slot,
        incarnation: u32,
    ) -> impl Iterator<Item = Seen> + Clone {
        let those =
            self.consumers.iter().filter(move |(_, consumer)| access.lets(consumer.node, consumer.user));
        those.map(move |(pair, consumer)| consumer.seen(*pair, slot, incarnation))
    }

    /// What members claim that may connect.
    pub(crate) fn claims(&self, access: Arc<Access>) -> impl Iterator<Item = &A::View> {
        self.consumers
            .values()
            .filter(move |consumer| access.lets(consumer.node, consumer.user))
            .map(|consumer| &consumer.claims)
    }

    /// Members that use this one, with what they claim.
    pub(crate) fn claims_by_member(&self) -> impl Iterator<Item = (PairId, &A::View)> {
        self.consumers.iter().map(|(pair, consumer)| (*pair, &consumer.claims))
    }

    /// Whether anybody claims any incarnation of an entry.
    pub(crate) fn is_claimed(&self, slot: Slot) -> bool {
        self.consumers.values().any(|consumer| consumer.claims_any(slot))
    }
}

/// What a claim has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimed {
    pub(crate) entry: Entry,
    /// The adapters that the connection may go by.
    pub(crate) paths: Paths,
    /// The other member wants to be rung.
    pub(crate) is_listening: bool,
}

impl Claimed {
    /// The connection that it is, to an entry of the other member of a pair.
    pub(crate) fn connection(&self, pair: PairId, slot: Slot) -> Connection {
        let Entry { state, bytes, memory, group, is_listed, .. } = self.entry;
        let EntryState { incarnation, notices, .. } = state;
        let paths = self.paths;
        Connection {
            pair,
            slot,
            incarnation,
            bytes,
            memory,
            group,
            paths,
            is_listed,
            notices,
            notices_seen: notices,
            is_lost: false,
        }
    }
}

impl<A: Adapter> Ports<A> {
    /// The words of a pair; `None` if they are no board of that node.
    pub(crate) fn new(board: A::View, claims: A::Claims, node: NodeId) -> Option<Self> {
        is_of(&board, node).then(|| Ports { board, claims, held: BTreeMap::new() })
    }

    /// Whether the other member has not left.
    pub(crate) fn is_open(&self) -> bool {
        read_life(&self.board).is_open
    }

    pub(crate) fn link(&self, adapter: AdapterNumber) -> LinkWord {
        read_link(&self.board, adapter)
    }

    /// Whether the links of one of these adapters are up at both ends.
    pub(crate) fn are_up(&self, paths: Paths, own: &Links) -> Result<(), Refusal> {
        let mut is_up_here =
            paths.each().filter(|adapter| own.of(*adapter).is_some_and(|link| link.is_up)).peekable();
        if is_up_here.peek().is_none() {
            return Err(Refusal::NoLinkAccess);
        }
        let is_up = is_up_here.any(|adapter| self.link(adapter).is_up);
        if is_up { Ok(()) } else { Err(Refusal::NoRemoteLinkAccess) }
    }

    /// The words that this member stores for the other one.
    pub(crate) fn uses(&self) -> &A::Claims {
        &self.claims
    }

    /// Connects once more to an entry, if it is what is named and available by one of these adapters of this member.
    pub(crate) fn connect(
        &mut self,
        slot: Slot,
        name: Name,
        paths: Paths,
        own: &Links,
    ) -> Result<Claimed, Refusal> {
        for _ in 0..CLAIMS {
            let entry = read_entry(&self.board, slot).ok_or(Refusal::ConnectionRefused)?;
            let EntryState { incarnation, phase, available, .. } = entry.state;
            if phase == Phase::Free || !entry.name.is_some_and(|other| name.finds(other)) {
                return Err(name.missing());
            }
            let paths = Paths::of(available & paths.bits());
            if phase == Phase::Closing || paths.bits() == 0 {
                return Err(Refusal::ConnectionRefused);
            }
            self.are_up(paths, own)?;
            let held = self.held.get(&slot).cloned().unwrap_or_default();
            if held.count(incarnation) == MAX_CONNECTIONS {
                return Err(Refusal::MaxEntries);
            }
            if name.kind != NameKind::Segment && held.claim().incarnation != incarnation {
                // Before the claim: who sees that sees no count of what the entry was before.
                self.claims.publish(count_word(slot), 0);
            }
            let new = held.with_one_more(incarnation);
            match claim(&self.board, &mut self.claims, slot, entry.state, (held.claim(), new.claim())) {
                Ok(()) => {
                    self.held.insert(slot, new);
                    // After the barrier of the claim: pairs with `OwnBoard::set_listening`.
                    return Ok(Claimed { entry, paths, is_listening: read_life(&self.board).is_listening });
                }
                Err(Unclaimed::Changed) => {}
                Err(Unclaimed::Unconfirmed) => return Err(Refusal::NoRemoteLinkAccess),
            }
        }
        Err(Refusal::ConnectionRefused)
    }

    /// Ends one connection to an incarnation of an entry. Whether the other member wants to be rung.
    pub(crate) fn disconnect(&mut self, slot: Slot, incarnation: u32) -> bool {
        let Some(held) = self.held.get_mut(&slot) else { return false };
        if !held.end(incarnation) {
            return false;
        }
        let claim = held.claim();
        self.claims.publish(u32::from(slot.0), claim.word());
        // Pairs with `OwnBoard::set_listening`.
        let is_confirmed = self.claims.barrier().is_ok();
        !is_confirmed || read_life(&self.board).is_listening
    }
}
