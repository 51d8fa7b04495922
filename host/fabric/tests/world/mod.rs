//! Members in one thread: their words are maps, names a table, and rings and news of deaths wait until a test delivers them.
#![allow(dead_code, reason = "each test uses a part")]

pub mod told;
pub mod words;

use std::collections::BTreeMap;

use beeline_contract_adapter::Adapter;
use beeline_fabric::*;
pub use words::Words;

pub struct InMemory;

impl Adapter for InMemory {
    type Board = Words;
    type Claims = Words;
    type View = Words;
}

pub struct Process {
    pub member: Member<InMemory>,
    pub board: Words,
    pub node: NodeId,
    pub is_alive: bool,
    /// Whom a pair is with, and what the pair is called there.
    pub pairs: BTreeMap<PairId, (usize, PairId)>,
    /// Members that use this one, with what each says that it uses.
    pub users: BTreeMap<PairId, Words>,
    pub told: Vec<Told>,
    pub punched: Vec<(u64, u64)>,
}

/// Members, and what is on its way between them.
#[derive(Default)]
pub struct World {
    pub processes: Vec<Process>,
    names: BTreeMap<(NodeId, Name), Vec<(usize, Slot)>>,
    /// Who is to look.
    pub rings: Vec<usize>,
    /// Who is to learn that the other side of a pair is gone, and of whom.
    pub gone: Vec<(usize, PairId, usize)>,
    pub now: Nanos,
    /// Names are not found, because the system refuses it.
    pub fails_to_find: bool,
    /// Members that do not answer who would reach them.
    pub silent: Vec<usize>,
    /// Who would reach which of these.
    pub waiting: Vec<(usize, usize, PairId)>,
}

pub const NODES: [NodeId; 3] = [NodeId(4), NodeId(8), NodeId(12)];

pub fn adapter(number: u32) -> AdapterNumber {
    AdapterNumber::new(number).unwrap()
}

/// What came of a call so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Now(Result<Value, Refusal>),
    Waiting(Ticket),
}

impl World {
    pub fn of(nodes: &[NodeId]) -> Self {
        let mut world = World::default();
        for node in nodes {
            let board = Words::board();
            let config =
                Config { node: *node, adapters: vec![adapter(0), adapter(1)], nodes: NODES.to_vec() };
            world.processes.push(Process {
                member: Member::new(config, board.clone()),
                board,
                node: *node,
                is_alive: true,
                pairs: BTreeMap::new(),
                users: BTreeMap::new(),
                told: Vec::new(),
                punched: Vec::new(),
            });
        }
        world
    }

    /// Makes a call, and does what the member wants.
    pub fn call(&mut self, who: usize, call: Call) -> Outcome {
        let done = self.processes[who].member.call(call, self.now);
        self.carry_out(who);
        match done {
            Err(refusal) => Outcome::Now(Err(refusal)),
            Ok(Done::Now(value)) => Outcome::Now(Ok(value)),
            Ok(Done::Wait(ticket)) => match self.outcome(who, ticket) {
                Some(outcome) => Outcome::Now(outcome),
                None => Outcome::Waiting(ticket),
            },
        }
    }

    /// Makes a call that does not wait.
    pub fn now(&mut self, who: usize, call: Call) -> Result<Value, Refusal> {
        match self.call(who, call) {
            Outcome::Now(outcome) => outcome,
            Outcome::Waiting(_) => panic!("{call:?} waits"),
        }
    }

    /// Takes what came of a call that waited.
    pub fn outcome(&mut self, who: usize, ticket: Ticket) -> Option<Result<Value, Refusal>> {
        let told = &mut self.processes[who].told;
        let found = told.iter().position(|told| matches!(told, Told::Outcome(of, _) if *of == ticket))?;
        match told.remove(found) {
            Told::Outcome(_, outcome) => Some(outcome),
            _ => None,
        }
    }

    pub fn look(&mut self, who: usize) {
        self.processes[who].member.look(self.now);
        self.carry_out(who);
    }

    pub fn ring(&mut self, index: usize) {
        let who = self.rings.remove(index);
        if self.processes[who].is_alive {
            self.look(who);
        }
    }

    /// Lets a process die where it stands.
    pub fn kill(&mut self, who: usize) {
        self.processes[who].is_alive = false;
        let pairs: Vec<_> = self.processes[who].pairs.values().copied().collect();
        self.gone.extend(
            pairs.into_iter().filter(|(other, _)| *other != who).map(|(other, pair)| (other, pair, who)),
        );
    }

    /// Delivers the news of a death: to whom, and of whom it was.
    pub fn learn(&mut self, index: usize) -> (usize, usize) {
        let (who, pair, of) = self.gone.remove(index);
        if self.processes[who].is_alive {
            self.processes[who].users.remove(&pair);
            self.processes[who].member.gone(pair, self.now);
            self.carry_out(who);
        }
        (who, of)
    }

    fn carry_out(&mut self, who: usize) {
        while let Some(want) = self.processes[who].member.next_want() {
            match want {
                Want::Name(ask, op) => {
                    let answer = self.name(who, op);
                    self.processes[who].member.answered(ask, answer, self.now);
                }
                Want::Reach { pair, node, member } => self.reach(who, pair, node, member),
                Want::Ring(pair) => {
                    let (other, _) = self.processes[who].pairs[&pair];
                    self.rings.push(other);
                }
                Want::Close(pair) => drop(self.processes[who].pairs.remove(&pair)),
                Want::Punch { offset, bytes } => self.processes[who].punched.push((offset, bytes)),
            }
        }
        let member = &mut self.processes[who].member;
        let all = std::iter::from_fn(|| member.next_event().or_else(|| member.next_callback()));
        for told in all.collect::<Vec<_>>() {
            self.processes[who].told.push(told);
        }
    }

    fn name(&mut self, who: usize, op: NameOp) -> Answer {
        let (processes, own_node) = (&self.processes, self.processes[who].node);
        let node_of = |name: Name| if name.kind.is_of_fabric() { NodeId::GROUPS } else { own_node };
        let may_be_beside =
            |name: Name| matches!(name.kind, NameKind::SharedInterrupt | NameKind::GroupInterrupt);
        match op {
            NameOp::Put(name, slot) if may_be_beside(name) => {
                self.names.entry((node_of(name), name)).or_default().push((who, slot));
                Answer::Done
            }
            NameOp::Put(name, slot) | NameOp::PutFirst(name, slot) => {
                let holders = self.names.entry((node_of(name), name)).or_default();
                holders.retain(|(holder, _)| processes[*holder].is_alive);
                if !holders.is_empty() {
                    return Answer::Taken;
                }
                holders.push((who, slot));
                Answer::Done
            }
            NameOp::PutBeside(name, slot, of) => {
                let holders = self.names.entry((node_of(name), name)).or_default();
                holders.retain(|(holder, _)| processes[*holder].is_alive);
                let is_it =
                    |it: &(usize, Slot)| (number_of(processes, it.0), it.1) == (of.member, of.lent.slot);
                if !holders.is_empty() && !holders.iter().any(is_it) {
                    return Answer::Taken;
                }
                holders.push((who, slot));
                Answer::Done
            }
            NameOp::Remove(name, slot) => {
                let holders = self.names.entry((node_of(name), name)).or_default();
                let before = holders.len();
                holders.retain(|holder| *holder != (who, slot));
                assert_eq!(holders.len() + 1, before, "the name is there until its member removes it");
                Answer::Done
            }
            NameOp::Find(..) if self.fails_to_find => Answer::Failed,
            NameOp::Find(node, name) => {
                let is_node_alive = processes.iter().any(|it| it.node == node && it.is_alive);
                let holders = self.names.get(&(node, name)).cloned().unwrap_or_default();
                let living = holders.into_iter().filter(|(holder, _)| processes[*holder].is_alive);
                let candidates = living
                    .map(|(holder, slot)| Candidate { member: number_of(processes, holder), slot })
                    .collect();
                Answer::Found(Found { is_node_alive, candidates })
            }
        }
    }

    /// Has one that reaches a silent member learn that it does not answer.
    pub fn refuse_waiting(&mut self, who: usize, silent: usize) {
        let of = |it: &(usize, usize, PairId)| (it.0, it.1) == (who, silent);
        let index = self.waiting.iter().position(of).expect("it is being reached");
        let (.., pair) = self.waiting.remove(index);
        self.processes[who].member.reached(pair, Reached::NotResponding, self.now);
        self.carry_out(who);
    }

    /// The interrupt of a member under a number that several have, as its name says.
    pub fn group_interrupt_of(&self, who: usize, number: InterruptNumber) -> Option<Candidate> {
        let name = Name { kind: NameKind::GroupInterrupt, number: number.0 };
        let (holder, slot) = *self.names.get(&(NodeId::GROUPS, name))?.iter().find(|it| it.0 == who)?;
        Some(Candidate { member: number_of(&self.processes, holder), slot })
    }

    /// The entry of a member's segment, as its name says.
    pub fn slot_of(&self, who: usize, id: u32) -> Option<Slot> {
        let holders = self.names.get(&(self.processes[who].node, Name::segment(SegmentId(id))))?;
        holders.iter().find(|(holder, _)| *holder == who).map(|(_, slot)| *slot)
    }

    fn reach(&mut self, who: usize, pair: PairId, node: NodeId, member: MemberNumber) {
        // What is left of the number beside its node.
        let other = (member.0 & 0xffff_ffff) as usize;
        if self.silent.contains(&other) {
            self.waiting.push((who, other, pair));
            return;
        }
        let reached = if self.processes[other].is_alive {
            assert_eq!(self.processes[other].node, node);
            let (own_board, board) = (&self.processes[who].board, self.processes[other].board.clone());
            let claims = Words::claims(own_board);
            let seen_by_them = claims.seen_by(&board);
            let board = board.seen_by(own_board);
            let own_node = self.processes[who].node;
            let there = self.processes[other].member.admit(own_node, seen_by_them.clone());
            self.processes[other].users.insert(there, seen_by_them);
            self.processes[other].pairs.insert(there, (who, pair));
            self.processes[who].pairs.insert(pair, (other, there));
            Reached::Provider { board, claims }
        } else {
            Reached::NotResponding
        };
        self.processes[who].member.reached(pair, reached, self.now);
    }
}

/// The number under which a member is offered.
fn number_of(processes: &[Process], who: usize) -> MemberNumber {
    MemberNumber::new(processes[who].node, (who as u64) << 16)
}

/// A call that makes a segment.
pub fn create(id: u32, bytes: u64) -> Call {
    let (is_auto, is_private, is_empty, has_callback) = (false, false, false, false);
    Call::CreateSegment { id: SegmentId(id), is_auto, bytes, is_private, is_empty, has_callback }
}

/// A call that connects at once or not at all, over the first adapter.
pub fn connect(node: NodeId, id: u32) -> Call {
    let (is_asynchronous, has_callback) = (false, false);
    Call::Connect {
        node,
        id: SegmentId(id),
        adapter: adapter(0),
        timeout_nanos: Some(0),
        is_asynchronous,
        has_callback,
    }
}

pub fn local_of(value: Value) -> LocalSegment {
    match value {
        Value::Local(local, _) => local,
        other => panic!("{other:?} is no segment"),
    }
}

pub fn remote_of(value: Value) -> RemoteSegment {
    match value {
        Value::Remote(remote, _) => remote,
        other => panic!("{other:?} is no connection"),
    }
}
