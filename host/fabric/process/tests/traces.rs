//! Traces of the model of segment states (`states/`, record 0051), made by processes: each call with each answer to it once.
//!
//! The model is prompt here: who is rung looks before anything else happens, which a process is told to do. Deaths, calls that wait and callbacks
//! are not in these scopes: when they are told is a matter of time, and `host/fabric/tests/states.rs` makes every such call in a world
//! whose time is the test's.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::cell::{RefCell, RefMut};

use beeline_domain::{Kind, Registry};
use beeline_fabric_states::{
    ANY, Answer, Call, Connection, Event, Graph, Of, Refused, Scope, Sequence, State, Step, Subject,
};
use support::{Fabric, Process};

const NODES: [u16; 3] = [4, 8, 12];
const ID: u32 = 7;

#[test]
fn role() {
    support::play();
}

/// Processes, that are members anew for each trace.
struct Processes {
    all: Vec<Process>,
    registries: Vec<Registry>,
}

impl Processes {
    fn new(fabric: &Fabric, scope: &Scope) -> Self {
        let nodes: Vec<u16> = scope.nodes.iter().map(|node| NODES[usize::from(*node)]).collect();
        let all = nodes.iter().map(|node| fabric.member(*node)).collect();
        let registry = |node| fabric.domain().registry(&format!("fabric.{node}")).unwrap();
        Processes { all, registries: nodes.iter().map(registry).collect() }
    }
}

/// What the members of one trace have.
struct Members<'a> {
    processes: RefMut<'a, Processes>,
    /// The entries of the segments that each has made.
    entries: Vec<Vec<u16>>,
    /// Connections that were made so far: each has a name of its own.
    connects: usize,
    names: Vec<Vec<String>>,
}

impl<'a> Members<'a> {
    fn new(mut processes: RefMut<'a, Processes>, scope: &Scope) -> Self {
        processes.all.iter_mut().for_each(|process| process.begin("again"));
        processes.all.iter_mut().for_each(|process| assert_eq!(process.hear(), "ok"));
        let count = scope.nodes.len();
        let names = vec![vec![String::new(); scope.connections]; count];
        Members { processes, entries: vec![Vec::new(); count], connects: 0, names }
    }

    fn say(&mut self, who: usize, line: &str) -> String {
        self.processes.all[who].call(line)
    }

    fn by(&mut self, who: usize, by: u8, line: &str) -> String {
        let named = if by == ANY { "any".to_owned() } else { by.to_string() };
        self.processes.all[who].expect(&format!("adapter {named}"), "ok");
        self.say(who, line)
    }

    /// Which of the entries that a member has used so far has the segment that it has made now.
    fn entry(&mut self, who: usize) -> Answer {
        let found = self.processes.registries[who].find(Kind::new(1).unwrap(), ID).unwrap();
        let [found] = found[..] else { panic!("{found:?} are not one segment") };
        let slot = found.entry.slot;
        let entries = &mut self.entries[who];
        if !entries.contains(&slot) {
            entries.push(slot);
        }
        Answer::Created { entry: entries.iter().position(|it| *it == slot).unwrap() as u8 }
    }

    fn line(&mut self, who: usize, call: Call) -> String {
        let forced = |is_forced| if is_forced { "-force" } else { "" };
        match call {
            Call::Create { is_empty: false } => self.say(who, &format!("create s {ID} 64")),
            Call::Prepare(by) => self.by(who, by, "prepare s"),
            Call::SetAvailable(by) => self.by(who, by, "available s"),
            Call::SetUnavailable { by, is_forced } => {
                self.by(who, by, &format!("unavailable{} s", forced(is_forced)))
            }
            Call::Notify => self.say(who, "notify s"),
            Call::Remove { is_forced } => self.say(who, &format!("remove{} s", forced(is_forced))),
            Call::WaitLocal { is_blocking: false } => self.say(who, "wait-local s 0"),
            Call::Connect { at, node, by } => {
                self.connects += 1;
                self.names[who][at] = format!("r{}", self.connects);
                let line = format!("connect r{} {} {ID} 0", self.connects, NODES[usize::from(node)]);
                self.by(who, by, &line)
            }
            Call::Disconnect(at) => self.of(who, "disconnect", at),
            Call::StartSequence(at) => self.of(who, "start", at),
            Call::CheckSequence(at) => self.of(who, "check", at),
            Call::WaitRemote { at, is_blocking: false } => {
                let line = format!("wait-remote {} 0", self.names[who][at]);
                self.say(who, &line)
            }
            Call::SetLink { by, is_up } => self.by(who, by, if is_up { "link up" } else { "link down" }),
            Call::Look => self.say(who, "look"),
            other => unreachable!("{other:?} is in none of the scopes"),
        }
    }

    fn of(&mut self, who: usize, what: &str, at: usize) -> String {
        let line = format!("{what} {}", self.names[who][at]);
        self.say(who, &line)
    }

    /// The number in the words of an event.
    fn number(said: &str) -> u16 {
        said.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
    }
}

impl Subject for Members<'_> {
    fn perform(&mut self, who: usize, call: Call) -> Result<Answer, String> {
        let said = self.line(who, call);
        let node = |said: &str| NODES.iter().position(|node| *node == Self::number(said)).unwrap() as u8;
        let word = said.split(['(', ' ']).next().unwrap();
        Ok(match (word, call) {
            ("ok", Call::Create { .. }) => self.entry(who),
            ("ok", _) => Answer::Done,
            ("Timeout", _) => Answer::NoEvent,
            ("Ok", _) => Answer::Sequence(Sequence::Ok),
            ("Retriable", _) => Answer::Sequence(Sequence::Retriable),
            ("NotRetriable", _) => Answer::Sequence(Sequence::NotRetriable),
            ("Pending", _) => Answer::Sequence(Sequence::Pending),
            ("Connect", Call::WaitRemote { .. }) => Answer::Event(Event::Connected),
            ("NotOperational", Call::WaitRemote { .. }) => Answer::Event(Event::IsNotOperational),
            ("Operational", Call::WaitRemote { .. }) => Answer::Event(Event::IsOperational),
            ("Lost", Call::WaitRemote { .. }) => Answer::Event(Event::IsLost),
            ("Disconnect", Call::WaitRemote { .. }) => Answer::Event(Event::IsAsked),
            ("Connect", _) => Answer::Event(Event::Connect(node(&said))),
            ("Disconnect", _) => Answer::Event(Event::Disconnect(node(&said))),
            ("NotOperational", _) => Answer::Event(Event::NotOperational(Self::number(&said) as u8)),
            ("Operational", _) => Answer::Event(Event::Operational(Self::number(&said) as u8)),
            (refusal, _) => Answer::Refused(refused(refusal)?),
        })
    }

    /// Nothing waits, and nothing has a callback.
    fn told(&mut self, _: usize) -> Option<(Of, Event)> {
        None
    }
}

fn refused(refusal: &str) -> Result<Refused, String> {
    Ok(match refusal {
        "Busy" => Refused::Busy,
        "ConnectionRefused" => Refused::ConnectionRefused,
        "IllegalOperation" => Refused::IllegalOperation,
        "NoLinkAccess" => Refused::NoLinkAccess,
        "NoRemoteLinkAccess" => Refused::NoRemoteLinkAccess,
        "NoSuchSegment" => Refused::NoSuchSegment,
        "NodeNotResponding" => Refused::NodeNotResponding,
        "SegmentNotConnected" => Refused::SegmentNotConnected,
        "SegmentNotPrepared" => Refused::SegmentNotPrepared,
        "SegmentidUsed" => Refused::SegmentidUsed,
        other => return Err(format!("it says {other}")),
    })
}

/// Calls are told apart by who makes them, what they are and what comes of them, and by what there is where they are made: segments, connections and
/// links that are down.
fn kind(state: &State, step: &Step) -> String {
    let has = state.members.iter().map(|member| {
        let made = |connection: &Connection| matches!(connection, Connection::Made(_));
        (member.segment.is_some(), member.connections.iter().map(made).collect::<Vec<_>>(), member.down)
    });
    format!("{step:?} {:?}", has.collect::<Vec<_>>())
}

fn check(name: &str, scope: Scope) {
    let scope = Scope {
        is_prompt: true,
        deaths: 0,
        has_empty: false,
        has_seekers: false,
        has_waits: false,
        has_callbacks: false,
        ..scope
    };
    let fabric = Fabric::new();
    let processes = RefCell::new(Processes::new(&fabric, &scope));
    let graph = Graph::of(&scope);
    let seen = graph
        .sample(kind, || Members::new(processes.borrow_mut(), &scope))
        .unwrap_or_else(|why| panic!("{name}: {why}"));
    println!("{name}: {seen:?}");
    assert!(seen.traces > 20, "{name}: {seen:?}");
}

#[test]
fn processes_answer_as_the_model_does_where_segments_come_and_go_under_their_users() {
    check("lives", Scope::lives());
}

#[test]
fn processes_answer_as_the_model_does_where_links_go_down_and_come_up() {
    check("links", Scope::links());
}

#[test]
fn processes_answer_as_the_model_does_where_a_node_has_two_adapters() {
    check("adapters", Scope::adapters());
}

#[test]
fn processes_answer_as_the_model_does_where_a_connection_goes_by_any_adapter() {
    check("any", Scope::any());
}

#[test]
fn processes_answer_as_the_model_does_where_users_are_asked_to_disconnect() {
    check("notices", Scope::notices());
}

#[test]
fn processes_answer_as_the_model_does_where_two_members_use_a_third_one() {
    check("two users", Scope { lives: 1, ..Scope::deaths() });
}

#[test]
fn processes_answer_as_the_model_does_where_two_of_a_node_want_one_number() {
    check("names", Scope::names());
}
