//! The handshake of members whose words are copies that are pushed across a link, in all states that it can reach.
//!
//! Loom's memory is that of one machine, so it cannot run this. Here each side is its own code (`claims.rs`), run anew from its beginning for
//! each step with the answers that it has had so far, up to the next thing that it asks for. Between the sides are hosts: stores leave a
//! core, wait in its root complex and go by a link that keeps PCI Express's order of one source: a write overtakes what is no write, and
//! nothing overtakes a write. Where a member's words are read, they are in the reader's memory.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use beeline_contract_adapter::{PublishPort, Unconfirmed, ViewPort};

use crate::board::layout::{Claim, EntryState, LIFE, Life, Phase, entry_state};
use crate::claims::{claim, close, force, freed};
use crate::ids::Slot;
use crate::link::{LinkWord, Paths};
use crate::sequence::{Connected, ConnectionView, SequenceStatus};
use Barrier::{Fence, ReadAcross};
use Outcome::{Checked, Connected as Joined, Removed, Taken};

const SLOT: Slot = Slot(0);
const OPEN: EntryState = EntryState { incarnation: 3, phase: Phase::Open, available: 1, notices: 0 };
/// The member that has the segment.
const PROVIDER: usize = 0;
/// Words of a host's memory: the entry, or its copy; what the segment holds; and the claims of each other host.
const ENTRY: usize = 0;
const CONTENT: usize = 1;
const WORDS: usize = 4;

fn claims_of(consumer: usize) -> usize {
    CONTENT + consumer
}

/// What a barrier is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Barrier {
    /// Stores have left the core. That is all that a fence says.
    Fence,
    /// And a read of each other host's memory has been answered.
    ReadAcross,
}

/// What a side asks for next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Publish(u64),
    /// A store to the segment, by a buffer that combines writes: it leaves in any order with what follows.
    Store(u64),
    Barrier,
    Load(usize),
}

/// What came of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Outcome {
    Connected(bool),
    Removed(bool),
    /// Taken by force: which consumers are rung, a bit each, and what the segment held afterwards.
    Taken(u64, u64),
    /// Whether the check of a sequence found nothing.
    Checked(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Packet {
    Write(usize, u64),
    Read,
    Answer,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Side {
    answers: Vec<u64>,
    outcome: Option<Outcome>,
    /// Stores in the core: whether each may leave before older ones, the host that it goes to, and what.
    core: Vec<(bool, usize, Packet)>,
    /// What has left the core and is not on a link.
    root: VecDeque<(usize, Packet)>,
    /// Answers that a barrier waits for; `None` outside of one.
    awaits: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    sides: Vec<Side>,
    memory: Vec<[u64; WORDS]>,
    /// What is on the link from one host to another.
    links: Vec<Vec<VecDeque<Packet>>>,
}

/// How a side sees the words of the others while it runs.
struct Replay {
    answers: RefCell<std::vec::IntoIter<u64>>,
    next: RefCell<Option<Step>>,
}

/// A side has come to the end of what is known.
struct Unfinished;

impl Replay {
    fn ask(&self, step: Step) -> u64 {
        if let Some(answer) = self.answers.borrow_mut().next() {
            return answer;
        }
        *self.next.borrow_mut() = Some(step);
        // Not a panic: no hook hears of it.
        resume_unwind(Box::new(Unfinished));
    }
}

#[derive(Clone)]
struct Port(Rc<Replay>, usize);

impl PublishPort for Port {
    fn publish(&mut self, _word: u32, value: u64) {
        self.0.ask(Step::Publish(value));
    }

    fn barrier(&mut self) -> Result<(), Unconfirmed> {
        self.0.ask(Step::Barrier);
        Ok(())
    }
}

impl ViewPort for Port {
    fn load(&self, word: u32) -> u64 {
        match word {
            _ if self.1 != ENTRY || word == entry_state(SLOT) => self.0.ask(Step::Load(self.1)),
            LIFE => Life { is_open: true, is_listening: false }.word(),
            _ => LinkWord { epoch: 1, is_up: true }.word(),
        }
    }
}

type Program = fn(&Rc<Replay>, usize) -> Outcome;

fn connects(replay: &Rc<Replay>, side: usize) -> Outcome {
    let new = Claim { incarnation: OPEN.incarnation, count: 1, ..Claim::default() };
    let (board, mut claims) = (Port(Rc::clone(replay), ENTRY), Port(Rc::clone(replay), claims_of(side)));
    Outcome::Connected(claim(&board, &mut claims, SLOT, OPEN, (Claim::default(), new)).is_ok())
}

fn removes(replay: &Rc<Replay>, _: usize) -> Outcome {
    let claims = [1, 2].map(|consumer| Port(Rc::clone(replay), claims_of(consumer)));
    Outcome::Removed(close(&mut Port(Rc::clone(replay), ENTRY), claims.iter(), SLOT, OPEN))
}

fn takes(replay: &Rc<Replay>, _: usize) -> Outcome {
    let claims = [1, 2].map(|consumer| (consumer, Port(Rc::clone(replay), claims_of(consumer))));
    let members = claims.iter().map(|(consumer, claims)| (*consumer, claims));
    let mut board = Port(Rc::clone(replay), ENTRY);
    let rung = force(&mut board, members, SLOT, (OPEN.incarnation, freed(OPEN)));
    let content = replay.ask(Step::Load(CONTENT));
    Outcome::Taken(rung.iter().map(|consumer| 1 << consumer).sum(), content)
}

/// Stores in a sequence, and passes a barrier before its check.
fn stores(replay: &Rc<Replay>, _: usize) -> Outcome {
    let board = Port(Rc::clone(replay), ENTRY);
    let connected = Connected { slot: SLOT, incarnation: 3, paths: Paths::of(1) };
    let view = ConnectionView { own: board.clone(), theirs: board.clone(), connected };
    let (_, Some(start)) = view.start() else { return Outcome::Checked(false) };
    replay.ask(Step::Store(1));
    let is_confirmed = board.clone().barrier().is_ok();
    Outcome::Checked(is_confirmed && view.check(start) == SequenceStatus::Ok)
}

/// Members, and what barrier each has.
struct Model<'a> {
    sides: &'a [(Program, Barrier)],
}

impl Model<'_> {
    fn first(&self) -> State {
        let side = Side { answers: vec![], outcome: None, core: vec![], root: VecDeque::new(), awaits: None };
        let hosts = self.sides.len();
        let mut memory = [0; WORDS];
        memory[ENTRY] = OPEN.word();
        State {
            sides: vec![side; hosts],
            memory: vec![memory; hosts],
            links: vec![vec![VecDeque::new(); hosts]; hosts],
        }
    }

    fn others(&self, side: usize) -> Vec<usize> {
        // Consumers have nothing with each other.
        if side == PROVIDER { (1..self.sides.len()).collect() } else { vec![PROVIDER] }
    }

    /// Every state that one step of anything leads to.
    fn after(&self, state: &State) -> Vec<State> {
        let mut after = Vec::new();
        for side in 0..self.sides.len() {
            after.extend(self.side_steps(state, side));
            for at in 0..state.sides[side].core.len() {
                if at == 0 || state.sides[side].core[at].0 {
                    let mut next = state.clone();
                    let (_, to, packet) = next.sides[side].core.remove(at);
                    next.sides[side].root.push_back((to, packet));
                    after.push(next);
                }
            }
            if !state.sides[side].root.is_empty() {
                let mut next = state.clone();
                let (to, packet) = next.sides[side].root.pop_front().unwrap();
                next.links[side][to].push_back(packet);
                after.push(next);
            }
            for to in 0..self.sides.len() {
                after.extend(self.deliveries(state, side, to));
            }
        }
        after
    }

    /// What arrives next of a link: the first packet, or a write behind packets that are none.
    fn deliveries(&self, state: &State, from: usize, to: usize) -> Vec<State> {
        let link = &state.links[from][to];
        let may_arrive = |at: &usize| {
            let overtakes = |older: &Packet| {
                matches!(link[*at], Packet::Write(..)) && !matches!(older, Packet::Write(..))
            };
            link.range(..*at).all(overtakes)
        };
        let arriving = (0..link.len()).filter(may_arrive);
        arriving
            .map(|at| {
                let mut next = state.clone();
                match next.links[from][to].remove(at).unwrap() {
                    Packet::Write(word, value) => next.memory[to][word] = value,
                    Packet::Read => next.links[to][from].push_back(Packet::Answer),
                    Packet::Answer => next.sides[to].awaits = next.sides[to].awaits.map(|count| count - 1),
                }
                next
            })
            .collect()
    }

    /// The next step of a side's code, if it may be done now.
    fn side_steps(&self, state: &State, side: usize) -> Option<State> {
        let it = &state.sides[side];
        if it.outcome.is_some() {
            return None;
        }
        let (program, barrier) = self.sides[side];
        let mut next = state.clone();
        let answers = RefCell::new(it.answers.clone().into_iter());
        let replay = Rc::new(Replay { answers, next: RefCell::new(None) });
        let ran = catch_unwind(AssertUnwindSafe(|| program(&replay, side)));
        let of = &mut next.sides[side];
        match (ran, replay.next.take()) {
            (Ok(outcome), _) => {
                of.outcome = Some(outcome);
                return Some(next);
            }
            (Err(_), Some(Step::Load(word))) => of.answers.push(state.memory[side][word]),
            (Err(_), Some(Step::Publish(value))) => {
                let word = if side == PROVIDER { ENTRY } else { claims_of(side) };
                let others = self.others(side);
                of.core.extend(others.iter().map(|to| (false, *to, Packet::Write(word, value))));
                of.answers.push(0);
                if side == PROVIDER {
                    next.memory[side][ENTRY] = value;
                }
            }
            (Err(_), Some(Step::Store(value))) => {
                of.core.push((true, PROVIDER, Packet::Write(CONTENT, value)));
                of.answers.push(0);
            }
            (Err(_), Some(Step::Barrier)) => match (barrier, it.awaits) {
                _ if !it.core.is_empty() => return None,
                (Barrier::Fence, _) | (Barrier::ReadAcross, Some(0)) => {
                    of.awaits = None;
                    of.answers.push(0);
                }
                (Barrier::ReadAcross, None) => {
                    let others = self.others(side);
                    of.awaits = Some(others.len());
                    of.root.extend(others.iter().map(|to| (*to, Packet::Read)));
                }
                (Barrier::ReadAcross, Some(_)) => return None,
            },
            (Err(payload), None) => resume_unwind(payload),
        }
        Some(next)
    }

    /// The ends of all runs: what came of each side, and what the memory of the segment's member holds.
    fn ends(&self) -> HashSet<(Vec<Outcome>, [u64; WORDS])> {
        let (mut seen, mut ends) = (HashSet::new(), HashSet::new());
        let mut open = vec![self.first()];
        while let Some(state) = open.pop() {
            if !seen.insert(state.clone()) {
                continue;
            }
            let after = self.after(&state);
            if after.is_empty() {
                let outcomes =
                    state.sides.iter().map(|side| side.outcome.expect("a side waits for ever")).collect();
                ends.insert((outcomes, state.memory[PROVIDER]));
            }
            open.extend(after);
        }
        ends
    }
}

fn outcomes(sides: &[(Program, Barrier)]) -> HashSet<Vec<Outcome>> {
    Model { sides }.ends().into_iter().map(|(outcomes, _)| outcomes).collect()
}

#[test]
fn segment_is_not_removed_and_connected_to_across_a_link() {
    let ends = Model { sides: &[(removes, ReadAcross), (connects, ReadAcross)] }.ends();
    let found: HashSet<_> = ends.iter().map(|(outcomes, _)| outcomes.clone()).collect();
    assert!(!found.contains(&vec![Removed(true), Joined(true)]), "removed under a connection");
    // Either can have it, and the last case is the one that decision 0039 accepts.
    let others = [(true, false), (false, true), (false, false)];
    assert_eq!(found, others.map(|(removed, joined)| vec![Removed(removed), Joined(joined)]).into());
    for (outcomes, memory) in ends {
        let state = EntryState::of(memory[ENTRY]);
        let claim = Claim::of(memory[claims_of(1)]);
        assert_eq!(outcomes[0], Removed(state.phase == Phase::Free));
        assert_eq!(outcomes[1], Joined(claim.is_of(OPEN.incarnation)), "what is claimed at the end");
    }
}

/// A fence is what the same handshake has over memory (`claims_loom.rs`).
#[test]
fn fence_does_not_keep_a_segment_from_being_removed_and_connected_to() {
    let found = outcomes(&[(removes, Fence), (connects, Fence)]);
    assert!(found.contains(&vec![Removed(true), Joined(true)]), "{found:?}");
}

#[test]
fn one_side_that_reads_across_is_not_enough() {
    for (provider, consumer) in [(ReadAcross, Fence), (Fence, ReadAcross)] {
        let found = outcomes(&[(removes, provider), (connects, consumer)]);
        assert!(found.contains(&vec![Removed(true), Joined(true)]), "{provider:?}, {consumer:?}: {found:?}");
    }
}

#[test]
fn segment_is_not_removed_and_connected_to_by_either_of_two_hosts() {
    let consumer: (Program, Barrier) = (connects, ReadAcross);
    let found = outcomes(&[(removes, ReadAcross), consumer, consumer]);
    let is_broken = |end: &Vec<Outcome>| end[0] == Removed(true) && end[1..].contains(&Joined(true));
    assert!(!found.iter().any(is_broken), "removed under a connection");
    assert!(found.contains(&vec![Removed(false), Joined(true), Joined(true)]), "{found:?}");
}

#[test]
fn user_of_a_segment_that_is_taken_is_rung_across_a_link() {
    let is_missed = |end: &Vec<Outcome>| end[1] == Joined(true) && matches!(end[0], Taken(0, _));
    let found = outcomes(&[(takes, ReadAcross), (connects, ReadAcross)]);
    assert!(!found.iter().any(is_missed), "nobody tells who is connected");
    assert!(found.contains(&vec![Taken(2, 0), Joined(true)]), "{found:?}");
    assert!(outcomes(&[(takes, Fence), (connects, Fence)]).iter().any(is_missed));
}

#[test]
fn check_across_a_link_finds_nothing_only_if_the_stores_came_before_the_end() {
    let is_late = |end: &Vec<Outcome>| end[1] == Checked(true) && matches!(end[0], Taken(_, 0));
    let found = outcomes(&[(takes, ReadAcross), (stores, ReadAcross)]);
    assert!(!found.iter().any(is_late), "stored behind the end, and the check says nothing");
    assert!(found.contains(&vec![Taken(0, 1), Checked(true)]), "{found:?}");
    assert!(outcomes(&[(takes, Fence), (stores, Fence)]).iter().any(is_late));
}
