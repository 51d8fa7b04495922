//! What somebody sees and does who is no member.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::time::Duration;

use beeline_domain::{Answer, ConnectError, Life, Peer, Refusal as Refused, Reply, Resident, Service};
use beeline_fabric::{AdapterNumber, Holding, NodeId, SegmentId, SegmentStage};
use beeline_fabric_process::{AnswerError, AskError, Report, Survey, SurveyError};
use rustix::process::Signal;
use support::{Fabric, Process};

const NODE: NodeId = NodeId(4);
/// Far more than an answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn role() {
    support::play();
}

fn survey(fabric: &Fabric) -> Survey {
    Survey::open(&fabric.config(4).domain).unwrap()
}

fn adapter(number: u32) -> AdapterNumber {
    AdapterNumber::new(number).unwrap()
}

fn only_member(survey: &Survey, node: NodeId) -> NonZeroU64 {
    let members = survey.members(node).unwrap();
    assert_eq!(members.len(), 1, "{members:?}");
    members[0].number
}

fn report(survey: &Survey, node: NodeId) -> Report {
    survey.report(node, only_member(survey, node), PATIENCE).unwrap()
}

/// Segment 7 of node 4, available, in a process of its own.
fn owner(fabric: &Fabric) -> Process {
    let mut owner = fabric.member(4);
    owner.expect("create s 7 5000", "ok 7");
    owner.expect("prepare s", "ok");
    owner.expect("available s", "ok");
    owner
}

#[test]
fn report_says_what_a_member_has_and_by_whom_it_is_used() {
    let (fabric, survey_of) = (Fabric::new(), survey);
    let survey = survey_of(&fabric);
    assert_eq!(survey.nodes().unwrap(), []);
    let nobody = survey.members(NODE).unwrap_err();
    assert!(matches!(nobody, SurveyError::NoSuchNode { node: NODE, .. }), "{nobody}");
    assert_eq!(survey.nodes().unwrap(), [], "to look makes nothing");
    let (mut owner, mut user) = (owner(&fabric), fabric.member(8));
    owner.expect("create t 9 100", "ok 9");
    owner.expect("create-private p 64", "ok 7");
    owner.expect("map-local p 0 64", "ok 64");
    user.expect("connect a 4 7 forever", "ok 5000");
    user.expect("connect b 4 7 forever", "ok 5000");
    owner.expect("link down", "ok");
    assert_eq!(survey.nodes().unwrap(), [NODE, NodeId(8)]);

    let Report { pid, member, segments } = report(&survey, NODE);
    assert_eq!((pid, member.node), (owner.pid(), NODE));
    let links: Vec<_> = member.links.iter().map(|it| (it.adapter.number(), it.is_up, it.epoch)).collect();
    assert_eq!(links, [(0, false, 2), (1, true, 1)]);
    assert_eq!((member.consumers, member.connections, member.segments), (1, 0, 3));
    use SegmentStage::{Available, NotPrepared};
    let said: Vec<_> = segments
        .iter()
        .map(|it| (it.id.0, it.bytes, it.stage, it.holding, it.available, it.connections, it.maps))
        .collect();
    assert_eq!(
        said,
        [
            (7, 5000, Available, Holding::Alone, 1, 2, 0),
            (9, 100, NotPrepared, Holding::Alone, 0, 0, 0),
            (7, 64, NotPrepared, Holding::Private, 0, 0, 1),
        ]
    );
    let user_says = report(&survey, NodeId(8)).member;
    assert_eq!((user_says.consumers, user_says.connections, user_says.segments), (0, 2, 0));
    user.expect("disconnect a", "ok");
    assert_eq!(report(&survey, NODE).segments[0].connections, 1);
}

#[test]
fn holders_of_a_group_say_the_same_memory_and_are_asked_to_leave_it() {
    let fabric = Fabric::new();
    let survey = survey(&fabric);
    assert!(matches!(survey.members(NodeId::GROUPS), Err(SurveyError::NoSuchNode { .. })));
    let (mut first, mut second) = (fabric.member(4), fabric.member(8));
    first.expect("join g 7 4096", "first 4096");
    second.expect("join g 7 4096", "ok 4096");
    // A segment of the same number is not the group's.
    second.expect("create s 7 100", "ok 7");
    second.expect("share s", "ok");
    let of_first = report(&survey, NODE).segments;
    let of_second = report(&survey, NodeId(8)).segments;
    let holdings: Vec<_> = of_second.iter().map(|it| (it.id.0, it.holding)).collect();
    assert_eq!(holdings, [(7, Holding::Group), (7, Holding::Shared)]);
    assert_eq!((of_first[0].holding, of_first[0].memory), (Holding::Group, of_second[0].memory));
    assert!(of_first[0].memory != 0 && ![0, of_first[0].memory].contains(&of_second[1].memory));

    let id = SegmentId(7);
    let holders = survey.owners(NodeId::GROUPS, id).unwrap();
    assert_eq!(holders.len(), 2, "{holders:?}");
    assert_eq!(survey.nodes().unwrap(), [NODE, NodeId(8)], "groups are no node");
    let number = only_member(&survey, NODE);
    survey.remove(NodeId::GROUPS, number, (id, false), PATIENCE).unwrap();
    first.expect("prepare g", "IllegalParameter");
    second.expect("prepare g", "ok");
    assert_eq!(report(&survey, NodeId(8)).segments.len(), 2);
    second.kill();
    let members = survey.members(NodeId::GROUPS).unwrap();
    assert_eq!(members.iter().map(|it| (it.life, it.entries)).filter(|it| it.0 == Life::Dead).count(), 1);
    assert_eq!(survey.sweep(NodeId::GROUPS).unwrap(), 1);
    assert_eq!(survey.owners(NodeId::GROUPS, id).unwrap(), []);
}

#[test]
fn segments_that_no_answer_has_room_for_are_all_reported() {
    let fabric = Fabric::new();
    let mut owner = fabric.member(4);
    for id in 0..2100 {
        owner.expect(&format!("create s{id} {id} 64"), &format!("ok {id}"));
    }
    let ids: Vec<_> = report(&survey(&fabric), NODE).segments.iter().map(|segment| segment.id.0).collect();
    assert_eq!(ids, (0..2100).collect::<Vec<_>>());
}

#[test]
fn link_that_is_taken_down_from_outside_is_down_for_those_who_use_the_member() {
    let fabric = Fabric::new();
    let (_owner, mut user, survey) = (owner(&fabric), fabric.member(8), survey(&fabric));
    user.expect("connect s 4 7 forever", "ok 5000");
    let number = only_member(&survey, NODE);
    survey.set_link(NODE, number, (adapter(0), false), PATIENCE).unwrap();
    user.expect("wait-remote s forever", "NotOperational");
    survey.set_link(NODE, number, (adapter(0), true), PATIENCE).unwrap();
    user.expect("wait-remote s forever", "Operational");
    let none = survey.set_link(NODE, number, (adapter(2), false), PATIENCE).unwrap_err();
    assert!(none.to_string().contains("no such adapter"), "{none}");
}

#[test]
fn segment_that_is_removed_from_outside_is_gone_and_only_by_force_while_it_is_used() {
    let fabric = Fabric::new();
    let (mut owner, mut user, survey) = (owner(&fabric), fabric.member(8), survey(&fabric));
    owner.expect("create-private p 64", "ok 7");
    user.expect("connect s 4 7 forever", "ok 5000");
    let number = only_member(&survey, NODE);
    let id = SegmentId(7);
    assert_eq!(survey.owners(NODE, id).unwrap().len(), 1);
    let busy = survey.remove(NODE, number, (id, false), PATIENCE).unwrap_err();
    assert!(busy.to_string().contains("in use"), "{busy}");
    survey.remove(NODE, number, (id, true), PATIENCE).unwrap();
    user.expect("wait-remote s forever", "Lost");
    owner.expect("prepare s", "IllegalParameter");
    assert_eq!(survey.owners(NODE, id).unwrap(), []);
    let gone = survey.remove(NODE, number, (id, true), PATIENCE).unwrap_err();
    assert!(gone.to_string().contains("no such segment"), "a private one has no number: {gone}");
    owner.expect("create s 7 64", "ok 7");
}

#[test]
fn stopped_member_does_not_answer_and_a_dead_one_leaves_names() {
    let fabric = Fabric::new();
    let (owner, survey) = (owner(&fabric), survey(&fabric));
    let (pid, number) = (owner.pid(), only_member(&survey, NODE));
    let alive = Resident { number, life: Life::Alive { pid }, entries: 1 };
    owner.signal(Signal::STOP);
    assert_eq!(survey.members(NODE).unwrap(), [alive]);
    let silent = survey.report(NODE, number, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(&silent, AskError::Connect(ConnectError::TimedOut { .. })), "{silent}");
    owner.kill();
    assert_eq!(survey.members(NODE).unwrap(), [Resident { life: Life::Dead, ..alive }]);
    assert_eq!((survey.sweep(NODE).unwrap(), survey.sweep(NODE).unwrap()), (1, 0));
    assert_eq!(survey.members(NODE).unwrap(), []);
}

#[test]
fn questions_that_are_none_are_refused() {
    let fabric = Fabric::new();
    let (_owner, survey) = (owner(&fabric), survey(&fabric));
    let name = format!("fabric.4.{:016x}", only_member(&survey, NODE));
    let domain = fabric.domain();
    let ask = |question: &[u8], passes: bool| {
        let stdin = std::io::stdin();
        let fds: &[_] = if passes { &[stdin.as_fd()] } else { &[] };
        domain.connect_within(&name, question, fds, PATIENCE).map(drop).unwrap_err().to_string()
    };
    let report = [b"BEEQ\x02\0\x01\0".as_slice(), &[0; 16]].concat();
    assert!(domain.connect_within(&name, &report, &[], PATIENCE).is_ok());
    assert!(ask(&report, true).contains("no descriptors are wanted"));
    assert!(ask(&report[..20], false).contains("the question is none: 20 bytes"));
    assert!(ask(&[&report[..6], &[9], &report[7..]].concat(), false).contains("says what no member can"));
}

struct Liar(Vec<u8>);

impl Service for Liar {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<std::os::fd::OwnedFd>) -> Result<Answer, Refused> {
        Ok(Answer::Now(Reply::new(self.0.clone())))
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<std::os::fd::OwnedFd>) -> Result<Answer, Refused> {
        Err(Refused::new("no"))
    }

    fn departed(&mut self, _: &Peer) {}
}

/// A report of node 4 without a segment, which says that there are so many.
fn lie(node: u8, segments: u8) -> Vec<u8> {
    let mut report = vec![0; 24 + 128];
    report[..5].copy_from_slice(b"BEEA\x02");
    (report[6], report[16]) = (node, segments);
    report
}

#[test]
fn members_that_answer_what_they_like_are_errors_and_keep_nobody() {
    let fabric = Fabric::new();
    let number = NonZeroU64::new(0xbad).unwrap();
    let _holder = fabric.domain().registry("fabric.4").unwrap().join(number).unwrap();
    let ask = |answer| {
        let domain = fabric.domain();
        let _offer = domain.offer("fabric.4.0000000000000bad", Box::new(Liar(answer))).unwrap();
        survey(&fabric).report(NODE, number, PATIENCE)
    };
    let whole = ask(lie(4, 0)).unwrap();
    assert_eq!((whole.pid, whole.segments.len()), (std::process::id(), 0));
    // It says that there are more, and names none.
    assert_eq!(ask(lie(4, 200)).unwrap().segments, []);
    let empty = ask(Vec::new()).unwrap_err();
    assert!(matches!(empty, AskError::Answer { error: AnswerError::Length(0), .. }), "{empty}");
    let other = ask(lie(5, 0)).unwrap_err();
    assert!(matches!(other, AskError::Node { said: NodeId(5), .. }), "{other}");
    let segments = |count: u16| -> Vec<u8> {
        let segment = |number: u16| [number.to_le_bytes().as_slice(), &[0; 38]].concat();
        (1..=count).flat_map(segment).collect()
    };
    assert_eq!(ask([lie(4, 200), segments(1)].concat()).unwrap().segments.len(), 1);
    // The same segments over and over.
    let again = ask([lie(4, 200), segments(1024)].concat()).unwrap_err();
    assert!(matches!(again, AskError::Answer { error: AnswerError::Order, .. }), "{again}");
}
