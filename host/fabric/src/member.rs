//! A member of a fabric: its tables, and what goes in and out of it beside calls.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use beeline_contract_adapter::Adapter;

use crate::bank::Bank;
use crate::board::OwnBoard;
use crate::ids::{
    AdapterNumber, AskId, LocalInterrupt, LocalSegment, Nanos, NodeId, PairId, RemoteSegment, SegmentId,
    Slot, Ticket,
};
use crate::index::Index;
use crate::interrupt::local::{FIRST_AUTO_NUMBER, OwnInterrupt};
use crate::link::Links;
use crate::pairs::{Consumer, Pairs};
use crate::segment::local::Local;
use crate::segment::remote::Remote;
use crate::segment::slots::Slots;
use crate::told::Told;
use crate::want::{NameOp, Want};

/// What a member is told before it begins.
#[derive(Clone, Debug)]
pub struct Config {
    pub node: NodeId,
    /// The node's adapters. Their links are up.
    pub adapters: Vec<AdapterNumber>,
    /// The nodes of the fabric.
    pub nodes: Vec<NodeId>,
}

/// A process of a node, as a state machine: calls go in, wants and events come out.
pub struct Member<A: Adapter> {
    pub(crate) config: Config,
    pub(crate) board: OwnBoard<A::Board>,
    pub(crate) links: Links,
    pub(crate) bank: Bank,
    pub(crate) slots: Slots,
    pub(crate) locals: BTreeMap<LocalSegment, Local>,
    /// Which segment each entry of the board is.
    pub(crate) locals_by_slot: BTreeMap<Slot, LocalSegment>,
    pub(crate) interrupts: BTreeMap<LocalInterrupt, OwnInterrupt>,
    /// The number that is tried first for an interrupt without one.
    pub(crate) next_interrupt: u32,
    /// Connections to segments, and to interrupts, whose handles are these by another name.
    pub(crate) remotes: BTreeMap<RemoteSegment, Remote>,
    pub(crate) index: Index,
    /// Connections to segments of several holders.
    pub(crate) held: BTreeSet<RemoteSegment>,
    pub(crate) pairs: Pairs<A>,
    pub(crate) asked: BTreeMap<AskId, Asked>,
    pub(crate) wants: VecDeque<Want>,
    pub(crate) told: VecDeque<Told>,
    /// The segment or connection whose callback was told something last.
    pub(crate) last_callback: u64,
    /// Nobody has to ring this member for it to look.
    pub(crate) polls: bool,
    /// When the last call was made.
    pub(crate) now: Nanos,
    /// The last number that was given out.
    last: u64,
}

/// What an operation on names was for.
#[derive(Debug)]
pub(crate) enum Asked {
    Create {
        ticket: Ticket,
        local: Local,
        first_of_auto: Option<SegmentId>,
    },
    CreateInterrupt {
        ticket: Ticket,
        interrupt: OwnInterrupt,
        first_of_auto: Option<u32>,
    },
    Connect(RemoteSegment),
    /// Who holds what is connected to.
    Holders(RemoteSegment),
}

impl<A: Adapter> Member<A> {
    /// A member whose board is these words, all zero.
    pub fn new(config: Config, board: A::Board) -> Self {
        let links = Links::up(&config.adapters);
        Member {
            board: OwnBoard::new(board, config.node, links.all()),
            config,
            links,
            bank: Bank::default(),
            slots: Slots::default(),
            locals: BTreeMap::new(),
            locals_by_slot: BTreeMap::new(),
            interrupts: BTreeMap::new(),
            next_interrupt: FIRST_AUTO_NUMBER,
            remotes: BTreeMap::new(),
            index: Index::default(),
            held: BTreeSet::new(),
            pairs: Pairs::new(),
            asked: BTreeMap::new(),
            wants: VecDeque::new(),
            told: VecDeque::new(),
            last_callback: 0,
            polls: false,
            now: Nanos(0),
            last: 0,
        }
    }

    /// Says that the memory of the bank has no more than so many bytes, if they are fewer than [`crate::BANK_BYTES`]. Before any segment
    /// is made.
    pub fn limit_bank(&mut self, bytes: u64) {
        self.bank.limit(bytes);
    }

    /// Says that the memory of the bank is used again when nobody has a claim of it, where it is small, and may have been another member's
    /// before: segments are made zero ([`Want::Punch`]). Before any segment is made.
    pub fn reuse_bank(&mut self) {
        self.bank.reuse();
    }

    /// Says that memory of the bank that a member claimed when it was not heard any more is used again, too, when nothing else is left: the
    /// program stands what that member goes on to store if it only stood still. Of a bank that is used again.
    pub fn reuse_kept_bank(&mut self) {
        self.bank.reuse_kept();
    }

    /// Takes memory of the bank for what is no segment of this member alone: where it begins, or `None` if the bank is used up.
    pub fn take_of_bank(&mut self, bytes: u64) -> Option<u64> {
        self.bank.take(bytes)
    }

    /// Gives memory back that [`Member::take_of_bank`] gave out. Nobody has it mapped; if somebody may have that is not heard any more
    /// (`is_kept`), it is not given out again.
    pub fn give_back_to_bank(&mut self, (offset, bytes): (u64, u64), is_kept: bool) {
        if is_kept {
            self.bank.keep(offset);
        }
        self.bank.give_back(offset, bytes);
    }

    /// Says that the board and claims have no more than so many entries, if they are fewer than [`crate::CLAIM_WORDS`]. Before any
    /// segment is made.
    pub fn limit_entries(&mut self, entries: u32) {
        self.slots.limit(entries);
    }

    /// Takes in a member that uses segments of this one, with what it claims.
    pub fn admit(&mut self, node: NodeId, claims: A::View) -> PairId {
        self.admit_user(node, None, claims)
    }

    /// As [`Member::admit`], a member of another user, who may connect to what is exported to that user ([`Member::export`]) and to nothing else.
    pub fn admit_user(&mut self, node: NodeId, user: Option<u32>, claims: A::View) -> PairId {
        let pair = PairId(self.number());
        self.pairs.consumers.insert(pair, Consumer { node, user, claims });
        pair
    }

    /// The next thing to be done outside; `None` if there is nothing.
    pub fn next_want(&mut self) -> Option<Want> {
        self.wants.pop_front()
    }

    /// The next outcome of a call that waited; `None` if there is none.
    pub fn next_event(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// When this member wants to look if nothing happens before.
    pub fn wake_at(&self) -> Option<Nanos> {
        let locals = self.index.waiting_locals().filter_map(|handle| self.locals.get(&handle));
        let remotes = self.index.waiting_remotes().chain(self.index.connecting());
        let remotes = remotes.filter_map(|handle| self.remotes.get(&handle));
        locals.filter_map(|local| local.waiters.next_end()).chain(remotes.filter_map(Remote::next_end)).min()
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(crate) fn ask(&mut self, asked: Asked, op: NameOp) {
        let ask = AskId(self.number());
        self.asked.insert(ask, asked);
        self.wants.push_back(Want::Name(ask, op));
    }

    /// Rings each of these pairs, once until the program around takes it.
    pub(crate) fn ring(&mut self, pairs: impl IntoIterator<Item = PairId>) {
        for pair in pairs {
            let want = Want::Ring(pair);
            if !self.wants.contains(&want) {
                self.wants.push_back(want);
            }
        }
    }
}
