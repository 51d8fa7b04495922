//! Random calls on interrupts by three members, against a model that knows everything: whoever dies when, and in whatever order its death is
//! learned, each trigger that was made reaches each interrupt that it should, as often as its kind says, and no other.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod world;

use std::collections::BTreeMap;

use beeline_fabric::*;
use proptest::prelude::*;
use world::*;

const KINDS: [InterruptKind; 3] = [InterruptKind::Plain, InterruptKind::Counting, InterruptKind::Data];

#[derive(Clone, Copy, Debug)]
enum Op {
    Create {
        who: usize,
        number: Option<u32>,
        kind: usize,
    },
    Remove(usize),
    /// Connects to an interrupt that there is, or was.
    ConnectTo {
        who: usize,
        of: usize,
        by: u32,
    },
    Connect {
        who: usize,
        node: usize,
        number: u32,
        has_data: bool,
    },
    Trigger(usize),
    Take(usize),
    Disconnect(usize),
    Link {
        who: usize,
        by: u32,
        is_up: bool,
    },
    Learn(usize),
    Kill(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let (who, of) = (0..3_usize, any::<u16>().prop_map(usize::from));
    let create = (who.clone(), prop_oneof![3 => (1..4_u32).prop_map(Some), 1 => Just(None)], 0..3_usize);
    let connect_to = (who.clone(), of.clone(), 0..2_u32);
    let connect = (who.clone(), 0..3_usize, 1..4_u32, any::<bool>());
    prop_oneof![
        8 => create.prop_map(|(who, number, kind)| Op::Create { who, number, kind }),
        3 => of.clone().prop_map(Op::Remove),
        12 => connect_to.prop_map(|(who, of, by)| Op::ConnectTo { who, of, by }),
        2 => connect.prop_map(|(who, node, number, has_data)| Op::Connect { who, node, number, has_data }),
        20 => of.clone().prop_map(Op::Trigger),
        12 => of.clone().prop_map(Op::Take),
        5 => of.clone().prop_map(Op::Disconnect),
        2 => (who.clone(), 0..2_u32, any::<bool>()).prop_map(|(who, by, is_up)| Op::Link { who, by, is_up }),
        2 => of.prop_map(Op::Learn),
        1 => who.prop_map(Op::Kill),
    ]
}

struct Interrupt {
    who: usize,
    local: LocalInterrupt,
    number: u32,
    kind: InterruptKind,
    is_removed: bool,
    place: Place,
    take: Take<Words>,
    /// What is to be taken.
    due: u32,
    /// How many members it was told of.
    known: usize,
}

struct Connection {
    who: usize,
    interrupt: usize,
    by: usize,
    remote: RemoteInterrupt,
    trigger: Trigger<InMemory>,
    is_over: bool,
}

struct Model {
    world: World,
    interrupts: Vec<Interrupt>,
    connections: Vec<Connection>,
    links: [[bool; 2]; 3],
}

impl Model {
    fn new() -> Self {
        Model {
            // Two members of one node, one of another; the third node has none.
            world: World::of(&[NODES[0], NODES[0], NODES[1]]),
            interrupts: Vec::new(),
            connections: Vec::new(),
            links: [[true; 2]; 3],
        }
    }

    fn is_alive(&self, who: usize) -> bool {
        self.world.processes[who].is_alive
    }

    /// The interrupt that a name is of.
    fn named(&self, node: NodeId, number: u32, has_data: bool) -> Option<usize> {
        self.interrupts.iter().position(|it| {
            let process = &self.world.processes[it.who];
            let is_of_kind = (it.kind == InterruptKind::Data) == has_data;
            it.number == number && is_of_kind && !it.is_removed && process.is_alive && process.node == node
        })
    }

    fn create(&mut self, who: usize, number: Option<u32>, kind: InterruptKind) {
        let node = self.world.processes[who].node;
        let has_data = kind == InterruptKind::Data;
        let is_taken = number.is_some_and(|number| self.named(node, number, has_data).is_some());
        let call = Call::CreateInterrupt { number: number.map(InterruptNumber), kind };
        let outcome = self.world.now(who, call);
        if is_taken {
            assert_eq!(outcome, Err(Refusal::IntnoUsed));
            return;
        }
        let Ok(Value::Interrupt(local, InterruptNumber(given), given_kind, place)) = outcome else {
            panic!("{outcome:?} is no interrupt")
        };
        assert!(number.is_none_or(|number| number == given) && kind == given_kind);
        assert_eq!(self.named(node, given, has_data), None, "the number is given twice");
        let take = Take::new(place, kind == InterruptKind::Counting);
        let (is_removed, due, known) = (false, 0, 0);
        self.interrupts.push(Interrupt {
            who,
            local,
            number: given,
            kind,
            is_removed,
            place,
            take,
            due,
            known,
        });
    }

    fn remove(&mut self, of: usize) {
        let it = &mut self.interrupts[of];
        let (who, call) = (it.who, Call::RemoveInterrupt(it.local));
        let was_removed = std::mem::replace(&mut it.is_removed, true);
        let expected = if was_removed { Err(Refusal::IllegalParameter) } else { Ok(Value::Nothing) };
        assert_eq!(self.world.now(who, call), expected);
    }

    fn connect(&mut self, who: usize, node: NodeId, number: u32, (has_data, by): (bool, usize)) {
        let found = self.named(node, number, has_data);
        let is_node_alive = self.world.processes.iter().any(|it| it.node == node && it.is_alive);
        let expected = match found {
            _ if !self.links[who][by] => Err(Refusal::NoLinkAccess),
            None if is_node_alive => Err(Refusal::NoSuchIntno),
            None => Err(Refusal::NodeNotResponding),
            Some(of) if !self.links[self.interrupts[of].who][by] => Err(Refusal::NoRemoteLinkAccess),
            Some(of) => Ok(of),
        };
        let (number, adapter) = (InterruptNumber(number), adapter(by as u32));
        let timeout_nanos = Some(0);
        let call = Call::ConnectInterrupt { node, number, has_data, adapter, timeout_nanos };
        match (self.world.now(who, call), expected) {
            (Ok(Value::Trigger(remote)), Ok(interrupt)) => {
                let process = &mut self.world.processes[who];
                let (_, trigger) = process.member.trigger(remote, &process.board).unwrap();
                assert_eq!(trigger.place(), self.interrupts[interrupt].place);
                self.connections.push(Connection { who, interrupt, by, remote, trigger, is_over: false });
            }
            (outcome, expected) => assert_eq!(outcome, expected.map(|_| Value::Nothing)),
        }
    }

    fn trigger(&mut self, of: usize) {
        let Connection { who, interrupt, by, ref trigger, is_over, .. } = self.connections[of];
        if is_over || !self.is_alive(who) {
            return;
        }
        let owner = self.interrupts[interrupt].who;
        let expected = if self.interrupts[interrupt].is_removed {
            Err(Refusal::NotConnected)
        } else if !self.links[who][by] {
            Err(Refusal::NoLinkAccess)
        } else if !self.links[owner][by] {
            Err(Refusal::NoRemoteLinkAccess)
        } else {
            Ok(())
        };
        assert_eq!(trigger.check(), expected);
        if expected.is_ok() {
            trigger.raise();
            let it = &mut self.interrupts[interrupt];
            it.due = if it.kind == InterruptKind::Counting { it.due + 1 } else { 1 };
        }
    }

    /// Tells each interrupt of the members that use its own, as its process does whenever one comes or goes. Nothing is looked at otherwise.
    fn introduce(&mut self) {
        for it in &mut self.interrupts {
            let before = std::mem::replace(&mut it.known, self.world.processes[it.who].users.len());
            let users = &self.world.processes[it.who].users;
            for (pair, uses) in users {
                if !it.take.has(*pair) {
                    it.take.admit(*pair, uses.clone());
                }
            }
            if users.len() < before {
                it.take.retain(|pair| users.contains_key(&pair));
            }
        }
    }

    fn take(&mut self, of: usize) {
        let it = &mut self.interrupts[of];
        if it.is_removed {
            return;
        }
        let users = &self.world.processes[it.who].users;
        if it.kind == InterruptKind::Data {
            let has_any = users.values().any(|uses| has_begun(uses, it.place));
            assert!(!has_any || it.due != 0, "nobody has said that messages come");
            return;
        }
        assert_eq!(it.take.take(), it.due != 0, "of {} triggers", it.due);
        it.due = it.due.saturating_sub(1);
    }

    fn disconnect(&mut self, of: usize) {
        let it = &mut self.connections[of];
        let (who, call) = (it.who, Call::DisconnectInterrupt(it.remote));
        if !self.world.processes[who].is_alive {
            return;
        }
        let was_over = std::mem::replace(&mut it.is_over, true);
        let expected = if was_over { Err(Refusal::IllegalParameter) } else { Ok(Value::Nothing) };
        assert_eq!(self.world.now(who, call), expected);
        assert!(self.world.processes[who].member.trigger(it.remote, &Words::board()).is_err());
    }

    fn play(&mut self, op: Op) {
        let of_interrupt = |of: usize| of.checked_rem(self.interrupts.len());
        let of_connection = |of: usize| of.checked_rem(self.connections.len());
        match op {
            Op::Create { who, number, kind } if self.is_alive(who) => self.create(who, number, KINDS[kind]),
            Op::Remove(of) => {
                if let Some(of) = of_interrupt(of).filter(|of| self.is_alive(self.interrupts[*of].who)) {
                    self.remove(of);
                }
            }
            Op::ConnectTo { who, of, by } if self.is_alive(who) => {
                let Some(of) = of_interrupt(of) else { return };
                let it = &self.interrupts[of];
                let (number, has_data) = (it.number, it.kind == InterruptKind::Data);
                self.connect(who, self.world.processes[it.who].node, number, (has_data, by as usize));
            }
            Op::Connect { who, node, number, has_data } if self.is_alive(who) => {
                self.connect(who, NODES[node], number, (has_data, 0));
            }
            Op::Trigger(of) => of_connection(of).into_iter().for_each(|of| self.trigger(of)),
            Op::Take(of) => {
                if let Some(of) = of_interrupt(of).filter(|of| self.is_alive(self.interrupts[*of].who)) {
                    self.take(of);
                }
            }
            Op::Disconnect(of) => of_connection(of).into_iter().for_each(|of| self.disconnect(of)),
            Op::Link { who, by, is_up } if self.is_alive(who) => {
                self.world.now(who, Call::SetLink(adapter(by), is_up)).unwrap();
                self.links[who][by as usize] = is_up;
            }
            Op::Learn(which) => {
                if let Some(which) = which.checked_rem(self.world.gone.len()) {
                    self.world.learn(which);
                }
            }
            Op::Kill(who) if self.is_alive(who) => self.world.kill(who),
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn triggers_reach_their_interrupt_as_often_as_its_kind_says(ops in prop::collection::vec(op(), 1..80)) {
        let mut model = Model::new();
        for op in ops {
            model.play(op);
            model.introduce();
        }
        for of in 0..model.interrupts.len() {
            while model.is_alive(model.interrupts[of].who)
                && !model.interrupts[of].is_removed
                && model.interrupts[of].kind != InterruptKind::Data
                && model.interrupts[of].due != 0
            {
                model.take(of);
            }
        }
    }
}

fn create(world: &mut World, who: usize, number: u32, kind: InterruptKind) -> (LocalInterrupt, Place) {
    let call = Call::CreateInterrupt { number: Some(InterruptNumber(number)), kind };
    match world.now(who, call) {
        Ok(Value::Interrupt(local, _, _, place)) => (local, place),
        other => panic!("{other:?} is no interrupt"),
    }
}

fn connect_call(number: u32, timeout_nanos: Option<u64>) -> Call {
    let (node, number, adapter) = (NODES[0], InterruptNumber(number), adapter(0));
    Call::ConnectInterrupt { node, number, has_data: false, adapter, timeout_nanos }
}

fn connect(world: &mut World, who: usize, number: u32) -> (RemoteInterrupt, Trigger<InMemory>) {
    let Ok(Value::Trigger(remote)) = world.now(who, connect_call(number, Some(0))) else {
        panic!("it is not connected")
    };
    let process = &mut world.processes[who];
    (remote, process.member.trigger(remote, &process.board).unwrap().1)
}

#[test]
fn connect_that_waits_is_over_when_the_interrupt_is_there_or_the_time_is() {
    let mut world = World::of(&[NODES[0], NODES[1]]);
    let Outcome::Waiting(late) = world.call(1, connect_call(5, Some(2_000_000))) else { panic!() };
    let Outcome::Waiting(in_time) = world.call(1, connect_call(5, None)) else { panic!() };
    world.now = Nanos(2_000_000);
    world.look(1);
    assert_eq!(world.outcome(1, late), Some(Err(Refusal::TimeoutNoInterrupt)));
    create(&mut world, 0, 5, InterruptKind::Plain);
    world.now = Nanos(4_000_000);
    world.look(1);
    assert!(matches!(world.outcome(1, in_time), Some(Ok(Value::Trigger(_)))));
}

#[test]
fn entry_of_an_interrupt_is_used_again_only_without_connections() {
    let mut world = World::of(&[NODES[0], NODES[1]]);
    let (local, first) = create(&mut world, 0, 5, InterruptKind::Counting);
    let (remote, trigger) = connect(&mut world, 1, 5);
    trigger.raise();
    world.now(0, Call::RemoveInterrupt(local)).unwrap();
    assert_eq!(trigger.check(), Err(Refusal::NotConnected));
    let (_, second) = create(&mut world, 0, 6, InterruptKind::Counting);
    assert_ne!(first.slot, second.slot);
    world.now(1, Call::DisconnectInterrupt(remote)).unwrap();
    world.look(0);
    let (_, third) = create(&mut world, 0, 7, InterruptKind::Counting);
    assert_eq!(first.slot, third.slot);
    assert_ne!(first.incarnation, third.incarnation);
    // The count begins anew.
    let (_, trigger) = connect(&mut world, 1, 7);
    let mut take = Take::new(third, true);
    let users: BTreeMap<_, _> = world.processes[0].users.clone();
    users.into_iter().for_each(|(pair, uses)| take.admit(pair, uses));
    assert!(!take.take());
    trigger.raise();
    assert!(take.take() && !take.take());
}

#[test]
fn interrupts_and_segments_of_one_number_are_not_taken_for_each_other() {
    let mut world = World::of(&[NODES[0], NODES[1]]);
    world.now(0, world::create(5, 64)).map(local_of).unwrap();
    assert_eq!(world.now(1, connect_call(5, Some(0))), Err(Refusal::NoSuchIntno));
    create(&mut world, 0, 5, InterruptKind::Data);
    assert_eq!(world.now(1, connect_call(5, Some(0))), Err(Refusal::NoSuchIntno));
    create(&mut world, 0, 5, InterruptKind::Plain);
    connect(&mut world, 1, 5);
}
