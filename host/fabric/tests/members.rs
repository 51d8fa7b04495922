//! Random calls by three members, against a model that knows everything: whatever the order in which rings and news of deaths arrive,
//! and whoever dies when, every call answers what is true at that moment, and once everything has arrived everybody has been told it.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod world;

use std::collections::BTreeMap;

use beeline_fabric::*;
use proptest::prelude::*;
use world::told::{after, counted, link_after};
use world::*;

const BYTES: u64 = 100;

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Makes a segment and lets others connect to it.
    Open {
        who: usize,
        id: u32,
        kind: usize,
        by: u32,
    },
    /// Takes a segment from its users, of whom one connects to it again.
    Reopen {
        of: usize,
        by: u32,
    },
    /// Connects to a segment that there is, or was.
    ConnectTo {
        who: usize,
        of: usize,
        by: u32,
        has_callback: bool,
    },
    Create {
        who: usize,
        id: u32,
        kind: usize,
    },
    Register {
        of: usize,
        is_shareable: bool,
    },
    Prepare {
        of: usize,
        by: u32,
    },
    Available {
        of: usize,
        by: u32,
    },
    Unavailable {
        of: usize,
        by: u32,
        is_forced: bool,
    },
    Remove {
        of: usize,
        is_forced: bool,
    },
    Map {
        of: usize,
        part: Part,
    },
    Unmap {
        of: usize,
    },
    Connect {
        who: usize,
        node: usize,
        id: u32,
        by: u32,
        has_callback: bool,
    },
    MapRemote {
        of: usize,
        part: Part,
    },
    UnmapRemote {
        of: usize,
    },
    Start {
        of: usize,
    },
    Check {
        of: usize,
    },
    Disconnect {
        of: usize,
    },
    Link {
        who: usize,
        by: u32,
        is_up: bool,
    },
    Ring(usize),
    Learn(usize),
    Look(usize),
    Kill(usize),
}

/// Calls that build something up come more often than those that end it.
fn op() -> impl Strategy<Value = Op> {
    let (who, of, id, by) = (0..3_usize, any::<u16>().prop_map(usize::from), 1..4_u32, 0..2_u32);
    let (node, part) = (0..3_usize, (0..BYTES, 1..BYTES).prop_map(|(offset, bytes)| Part { offset, bytes }));
    let create =
        (who.clone(), id.clone(), 0..8_usize).prop_map(|(who, id, kind)| Op::Create { who, id, kind });
    let connect = (who.clone(), node, id.clone(), by.clone(), any::<bool>())
        .prop_map(|(who, node, id, by, has_callback)| Op::Connect { who, node, id, by, has_callback });
    let open = (who.clone(), id.clone(), 2..8_usize, by.clone()).prop_map(|(who, id, kind, by)| Op::Open {
        who,
        id,
        kind,
        by,
    });
    let connect_to = (who.clone(), of.clone(), by.clone(), any::<bool>())
        .prop_map(|(who, of, by, has_callback)| Op::ConnectTo { who, of, by, has_callback });
    let of_local = prop_oneof![
        1 => (of.clone(), any::<bool>()).prop_map(|(of, is_shareable)| Op::Register { of, is_shareable }),
        5 => (of.clone(), by.clone()).prop_map(|(of, by)| Op::Prepare { of, by }),
        6 => (of.clone(), by.clone()).prop_map(|(of, by)| Op::Available { of, by }),
        1 => (of.clone(), by.clone(), any::<bool>()).prop_map(|(of, by, is_forced)| Op::Unavailable { of, by, is_forced }),
        3 => (of.clone(), by.clone()).prop_map(|(of, by)| Op::Reopen { of, by }),
        3 => (of.clone(), any::<bool>()).prop_map(|(of, is_forced)| Op::Remove { of, is_forced }),
        1 => (of.clone(), part.clone()).prop_map(|(of, part)| Op::Map { of, part }),
        1 => of.clone().prop_map(|of| Op::Unmap { of }),
    ];
    let of_remote = prop_oneof![
        1 => (of.clone(), part).prop_map(|(of, part)| Op::MapRemote { of, part }),
        1 => of.clone().prop_map(|of| Op::UnmapRemote { of }),
        2 => of.clone().prop_map(|of| Op::Start { of }),
        3 => of.clone().prop_map(|of| Op::Check { of }),
        3 => of.clone().prop_map(|of| Op::Disconnect { of }),
    ];
    let around = prop_oneof![
        10 => (who.clone(), by, any::<bool>()).prop_map(|(who, by, is_up)| Op::Link { who, by, is_up }),
        10 => of.clone().prop_map(Op::Ring),
        10 => of.prop_map(Op::Learn),
        5 => who.clone().prop_map(Op::Look),
        1 => who.prop_map(Op::Kill),
    ];
    prop_oneof![3 => create, 6 => open, 12 => of_local, 3 => connect, 10 => connect_to, 8 => of_remote, 6 => around]
}

#[derive(Debug)]
struct Segment {
    who: usize,
    local: LocalSegment,
    id: u32,
    is_private: bool,
    /// Its entry on the board.
    slot: Option<Slot>,
    has_callback: bool,
    bytes: Option<u64>,
    is_shareable: bool,
    /// Whether each link was up when the segment was prepared for it.
    prepared: [Option<bool>; 2],
    available: [bool; 2],
    maps: u32,
    is_removed: bool,
    /// How often its users were forced off it.
    forced: u32,
}

#[derive(Debug)]
struct Connection {
    who: usize,
    remote: RemoteSegment,
    segment: usize,
    by: usize,
    forced: u32,
    has_callback: bool,
    maps: u32,
    is_over: bool,
    is_lost: bool,
    /// What a sequence began with.
    start: Option<(SequenceStart, [u32; 2], ConnectionView<Words>)>,
}

struct Model {
    world: World,
    segments: Vec<Segment>,
    connections: Vec<Connection>,
    /// How often each link has changed; up while that is even.
    links: [[u32; 2]; 3],
    /// Who knows of whose death.
    knows: [[bool; 3]; 3],
}

type Code = Result<(), Refusal>;

fn code(outcome: Result<Value, Refusal>) -> Code {
    outcome.map(|_| ())
}

fn check(is_right: bool, refusal: Refusal) -> Code {
    if is_right { Ok(()) } else { Err(refusal) }
}

impl Model {
    fn new() -> Self {
        Model {
            // Two members of one node, one of another; the third node has none.
            world: World::of(&[NODES[0], NODES[0], NODES[1]]),
            segments: Vec::new(),
            connections: Vec::new(),
            links: [[0; 2]; 3],
            knows: [[false; 3]; 3],
        }
    }

    fn is_alive(&self, who: usize) -> bool {
        self.world.processes[who].is_alive
    }

    fn is_up(&self, who: usize, by: usize) -> bool {
        self.links[who][by].is_multiple_of(2)
    }

    /// Notes which connections are lost by now: they stay so.
    fn settle(&mut self) {
        for it in &mut self.connections {
            let segment = &self.segments[it.segment];
            it.is_lost |=
                segment.is_removed || segment.forced != it.forced || self.knows[it.who][segment.who];
        }
    }

    /// Connections that keep a segment, as far as its member can know.
    fn users(&self, segment: usize) -> impl Iterator<Item = &Connection> {
        let Segment { who: owner, forced, .. } = self.segments[segment];
        self.connections.iter().filter(move |it| {
            it.segment == segment && it.forced == forced && !it.is_over && !self.knows[owner][it.who]
        })
    }

    /// An entry is not another segment's while anybody has a connection to one that it was, and be that lost: it may be mapped.
    fn check_that_nobody_uses(&self, owner: usize, slot: Option<Slot>) {
        let user = self.connections.iter().find(|it| {
            let segment = &self.segments[it.segment];
            segment.who == owner && segment.slot == slot && !it.is_over && !self.knows[owner][it.who]
        });
        assert!(slot.is_none() || user.is_none(), "{slot:?} of {owner} is used again under {user:?}");
    }

    fn create(&mut self, who: usize, id: u32, kind: usize) -> (Result<Value, Refusal>, Code) {
        let (is_private, is_empty, has_callback) = (kind == 0, kind == 1, kind.is_multiple_of(2));
        let call = Call::CreateSegment {
            id: SegmentId(id),
            is_auto: false,
            bytes: BYTES,
            is_private,
            is_empty,
            has_callback,
        };
        let node = self.world.processes[who].node;
        let is_taken = self.segments.iter().any(|it| {
            let process = &self.world.processes[it.who];
            it.id == id && !it.is_private && !it.is_removed && process.is_alive && process.node == node
        });
        let outcome = self.world.now(who, call);
        if let Ok(Value::Local(local, _)) = outcome {
            let slot = if is_private { None } else { self.world.slot_of(who, id) };
            self.check_that_nobody_uses(who, slot);
            self.segments.push(Segment {
                who,
                local,
                id,
                is_private,
                slot,
                has_callback,
                bytes: (!is_empty).then_some(BYTES),
                is_shareable: !is_private,
                prepared: [None; 2],
                available: [false; 2],
                maps: 0,
                is_removed: false,
                forced: 0,
            });
        }
        (outcome, check(is_private || !is_taken, Refusal::SegmentidUsed))
    }

    /// What the table of local segments says.
    fn expected_of_local(&mut self, op: Op, of: usize) -> Code {
        let is_used = self.users(of).next().is_some();
        let it = &mut self.segments[of];
        check(!it.is_removed, Refusal::IllegalParameter)?;
        match op {
            Op::Register { is_shareable, .. } => {
                check(it.bytes.is_none(), Refusal::IllegalOperation)?;
                (it.bytes, it.is_shareable) = (Some(BYTES), is_shareable);
            }
            Op::Prepare { by, .. } => {
                check(it.bytes.is_some(), Refusal::IllegalOperation)?;
                let link = self.links[it.who][by as usize];
                it.prepared[by as usize].get_or_insert(link.is_multiple_of(2));
            }
            Op::Available { by, .. } => {
                check(it.bytes.is_some(), Refusal::IllegalOperation)?;
                check(it.prepared[by as usize].is_some(), Refusal::SegmentNotPrepared)?;
                check(it.is_shareable, Refusal::IllegalOperation)?;
                it.available[by as usize] = true;
            }
            Op::Unavailable { by, is_forced, .. } => {
                check(it.bytes.is_some(), Refusal::IllegalOperation)?;
                check(it.prepared[by as usize].is_some(), Refusal::SegmentNotPrepared)?;
                check(is_forced || it.available[by as usize], Refusal::IllegalOperation)?;
                it.available[by as usize] = false;
                it.forced += u32::from(is_forced);
            }
            Op::Map { part, .. } => {
                check(it.bytes.is_some(), Refusal::IllegalOperation)?;
                check(part.offset + part.bytes <= BYTES, Refusal::OutOfRange)?;
                it.maps += 1;
            }
            Op::Unmap { .. } => {
                check(it.maps != 0, Refusal::IllegalParameter)?;
                it.maps -= 1;
            }
            Op::Remove { is_forced, .. } => {
                check(it.maps == 0 && (is_forced || !is_used), Refusal::Busy)?;
                it.is_removed = true;
            }
            _ => unreachable!("no call on a segment"),
        }
        Ok(())
    }

    fn on_local(&mut self, op: Op, of: usize) {
        if self.segments.is_empty() {
            return;
        }
        let of = of % self.segments.len();
        let Segment { who, local, .. } = self.segments[of];
        if !self.is_alive(who) {
            return;
        }
        let call = match op {
            Op::Register { is_shareable, .. } => Call::Register { local, bytes: BYTES, is_shareable },
            Op::Prepare { by, .. } => Call::Prepare(local, adapter(by)),
            Op::Available { by, .. } => Call::SetAvailable(local, adapter(by)),
            Op::Unavailable { by, is_forced, .. } => {
                Call::SetUnavailable { local, adapter: adapter(by), is_forced }
            }
            Op::Map { part, .. } => Call::MapLocal(local, part),
            Op::Unmap { .. } => Call::UnmapLocal(local),
            _ => {
                let Op::Remove { is_forced, .. } = op else { unreachable!("no call on a segment") };
                Call::RemoveSegment { local, is_forced }
            }
        };
        let answered = code(self.world.now(who, call));
        assert_eq!(answered, self.expected_of_local(op, of), "{call:?} by {who}");
    }

    fn connect(&mut self, who: usize, node: usize, id: u32, by: u32, has_callback: bool) {
        let by = by as usize;
        let (own_is_up, processes) = (self.is_up(who, by), &self.world.processes);
        let living = |it: &Segment| processes[it.who].is_alive && processes[it.who].node == NODES[node];
        let found =
            self.segments.iter().position(|it| it.id == id && !it.is_private && !it.is_removed && living(it));
        let is_node_alive = processes.iter().any(|it| it.node == NODES[node] && it.is_alive);
        let expected = (|| {
            check(own_is_up, Refusal::NoLinkAccess)?;
            check(is_node_alive, Refusal::NodeNotResponding)?;
            let found = found.ok_or(Refusal::NoSuchSegment)?;
            check(self.segments[found].available[by], Refusal::ConnectionRefused)?;
            check(self.is_up(self.segments[found].who, by), Refusal::NoRemoteLinkAccess)?;
            Ok(found)
        })();
        let call = Call::Connect {
            node: NODES[node],
            id: SegmentId(id),
            adapter: adapter(by as u32),
            timeout_nanos: Some(0),
            is_asynchronous: false,
            has_callback,
        };
        match (self.world.now(who, call), expected) {
            (Ok(Value::Remote(remote, BYTES)), Ok(segment)) => {
                let forced = self.segments[segment].forced;
                let (maps, is_over, is_lost, start) = (0, false, false, None);
                self.connections.push(Connection {
                    who,
                    remote,
                    segment,
                    by,
                    forced,
                    has_callback,
                    maps,
                    is_over,
                    is_lost,
                    start,
                });
            }
            (answered, expected) => assert_eq!(code(answered), expected.map(|_| ()), "{call:?} by {who}"),
        }
    }

    fn on_remote(&mut self, op: Op, of: usize) {
        if self.connections.is_empty() {
            return;
        }
        let of = of % self.connections.len();
        let Connection { who, remote, segment, by, .. } = self.connections[of];
        if !self.is_alive(who) {
            return;
        }
        let owner = self.segments[segment].who;
        let links = [self.links[who][by], self.links[owner][by]];
        let is_up = self.is_up(who, by) && self.is_up(owner, by);
        let world = &mut self.world;
        let it = &mut self.connections[of];
        let standing = |it: &Connection| match it {
            Connection { is_lost: true, .. } => SequenceStatus::NotRetriable,
            _ if is_up => SequenceStatus::Ok,
            _ => SequenceStatus::Pending,
        };
        let (answered, expected) = match op {
            Op::MapRemote { part, .. } => {
                let expected = check(!it.is_over, Refusal::IllegalParameter)
                    .and_then(|()| check(!it.is_lost, Refusal::NotConnected))
                    .and_then(|()| check(part.offset + part.bytes <= BYTES, Refusal::OutOfRange));
                it.maps += u32::from(expected.is_ok());
                (code(world.now(who, Call::MapRemote(remote, part))), expected)
            }
            Op::UnmapRemote { .. } => {
                let expected = check(!it.is_over && it.maps != 0, Refusal::IllegalParameter);
                it.maps -= u32::from(expected.is_ok());
                (code(world.now(who, Call::UnmapRemote(remote))), expected)
            }
            Op::Start { .. } => {
                let answered = world.now(who, Call::StartSequence(remote));
                if let Ok(Value::Started(status, start)) = answered {
                    assert_eq!(status, standing(it), "a sequence of {it:?} begins");
                    let own = world.processes[who].board.clone();
                    let found = world.processes[who].member.view(remote, &own).unwrap();
                    assert_eq!(found.is_none(), it.is_lost, "{it:?} has words that are looked at");
                    it.start = start.zip(found).map(|(start, (_, view))| (start, links, view));
                }
                (code(answered), check(!it.is_over, Refusal::IllegalParameter))
            }
            Op::Check { .. } => {
                let Some((start, began, view)) = it.start.clone() else { return };
                let answered = world.now(who, Call::CheckSequence(remote, start));
                if let Ok(Value::Checked(status)) = answered {
                    let found =
                        if is_up && began != links { SequenceStatus::Retriable } else { SequenceStatus::Ok };
                    let expected = if standing(it) == SequenceStatus::Ok { found } else { standing(it) };
                    assert_eq!(status, expected, "a sequence of {it:?} is checked");
                    // Words do not tell of a death.
                    if world.processes[owner].is_alive {
                        assert_eq!(
                            view.check(start),
                            expected,
                            "by its words, a sequence of {it:?} is checked"
                        );
                    }
                }
                (code(answered), check(!it.is_over, Refusal::IllegalParameter))
            }
            _ => {
                let expected = check(!it.is_over, Refusal::IllegalParameter)
                    .and_then(|()| check(it.maps == 0, Refusal::Busy));
                it.is_over |= expected.is_ok();
                (code(world.now(who, Call::Disconnect(remote))), expected)
            }
        };
        assert_eq!(answered, expected, "{op:?} of {it:?}");
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Create { who, id, kind } if self.is_alive(who) => {
                let (answered, expected) = self.create(who, id, kind);
                assert_eq!(code(answered), expected, "{op:?}");
            }
            Op::Connect { who, node, id, by, has_callback } if self.is_alive(who) => {
                self.connect(who, node, id, by, has_callback);
            }
            Op::Open { who, id, kind, by } if self.is_alive(who) => {
                self.step(Op::Create { who, id, kind });
                let of = self.segments.len().saturating_sub(1);
                self.step(Op::Prepare { of, by });
                self.step(Op::Available { of, by });
            }
            Op::ConnectTo { who, of, by, has_callback }
                if !self.segments.is_empty() && self.is_alive(who) =>
            {
                let Segment { who: owner, id, .. } = self.segments[of % self.segments.len()];
                let node = self.world.processes[owner].node;
                let node = NODES.iter().position(|it| *it == node).unwrap();
                self.step(Op::Connect { who, node, id, by, has_callback });
            }
            Op::Reopen { of, by } if !self.connections.is_empty() => {
                let Connection { who, segment: of, .. } = self.connections[of % self.connections.len()];
                self.step(Op::Unavailable { of, by, is_forced: true });
                self.step(Op::Available { of, by });
                self.step(Op::ConnectTo { who, of, by, has_callback: false });
            }
            Op::Link { who, by, is_up } if self.is_alive(who) => {
                self.links[who][by as usize] += u32::from(self.is_up(who, by as usize) != is_up);
                self.world.now(who, Call::SetLink(adapter(by), is_up)).unwrap();
            }
            Op::Register { of, .. } | Op::Prepare { of, .. } | Op::Available { of, .. } => {
                self.on_local(op, of)
            }
            Op::Unavailable { of, .. } | Op::Remove { of, .. } => self.on_local(op, of),
            Op::Map { of, .. } | Op::Unmap { of } => self.on_local(op, of),
            Op::MapRemote { of, .. } | Op::UnmapRemote { of } | Op::Start { of } => self.on_remote(op, of),
            Op::Check { of } | Op::Disconnect { of } => self.on_remote(op, of),
            Op::Ring(index) if !self.world.rings.is_empty() => {
                self.world.ring(index % self.world.rings.len())
            }
            Op::Learn(index) if !self.world.gone.is_empty() => self.learn(index % self.world.gone.len()),
            Op::Look(who) if self.is_alive(who) => self.world.look(who),
            Op::Kill(who) if self.is_alive(who) => self.world.kill(who),
            _ => {}
        }
        self.settle();
    }

    fn learn(&mut self, index: usize) {
        // Both directions at once: who has a pidfd has it for the process.
        let (who, _, of) = self.world.gone[index];
        while let Some(next) = self.world.gone.iter().position(|(to, _, about)| (*to, *about) == (who, of)) {
            self.world.learn(next);
        }
        self.knows[who][of] = true;
    }

    /// Lets everything arrive, and nobody look who has no reason to.
    fn arrive(&mut self) {
        while !self.world.gone.is_empty() {
            self.learn(0);
        }
        while !self.world.rings.is_empty() {
            self.world.ring(0);
        }
        self.settle();
    }

    fn check_what_was_told(&self) {
        for (who, process) in self.world.processes.iter().enumerate().filter(|(_, it)| it.is_alive) {
            for it in self.connections.iter().filter(|it| it.who == who && it.has_callback && !it.is_over) {
                let told = process.told.iter().filter_map(|told| match told {
                    Told::OfRemote(remote, event) if *remote == it.remote => Some(*event),
                    _ => None,
                });
                let owner = self.segments[it.segment].who;
                let is_up = self.is_up(who, it.by) && self.is_up(owner, it.by);
                let expected = if it.is_lost {
                    "lost"
                } else if is_up {
                    "up"
                } else {
                    "down"
                };
                assert_eq!(told.fold("up", after), expected, "{it:?}");
            }
            for (of, it) in self.segments.iter().enumerate() {
                if it.who == who && it.has_callback && !it.is_removed {
                    assert_eq!(counted(&process.told, it.local), self.users_by_node(of), "{it:?}");
                    for (by, was_up) in it.prepared.into_iter().enumerate() {
                        let told =
                            was_up.map(|was_up| link_after(&process.told, it.local, by as u32, was_up));
                        assert_eq!(told, was_up.map(|_| self.is_up(who, by)), "{it:?} by {by}");
                    }
                }
            }
        }
    }

    fn users_by_node(&self, segment: usize) -> BTreeMap<NodeId, u32> {
        let mut count = BTreeMap::new();
        for user in self.users(segment) {
            *count.entry(self.world.processes[user.who].node).or_default() += 1;
        }
        count
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_answer_what_is_true_and_everybody_is_told_it(ops in prop::collection::vec(op(), 1..160)) {
        let mut model = Model::new();
        for op in ops {
            model.step(op);
        }
        model.arrive();
        model.check_what_was_told();
    }
}
