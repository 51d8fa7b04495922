//! Every call in every state of the model (`states/`), made by members in the world of this folder.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod world;

use beeline_fabric::*;
use beeline_fabric_states as model;
use model::{Answer, Graph, Of, Refused, Scope, Subject};
use world::*;

const ID: u32 = 7;
const NUMBER: InterruptNumber = InterruptNumber(7);
const BYTES: u64 = 64;
const REST_NANOS: u64 = 1_000_000;

/// Members, with what the model calls by number.
struct Members {
    world: World,
    has_callbacks: bool,
    /// The time of each: who looks does not try to connect again unless it is time to.
    clocks: Vec<u64>,
    locals: Vec<Option<LocalSegment>>,
    /// The entries of the segments, or of the interrupts, that each has made.
    entries: Vec<Vec<Slot>>,
    interrupts: Vec<Option<(LocalInterrupt, Place)>>,
    triggers: Vec<Vec<Option<RemoteInterrupt>>>,
    remotes: Vec<Vec<Option<RemoteSegment>>>,
    sequences: Vec<Vec<Option<SequenceStart>>>,
    waiting: Vec<(usize, Of, Ticket)>,
}

impl Members {
    fn new(scope: &Scope) -> Self {
        let nodes: Vec<NodeId> = scope.nodes.iter().map(|node| NODES[usize::from(*node)]).collect();
        let count = nodes.len();
        Members {
            world: World::of(&nodes),
            has_callbacks: scope.has_callbacks,
            clocks: vec![0; count],
            locals: vec![None; count],
            entries: vec![Vec::new(); count],
            interrupts: vec![None; count],
            triggers: vec![vec![None; scope.connections]; count],
            remotes: vec![vec![None; scope.connections]; count],
            sequences: vec![vec![None; scope.connections]; count],
            waiting: Vec::new(),
        }
    }

    fn local(&self, who: usize) -> LocalSegment {
        self.locals[who].unwrap()
    }

    fn remote(&self, who: usize, at: usize) -> RemoteSegment {
        self.remotes[who][at].unwrap()
    }

    fn connect(&self, node: u8, by: u8, is_asynchronous: bool) -> Call {
        Call::Connect {
            node: NODES[usize::from(node)],
            id: SegmentId(ID),
            adapter: adapter_of(by),
            timeout_nanos: if is_asynchronous { None } else { Some(0) },
            is_asynchronous,
            has_callback: self.has_callbacks,
        }
    }

    fn call_of(&self, who: usize, call: model::Call) -> Call {
        let of = adapter_of;
        let until = |is_blocking: bool| if is_blocking { None } else { Some(0) };
        match call {
            model::Call::Create { is_empty } => Call::CreateSegment {
                id: SegmentId(ID),
                is_auto: false,
                bytes: BYTES,
                is_private: false,
                is_empty,
                has_callback: self.has_callbacks,
            },
            model::Call::Register => {
                Call::Register { local: self.local(who), bytes: BYTES, is_shareable: true }
            }
            model::Call::Prepare(by) => Call::Prepare(self.local(who), of(by)),
            model::Call::SetAvailable(by) => Call::SetAvailable(self.local(who), of(by)),
            model::Call::SetUnavailable { by, is_forced } => {
                Call::SetUnavailable { local: self.local(who), adapter: of(by), is_forced }
            }
            model::Call::Notify => Call::Notify(self.local(who)),
            model::Call::Remove { is_forced } => Call::RemoveSegment { local: self.local(who), is_forced },
            model::Call::WaitLocal { is_blocking } => {
                Call::WaitLocal { local: self.local(who), timeout_nanos: until(is_blocking) }
            }
            model::Call::Connect { node, by, .. } => self.connect(node, by, false),
            model::Call::Seek { node, by, .. } => self.connect(node, by, true),
            model::Call::Disconnect(at) => Call::Disconnect(self.remote(who, at)),
            model::Call::StartSequence(at) => Call::StartSequence(self.remote(who, at)),
            model::Call::CheckSequence(at) => {
                Call::CheckSequence(self.remote(who, at), self.sequences[who][at].unwrap())
            }
            model::Call::WaitRemote { at, is_blocking } => {
                Call::WaitRemote { remote: self.remote(who, at), timeout_nanos: until(is_blocking) }
            }
            model::Call::CreateInterrupt => Call::CreateGroupInterrupt { number: Some(NUMBER) },
            model::Call::RemoveInterrupt => Call::RemoveInterrupt(self.interrupts[who].unwrap().0),
            model::Call::ConnectInterrupt { owner, by, .. } => Call::ConnectSharedInterrupt {
                node: NodeId::GROUPS,
                number: NUMBER,
                adapter: of(by),
                at: self.world.group_interrupt_of(owner, NUMBER).unwrap(),
                timeout_nanos: 0,
            },
            model::Call::DisconnectInterrupt(at) => {
                Call::DisconnectInterrupt(self.triggers[who][at].unwrap())
            }
            model::Call::SetLink { by, is_up } => Call::SetLink(of(by), is_up),
            other => unreachable!("{other:?} is no call of a program"),
        }
    }

    /// What a call gave, and what is to be kept of it.
    fn answer(&mut self, who: usize, call: model::Call, value: Value) -> Answer {
        match (call, value) {
            (_, Value::Local(local, _)) => {
                self.locals[who] = Some(local);
                let slot = self.world.slot_of(who, ID).unwrap();
                self.entry(who, slot)
            }
            (_, Value::Interrupt(local, _, _, place)) => {
                self.interrupts[who] = Some((local, place));
                self.entry(who, place.slot)
            }
            (model::Call::ConnectInterrupt { at, .. }, Value::Trigger(remote)) => {
                self.triggers[who][at] = Some(remote);
                Answer::Done
            }
            (model::Call::Connect { at, .. } | model::Call::Seek { at, .. }, Value::Remote(remote, _)) => {
                self.remotes[who][at] = Some(remote);
                Answer::Done
            }
            (model::Call::StartSequence(at), Value::Started(status, start)) => {
                self.sequences[who][at] = start.or(self.sequences[who][at]);
                Answer::Sequence(sequence(status))
            }
            (_, Value::Checked(status)) => Answer::Sequence(sequence(status)),
            (_, Value::LocalEvent(event)) => Answer::Event(local_event(event)),
            (_, Value::RemoteEvent(event)) => Answer::Event(remote_event(event)),
            (_, Value::Nothing) => Answer::Done,
            (call, value) => panic!("{call:?} gives {value:?}"),
        }
    }

    fn entry(&mut self, who: usize, slot: Slot) -> Answer {
        self.entries[who].push(slot);
        Answer::Created { entry: self.entries[who].iter().position(|it| *it == slot).unwrap() as u8 }
    }

    /// Triggers as a thread does, with what the member has for that at this moment.
    fn trigger(&mut self, who: usize, at: usize) -> Result<Answer, String> {
        let remote = self.triggers[who][at].unwrap();
        let process = &mut self.world.processes[who];
        let own = process.board.clone();
        let triggered = process.member.trigger(remote, &own).and_then(|(_, trigger)| {
            trigger.check()?;
            trigger.raise();
            Ok(Answer::Done)
        });
        triggered.or_else(|refusal| Ok(Answer::Refused(refused(refusal)?)))
    }

    /// Whose messages may come: members that have said so by a count.
    fn hear(&self, who: usize) -> Answer {
        let (_, place) = self.interrupts[who].unwrap();
        let process = &self.world.processes[who];
        let begun = process.users.iter().filter(|(_, uses)| has_begun(*uses, place));
        Answer::Heard(begun.fold(0, |heard, (pair, _)| heard | 1 << process.pairs[pair].0))
    }

    /// Whether a call that waits is ended by this one.
    fn is_cancelled(&mut self, who: usize, call: model::Call) -> bool {
        let of = match call {
            model::Call::Remove { .. } => Of::Segment,
            model::Call::Disconnect(at) => Of::Connection(at),
            _ => return false,
        };
        let Some(waiting) = self.waiting.iter().position(|it| (it.0, it.1) == (who, of)) else {
            return false;
        };
        let cancelled = self.world.outcome(who, self.waiting[waiting].2) == Some(Err(Refusal::Cancelled));
        if cancelled {
            self.waiting.remove(waiting);
        }
        cancelled
    }

    fn around(&mut self, who: usize, call: model::Call) -> Result<(), String> {
        match call {
            model::Call::Kill => {
                self.world.kill(who);
                self.waiting.retain(|(waiting, ..)| *waiting != who);
            }
            model::Call::Look => {
                let before = self.world.rings.len();
                self.world.rings.retain(|rung| *rung != who);
                if self.world.rings.len() == before {
                    return Err("nobody has rung".to_owned());
                }
                self.world.look(who);
            }
            model::Call::Learn(of) => {
                let mut is_news = false;
                while let Some(index) =
                    self.world.gone.iter().position(|(to, _, about)| (*to, *about) == (who, of))
                {
                    self.world.learn(index);
                    is_news = true;
                }
                return is_news.then_some(()).ok_or_else(|| "nobody has said so".to_owned());
            }
            _ => {
                self.clocks[who] += REST_NANOS;
                self.world.now = Nanos(self.clocks[who]);
                self.world.look(who);
            }
        }
        Ok(())
    }
}

impl Subject for Members {
    fn perform(&mut self, who: usize, call: model::Call) -> Result<Answer, String> {
        self.world.now = Nanos(self.clocks[who]);
        if matches!(call, model::Call::Kill | model::Call::Look | model::Call::Learn(_) | model::Call::Tick) {
            return self.around(who, call).map(|()| Answer::Done);
        }
        match call {
            model::Call::Trigger(at) => return self.trigger(who, at),
            model::Call::Hear => return Ok(self.hear(who)),
            _ => {}
        }
        let outcome = self.world.call(who, self.call_of(who, call));
        let outcome = match outcome {
            Outcome::Now(outcome) => outcome,
            Outcome::Waiting(ticket) => {
                let of = match call {
                    model::Call::WaitLocal { .. } => Of::Segment,
                    model::Call::WaitRemote { at, .. } => Of::Connection(at),
                    other => return Err(format!("{other:?} waits")),
                };
                self.waiting.push((who, of, ticket));
                return Ok(Answer::Waits);
            }
        };
        if self.is_cancelled(who, call) {
            return Ok(Answer::DoneAndCancelled);
        }
        match outcome {
            Ok(value) => Ok(self.answer(who, call, value)),
            Err(Refusal::Timeout) => Ok(Answer::NoEvent),
            Err(refusal) => Ok(Answer::Refused(refused(refusal)?)),
        }
    }

    fn told(&mut self, who: usize) -> Option<(Of, model::Event)> {
        for index in 0..self.waiting.len() {
            let (waiting, of, ticket) = self.waiting[index];
            let outcome = if waiting == who { self.world.outcome(who, ticket) } else { None };
            let Some(outcome) = outcome else { continue };
            self.waiting.remove(index);
            return match outcome.unwrap() {
                Value::LocalEvent(event) => Some((of, local_event(event))),
                Value::RemoteEvent(event) => Some((of, remote_event(event))),
                other => panic!("a call waits for {other:?}"),
            };
        }
        let told = &mut self.world.processes[who].told;
        let first = told.iter().position(|told| !matches!(told, Told::Outcome(..)))?;
        match told.remove(first) {
            Told::OfLocal(_, event) => Some((Of::Segment, local_event(event))),
            Told::OfRemote(remote, event) => {
                let at = self.remotes[who].iter().position(|it| *it == Some(remote)).unwrap();
                Some((Of::Connection(at), remote_event(event)))
            }
            Told::Outcome(..) => None,
        }
    }
}

fn adapter_of(by: u8) -> AdapterNumber {
    if by == model::ANY { AdapterNumber::ANY } else { adapter(by.into()) }
}

fn node_of(node: NodeId) -> u8 {
    NODES.iter().position(|it| *it == node).unwrap() as u8
}

fn local_event(event: LocalEvent) -> model::Event {
    match event {
        LocalEvent::Connect(node) => model::Event::Connect(node_of(node)),
        LocalEvent::Disconnect(node) => model::Event::Disconnect(node_of(node)),
        LocalEvent::Lost(node) => model::Event::LostBy(node_of(node)),
        LocalEvent::NotOperational(by) => model::Event::NotOperational(by.number() as u8),
        LocalEvent::Operational(by) => model::Event::Operational(by.number() as u8),
    }
}

fn remote_event(event: RemoteEvent) -> model::Event {
    match event {
        RemoteEvent::Connect(_) => model::Event::Connected,
        RemoteEvent::NotOperational => model::Event::IsNotOperational,
        RemoteEvent::Operational => model::Event::IsOperational,
        RemoteEvent::Lost => model::Event::IsLost,
        RemoteEvent::Disconnect => model::Event::IsAsked,
        RemoteEvent::NotMade(refusal) => panic!("an attempt without an end is refused: {refusal}"),
    }
}

fn sequence(status: SequenceStatus) -> model::Sequence {
    match status {
        SequenceStatus::Ok => model::Sequence::Ok,
        SequenceStatus::Retriable => model::Sequence::Retriable,
        SequenceStatus::NotRetriable => model::Sequence::NotRetriable,
        SequenceStatus::Pending => model::Sequence::Pending,
    }
}

fn refused(refusal: Refusal) -> Result<Refused, String> {
    Ok(match refusal {
        Refusal::Busy => Refused::Busy,
        Refusal::ConnectionRefused => Refused::ConnectionRefused,
        Refusal::IllegalOperation => Refused::IllegalOperation,
        Refusal::NoLinkAccess => Refused::NoLinkAccess,
        Refusal::NoRemoteLinkAccess => Refused::NoRemoteLinkAccess,
        Refusal::NoSuchSegment => Refused::NoSuchSegment,
        Refusal::NotConnected => Refused::NotConnected,
        Refusal::NodeNotResponding => Refused::NodeNotResponding,
        Refusal::SegmentNotConnected => Refused::SegmentNotConnected,
        Refusal::SegmentNotPrepared => Refused::SegmentNotPrepared,
        Refusal::SegmentidUsed => Refused::SegmentidUsed,
        other => return Err(format!("it is refused: {other:?}")),
    })
}

#[test]
fn members_answer_every_call_in_every_state_as_the_model_does() {
    for (name, scope) in Scope::all() {
        let graph = Graph::of(&scope);
        match graph.tour(|| Members::new(&scope)) {
            Ok(seen) => {
                println!("{name}: {seen:?}");
                // The rest are courses that members may take and do not: to be told later, or another entry.
                assert!(seen.steps > seen.all_steps * 2 / 5, "{name}: {seen:?}");
            }
            Err(why) => panic!("{name}: {why}"),
        }
    }
}
