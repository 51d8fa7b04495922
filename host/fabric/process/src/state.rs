//! The tables of a member: its own, its pairs, and what its threads have not taken yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use beeline_fabric::{LocalSegment, Member, Nanos, NodeId, PairId, Refusal, Ticket, Told, Value};
use beeline_mmio::SharedMemory;

use crate::pair::Pair;
use crate::words::{Coherent, View};

/// The tables.
pub(crate) struct State {
    pub(crate) member: Member<Coherent>,
    pub(crate) pairs: BTreeMap<PairId, Pair>,
    /// The memory of segments that nobody connects to.
    pub(crate) private: BTreeMap<LocalSegment, Arc<SharedMemory>>,
    /// What came of calls whose threads have not taken it yet.
    pub(crate) outcomes: BTreeMap<Ticket, Result<Value, Refusal>>,
}

impl State {
    pub(crate) fn new(member: Member<Coherent>) -> Self {
        let (pairs, private, outcomes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        State { member, pairs, private, outcomes }
    }

    pub(crate) fn admit(&mut self, node: NodeId, claims: View, pair: Pair) {
        let number = self.member.admit(node, claims);
        self.pairs.insert(number, pair);
    }

    /// Pairs whose other side has gone since, of which the member is told.
    pub(crate) fn take_dead(&mut self, now: Nanos) -> Vec<Pair> {
        let dead: Vec<_> =
            self.pairs.iter().filter(|(_, pair)| !pair.is_there()).map(|(number, _)| *number).collect();
        let mut taken = Vec::new();
        for number in dead {
            taken.extend(self.pairs.remove(&number));
            self.member.gone(number, now);
        }
        taken
    }

    /// Puts outcomes where the threads of their calls find them; whether there are any.
    pub(crate) fn sort_told(&mut self) -> bool {
        let mut has_news = false;
        while let Some(told) = self.member.next_event() {
            if let Told::Outcome(ticket, outcome) = told {
                self.outcomes.insert(ticket, outcome);
                has_news = true;
            }
        }
        has_news
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("State").field("pairs", &self.pairs.len()).finish_non_exhaustive()
    }
}
