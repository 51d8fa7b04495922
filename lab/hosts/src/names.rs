//! Names: a table of each host, which it pushes to every other one. Looking is loads of this host's memory.

use beeline_contract_adapter::PublishPort;
use beeline_fabric::{
    Answer, Candidate, Found, Holder, InterruptNumber, MemberNumber, Name, NameKind, NameOp, NodeId, Slot,
};
use beeline_link_sim::machine::hosts::{HostId, Region};

use crate::session::Sessions;
use crate::wiring::{NAMES, node_of};
use crate::words::Published;

/// Set where others of the same number may stand beside it.
const IS_SHARED: u64 = 1 << 40;

/// The names that members of all hosts have put.
pub(crate) struct Names {
    sessions: Sessions,
    own: Published,
}

/// A name as a word that is not zero.
fn word_of(name: Name) -> u64 {
    let kind: u64 = match name.kind {
        NameKind::Segment => 1,
        NameKind::Interrupt | NameKind::SharedInterrupt => 2,
        NameKind::DataInterrupt => 3,
        NameKind::Group => 4,
        NameKind::GroupInterrupt => 5,
    };
    let shared = if name.kind.is_of_several() { IS_SHARED } else { 0 };
    shared | kind << 32 | u64::from(name.number)
}

/// What is said of the member of a host.
fn member_of(host: HostId) -> MemberNumber {
    MemberNumber::new(node_of(host), 0)
}

impl Names {
    pub(crate) fn new(sessions: Sessions, own: Published) -> Self {
        Names { sessions, own }
    }

    pub(crate) fn words(&self) -> &Published {
        &self.own
    }

    /// Waits until every other host has all that this one has published, and this one theirs. Whether that is certain of all.
    pub(crate) fn barrier(&self) -> bool {
        let others = self.sessions.wiring.others(self.sessions.core.host());
        others.filter(|peer| self.sessions.confirm(*peer).is_err()).count() == 0
    }

    /// Whether another host that lives has the name.
    pub(crate) fn is_elsewhere(&self, name: Name) -> bool {
        !self.found_elsewhere(name).is_empty()
    }

    /// `has_open` says whether a holder still has its segment.
    pub(crate) fn answer(&mut self, op: NameOp, has_open: impl FnOnce(Holder) -> bool) -> Answer {
        match op {
            NameOp::Put(name, slot) => {
                let beside = name.kind.is_of_several();
                let is_same = |word: u64| word & !IS_SHARED == word_of(name) & !IS_SHARED;
                let is_taken = |word: u64| is_same(word) && !(beside && word & IS_SHARED != 0);
                let others = name.kind == NameKind::Group && self.is_elsewhere(name);
                if others || self.own_words().any(is_taken) {
                    return Answer::Taken;
                }
                self.put(name, slot)
            }
            NameOp::PutFirst(name, slot) => {
                let is_same = |word: u64| word & !IS_SHARED == word_of(name) & !IS_SHARED;
                if self.own_words().any(is_same) { Answer::Taken } else { self.put(name, slot) }
            }
            NameOp::PutBeside(name, slot, of) => {
                let found = self.found_elsewhere(name);
                let has_name = found.iter().any(|it| (it.member, it.slot) == (of.member, of.lent.slot));
                let is_own = self.own_words().any(|word| word == word_of(name));
                let may = !is_own && (found.is_empty() || has_name && has_open(of));
                if may { self.put(name, slot) } else { Answer::Taken }
            }
            NameOp::Remove(name, slot) => {
                let it = (word_of(name), u64::from(slot.0));
                let own = self.own_table();
                for at in (0..NAMES).filter(|at| self.entry(own, *at) == it).collect::<Vec<_>>() {
                    self.own.publish(at * 2, 0);
                }
                Answer::Done
            }
            NameOp::Find(NodeId::GROUPS, name) => {
                let candidates = self.found_elsewhere(name);
                Answer::Found(Found { is_node_alive: true, candidates })
            }
            NameOp::Find(node, name) => {
                let there = self.others().find(|peer| node_of(*peer) == node);
                let candidates = there.map(|peer| self.found_at(peer, name)).unwrap_or_default();
                Answer::Found(Found { is_node_alive: there.is_some(), candidates })
            }
        }
    }

    fn own_table(&self) -> Region {
        self.sessions.wiring.of(self.sessions.core.host()).names
    }

    fn own_words(&self) -> impl Iterator<Item = u64> {
        let own = self.own_table();
        (0..NAMES).map(move |at| self.entry(own, at).0)
    }

    /// A name and what is said of it.
    fn entry(&self, table: Region, at: u32) -> (u64, u64) {
        let load = |word: usize| self.sessions.core.load(table, at as usize * 16 + word);
        (load(0), load(8))
    }

    fn others(&self) -> impl Iterator<Item = HostId> {
        let others = self.sessions.wiring.others(self.sessions.core.host());
        others.filter(|peer| self.sessions.is_there(*peer))
    }

    fn found_elsewhere(&self, name: Name) -> Vec<Candidate> {
        self.others().flat_map(|peer| self.found_at(peer, name)).collect()
    }

    /// Interrupts of a node that have a number together.
    pub(crate) fn shared(&self, node: NodeId, number: InterruptNumber) -> Vec<Candidate> {
        let word = word_of(Name { kind: NameKind::SharedInterrupt, number: number.0 });
        let there = self.others().find(|peer| node_of(*peer) == node);
        there.map(|peer| self.at(peer, |entry| entry == word)).unwrap_or_default()
    }

    /// Who finds an interrupt finds one of several, too.
    fn found_at(&self, peer: HostId, name: Name) -> Vec<Candidate> {
        self.at(peer, |entry| entry & !IS_SHARED == word_of(name) & !IS_SHARED)
    }

    fn at(&self, peer: HostId, is_it: impl Fn(u64) -> bool) -> Vec<Candidate> {
        let here = self.sessions.wiring.of(self.sessions.core.host());
        let table = here.names_of[usize::from(peer.0)];
        let found = (0..NAMES).map(|at| self.entry(table, at)).filter(|(word, _)| is_it(*word));
        found.map(|(_, slot)| Candidate { member: member_of(peer), slot: Slot(slot as u16) }).collect()
    }

    fn put(&mut self, name: Name, slot: Slot) -> Answer {
        let own = self.own_table();
        let Some(at) = (0..NAMES).find(|at| self.entry(own, *at).0 == 0) else { return Answer::Full };
        self.own.publish(at * 2 + 1, u64::from(slot.0));
        self.own.publish(at * 2, word_of(name));
        Answer::Done
    }
}
