//! The tables of a member: its own, its pairs, and what its threads have not taken yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use beeline_fabric::{
    Borrowed, LocalInterrupt, LocalSegment, Member, MemberNumber, Memory, Nanos, NodeId, PairId, Part,
    Refusal, RemoteSegment, Sleepers, Ticket, Told, Value,
};

use beeline_mmio::{RegisteredMemory, SharedMemory};

use crate::backing::Backing;
use crate::bell::Bells;
use crate::fetch::{Found, Own, Place, Wanted};
use crate::interrupts::waited::{Waited, What};
use crate::pair::Pair;
use crate::words::{Coherent, View};

/// The tables.
pub(crate) struct State {
    pub(crate) member: Member<Coherent>,
    pub(crate) pairs: BTreeMap<PairId, Pair>,
    /// The memory of segments that have one of their own.
    pub(crate) own: BTreeMap<LocalSegment, Own>,
    /// Memory of the program that is behind segments. What others can map of it is in `own`, too.
    pub(crate) program: BTreeMap<LocalSegment, Arc<RegisteredMemory>>,
    /// Such memory of other members, of connections that were mapped once.
    pub(crate) fetched: BTreeMap<RemoteSegment, Own>,
    /// The memory of segments whose names are being put, by the calls that wait for that.
    pub(crate) coming: BTreeMap<Ticket, Own>,
    /// Interrupts of this member.
    pub(crate) interrupts: BTreeMap<LocalInterrupt, Arc<Waited>>,
    number: MemberNumber,
    bells: Bells,
    /// What came of calls whose threads have not taken it yet.
    pub(crate) outcomes: BTreeMap<Ticket, Result<Value, Refusal>>,
    /// Threads that wait for an outcome, asleep on the member's own bell.
    pub(crate) sleepers: Sleepers,
}

/// What is left of members that are gone, for who has let go of the tables' lock.
pub(crate) struct Dead {
    /// To be dropped where that may take long.
    pub(crate) pairs: Vec<Pair>,
    interrupts: Vec<Arc<Waited>>,
}

impl Dead {
    /// Wakes who sleeps for an interrupt that the members may have triggered.
    pub(crate) fn wake(&self) {
        self.interrupts.iter().for_each(|interrupt| interrupt.wake());
    }
}

impl State {
    pub(crate) fn new(member: Member<Coherent>, number: MemberNumber, bells: Bells) -> Self {
        State {
            member,
            pairs: BTreeMap::new(),
            own: BTreeMap::new(),
            program: BTreeMap::new(),
            fetched: BTreeMap::new(),
            coming: BTreeMap::new(),
            interrupts: BTreeMap::new(),
            number,
            bells,
            outcomes: BTreeMap::new(),
            sleepers: Sleepers::default(),
        }
    }

    pub(crate) fn admit(&mut self, node: NodeId, other_user: Option<u32>, claims: View, pair: Pair) {
        let number = self.member.admit_user(node, other_user, claims);
        if let Some(user) = pair.user().filter(|_| other_user.is_none()) {
            self.interrupts.values().for_each(|interrupt| interrupt.admit(number, user));
        }
        self.pairs.insert(number, pair);
    }

    /// Pairs whose other side has gone since, of which the member is told.
    pub(crate) fn take_dead(&mut self, now: Nanos) -> Option<Dead> {
        let dead: Vec<_> =
            self.pairs.iter().filter(|(_, pair)| !pair.is_there()).map(|(number, _)| *number).collect();
        if dead.is_empty() {
            return None;
        }
        let mut pairs = Vec::new();
        for number in dead {
            pairs.extend(self.pairs.remove(&number));
            self.interrupts.values().for_each(|interrupt| interrupt.gone(number));
            self.member.gone(number, now);
        }
        Some(Dead { pairs, interrupts: self.interrupts.values().cloned().collect() })
    }

    /// Where the memory of a connection is.
    pub(crate) fn find(&self, remote: RemoteSegment, part: Part) -> Found {
        let Some(Borrowed { pair, lent, bytes, memory }) = self.member.borrowed(remote) else {
            return Found::Nowhere;
        };
        let pair = self.pairs.get(&pair);
        if let Memory::Bank { offset } = memory {
            let bank = pair.and_then(Pair::bank);
            return bank.map_or(Found::Nowhere, |bank| {
                Found::Here(Place { memory: Backing::Memory(Arc::clone(bank)), offset, part })
            });
        }
        if let Some(own) = self.fetched.get(&remote) {
            return Found::Here(own.place(part));
        }
        // The pair is taken out when its member dies: what is lent is then no entry of this process's board.
        let Some(pair) = pair else { return Found::Nowhere };
        match pair.connection() {
            Some(connection) => Found::There(Wanted { connection: Arc::clone(connection), lent, bytes }),
            // It is this very process.
            None => {
                let own = self.member.lent(lent).and_then(|(local, _)| self.own.get(&local));
                own.map_or(Found::Nowhere, |own| Found::Here(own.place(part)))
            }
        }
    }

    /// Where a segment of this member is, whose bank this is.
    pub(crate) fn own_of(
        &self,
        (local, memory): (LocalSegment, Memory),
        bank: &Arc<SharedMemory>,
    ) -> Option<Own> {
        match memory {
            Memory::Bank { offset } => Some(Own::of(Backing::Memory(Arc::clone(bank)), offset)),
            Memory::Own { .. } => self.own.get(&local).cloned(),
        }
    }

    /// Where the memory of a segment of this member is that has one of its own.
    pub(crate) fn find_local(&self, local: LocalSegment, part: Part) -> Found {
        match (self.own.get(&local), self.program.get(&local)) {
            (Some(own), _) => Found::Here(own.place(part)),
            (None, Some(memory)) => Found::Program(Arc::clone(memory)),
            (None, None) => Found::Nowhere,
        }
    }

    fn add_interrupt(&mut self, local: LocalInterrupt, interrupt: Waited) {
        for (number, pair) in &self.pairs {
            if let Some(user) = pair.user().filter(|_| pair.other_user().is_none()) {
                interrupt.admit(*number, user);
            }
        }
        self.interrupts.insert(local, Arc::new(interrupt));
    }

    /// Puts outcomes where the threads of their calls find them; whether there are any.
    pub(crate) fn sort_told(&mut self) -> bool {
        let mut has_news = false;
        while let Some(told) = self.member.next_event() {
            if let Told::Outcome(ticket, outcome) = told {
                if let Ok(Value::Interrupt(local, _, kind, place)) = outcome {
                    // In the hold of the lock in which others learn of it: so it hears of everybody who may trigger it.
                    let what = What::new(kind, self.number, place);
                    self.add_interrupt(
                        local,
                        Waited::new(self.bells.flag(place.slot), self.bells.watchers(), what),
                    );
                }
                if let Some(own) = self.coming.remove(&ticket)
                    && let Ok(Value::Local(local, _)) = outcome
                {
                    // In the hold of the lock in which others learn of it, who may ask for it at once.
                    self.own.insert(local, own);
                }
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
