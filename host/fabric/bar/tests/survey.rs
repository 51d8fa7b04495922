//! Who looks at a memory that processes share, and takes no part.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::os::unix::fs::FileExt;
use std::time::Duration;

use beeline_fabric::{AdapterNumber, Name, NameKind, NodeId, Refusal, SegmentId};
use beeline_fabric_bar::{BarAskError, BarEntry, BarMemory, BarReport, BarSurvey, BarSwept, OpenError};
use beeline_mmio::{FaultGuard, OnLoss};
use rustix::process::Signal;
use support::Memory;

/// More than the bound of the heartbeat.
const PATIENCE: Duration = Duration::from_millis(1500);

#[test]
fn role() {
    support::play();
}

fn survey(memory: &Memory) -> Result<BarSurvey, OpenError> {
    let guard = FaultGuard::install().unwrap();
    BarSurvey::open(&BarMemory::of_path(memory.path()), OnLoss::Guarded(guard))
}

fn members(memory: &Memory) -> Vec<BarReport> {
    survey(memory).unwrap().members(PATIENCE)
}

fn found(entries: &[BarEntry]) -> Vec<(Name, u64, u16, u32)> {
    let of = |it: &BarEntry| (it.entry.name, it.entry.bytes, it.entry.available, it.connections);
    entries.iter().map(of).collect()
}

#[test]
fn members_and_what_they_have_are_seen_and_who_was_killed_is_not_alive() {
    let memory = Memory::new();
    let (mut owner, mut user) = (memory.member_in(4, 0), memory.member_in(8, 2));
    for line in ["create s 7 1000", "prepare s", "available s", "create t 9 64", "interrupt i plain 5"] {
        assert!(owner.call(line).starts_with("ok"), "{line}");
    }
    owner.expect("join g 7 4096", "first 4096");
    user.expect("join g 7 4096", "ok 4096");
    user.expect("connect s 4 7 forever", "ok 1000");
    user.expect("connect r 4 7 forever", "ok 1000");
    user.expect("hook t plain 4 5 forever", "ok");
    let seen = members(&memory);
    let [one, other] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(
        [(one.slot, one.number.node()), (other.slot, other.number.node())],
        [(0, NodeId(4)), (2, NodeId(8))]
    );
    assert!(one.is_alive && other.is_alive && one.links.len() == 1 && one.links[0].is_up);
    assert_eq!((one.names, one.connections, one.consumers), (4, 0, 1));
    assert_eq!((other.names, other.connections, other.consumers), (1, 3, 0));
    let [segment, unused] = [7, 9].map(|id| Name::segment(SegmentId(id)));
    let group = Name::segment_of(NodeId::GROUPS, SegmentId(7));
    assert_eq!(found(&one.segments), [(segment, 1000, 1, 2), (unused, 64, 0, 0), (group, 4096, 0, 0)]);
    assert_eq!(one.interrupts.len(), 1);
    assert_eq!((one.interrupts[0].entry.name.kind, one.interrupts[0].connections), (NameKind::Interrupt, 1));
    let memory_of = |report: &BarReport| report.segments.last().unwrap().entry.memory;
    assert!(memory_of(one) != 0 && memory_of(one) == memory_of(other));
    user.kill();
    owner.finish();
    let left = members(&memory);
    assert_eq!(left.iter().map(|it| (it.slot, it.is_alive)).collect::<Vec<_>>(), [(2, false)]);
}

#[test]
fn memory_of_nobody_and_words_of_anybody_are_looked_at_and_nothing_is_stored() {
    let memory = Memory::new();
    assert!(matches!(survey(&memory), Err(OpenError::NotOurs { found: 0 })));
    memory.member_in(4, 0).finish();
    let file = std::fs::File::options().read(true).write(true).open(memory.path()).unwrap();
    let mut random: u64 = 0x0bee_f067;
    // Behind the header.
    for at in (4096..support::BYTES / 4).step_by(8) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let word = [random, random >> 61, u64::MAX, 1 << 32 | 1 << 16 | 1][(random >> 30) as usize % 4];
        file.write_all_at(&word.to_ne_bytes(), at).unwrap();
    }
    let before = std::fs::read(memory.path()).unwrap();
    let seen = survey(&memory).unwrap().members(Duration::from_millis(50));
    assert!(seen.iter().all(|it| !it.is_alive) && !seen.is_empty());
    assert!(before == std::fs::read(memory.path()).unwrap());
}

/// What comes of asking the member of a slot to remove a segment.
fn remove(
    memory: &Memory,
    slot: usize,
    of: (NodeId, u32, bool),
    patience: Duration,
) -> Result<(), BarAskError> {
    let members = members(memory);
    let member = members.iter().find(|it| it.slot == slot).unwrap();
    survey(memory).unwrap().remove(member, (of.0, SegmentId(of.1), of.2), patience)
}

#[test]
fn member_does_what_it_is_asked_for_or_says_why_not() {
    let memory = Memory::new();
    let (mut owner, mut user) = (memory.member_in(4, 0), memory.member_in(8, 1));
    for line in ["create s 7 1000", "prepare s", "available s"] {
        assert!(owner.call(line).starts_with("ok"), "{line}");
    }
    user.expect("connect r 4 7 forever", "ok 1000");
    let node = NodeId(4);
    let refused = |refusal| Err(BarAskError::Refused(refusal));
    assert_eq!(remove(&memory, 0, (node, 7, false), PATIENCE), refused(Refusal::Busy));
    assert_eq!(remove(&memory, 0, (node, 7, true), PATIENCE), Ok(()));
    user.until("check-once r", "NotConnected");
    assert_eq!(remove(&memory, 0, (node, 7, true), PATIENCE), refused(Refusal::NoSuchSegment));
    owner.expect("prepare s", "IllegalParameter");
    // Most of a member's area.
    for (member, joined) in [(&mut owner, "first 1200000"), (&mut user, "ok 1200000")] {
        member.expect("join g 7 1200000", joined);
    }
    for slot in 0..2 {
        assert_eq!(remove(&memory, slot, (NodeId::GROUPS, 7, false), PATIENCE), Ok(()));
    }
    // Its memory is nobody's.
    owner.until("join g 8 1200000", "first 1200000");
    let link = |number, is_up| {
        let adapter = AdapterNumber::new(number).unwrap();
        survey(&memory).unwrap().set_link(&members(&memory)[0], (adapter, is_up), PATIENCE)
    };
    assert_eq!(link(3, false), refused(Refusal::NoSuchAdapterno));
    assert_eq!(link(0, false), Ok(()));
    user.until("probe 4", "NoRemoteLinkAccess");
    assert_eq!(link(0, true), Ok(()));
    user.until("probe 4", "ok");
    owner.signal(Signal::STOP);
    assert_eq!(remove(&memory, 0, (node, 7, true), Duration::from_millis(50)), Err(BarAskError::NoAnswer));
    owner.signal(Signal::CONT);
    user.until("probe 4", "ok");
    assert_eq!(remove(&memory, 0, (node, 7, true), PATIENCE), refused(Refusal::NoSuchSegment));
}

#[test]
fn slot_of_who_is_not_heard_is_freed_unless_its_memory_is_mapped() {
    let memory = Memory::new();
    let (mut owner, mut user) = (memory.member_in(4, 0), memory.member_in(8, 1));
    for line in ["create s 7 1000", "prepare s", "available s"] {
        assert!(owner.call(line).starts_with("ok"), "{line}");
    }
    user.expect("connect r 4 7 forever", "ok 1000");
    user.expect("map-remote r 0 8", "ok 8");
    let mut stopped = memory.member_in(4, 2);
    let sweep = |node| survey(&memory).unwrap().sweep(NodeId(node)).unwrap();
    assert_eq!(sweep(4), BarSwept { members: 0, names: 0, held: 0 });
    owner.kill();
    stopped.signal(Signal::STOP);
    assert_eq!(sweep(8), BarSwept { members: 0, names: 0, held: 0 });
    assert_eq!(sweep(4), BarSwept { members: 1, names: 0, held: 1 });
    stopped.signal(Signal::CONT);
    stopped.until("probe 4", "System");
    user.until("probe 4", "NodeNotResponding");
    user.expect("unmap r", "ok");
    user.expect("disconnect r", "ok");
    assert_eq!(sweep(4), BarSwept { members: 1, names: 1, held: 0 });
    assert_eq!(members(&memory).iter().map(|it| it.slot).collect::<Vec<_>>(), [1]);
    memory.member_in(4, 0).finish();
    user.expect("probe 8", "ok");
}
