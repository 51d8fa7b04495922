//! Two processes whose nodes have two adapters: what is stored comes whole while links go down and up at random, as long as one adapter is
//! up at both ends.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use beeline_fabric::{
    AdapterNumber, Call, DmaEntry, DmaState, InterruptNumber, LocalSegment, NodeId, Part, Refusal, SegmentId,
    Value,
};
use beeline_fabric_process::{DmaDirection, DmaLocal, DmaTransfer, FabricMember, InterruptOptions, Survey};
use support::random::Random;
use support::stream::{SEGMENT_BYTES, read};
use support::{Fabric, Process};

/// Sequences that must have been found to be retriable before a test ends.
const RETRIED: u64 = 20;

#[test]
fn role() {
    support::play();
}

fn adapter(number: u32) -> AdapterNumber {
    AdapterNumber::new(number).unwrap()
}

/// Makes a segment that is available by every adapter.
fn available(member: &FabricMember, id: u32, bytes: u64) -> LocalSegment {
    let (is_auto, is_private, is_empty, has_callback) = (false, false, false, false);
    let id = SegmentId(id);
    let create = Call::CreateSegment { id, is_auto, bytes, is_private, is_empty, has_callback };
    let Value::Local(local, _) = member.call(create).unwrap() else { panic!("no segment was made") };
    member.call(Call::Prepare(local, AdapterNumber::ANY)).unwrap();
    member.call(Call::SetAvailable(local, AdapterNumber::ANY)).unwrap();
    local
}

/// The links of both nodes: this process is of node 4, its peer the only member of node 8.
struct Links<'a> {
    own: &'a FabricMember,
    survey: Survey,
    peer: NonZeroU64,
}

impl<'a> Links<'a> {
    fn new(fabric: &Fabric, own: &'a FabricMember) -> Self {
        let survey = Survey::open(&fabric.config(4).domain).unwrap();
        let peer = survey.members(NodeId(8)).unwrap()[0].number;
        Links { own, survey, peer }
    }

    fn set_own(&self, number: u32, is_up: bool) {
        self.own.call(Call::SetLink(adapter(number), is_up)).unwrap();
    }

    fn set_peers(&self, number: u32, is_up: bool) {
        let patience = Duration::from_secs(60);
        self.survey.set_link(NodeId(8), self.peer, (adapter(number), is_up), patience).unwrap();
    }

    /// Has the other adapter up at both ends, and then a link of this one down.
    fn take_down(&self, number: u32, random: &mut Random) {
        self.set_own(1 - number, true);
        self.set_peers(1 - number, true);
        match random.below(3) {
            0 => self.set_own(number, false),
            1 => self.set_peers(number, false),
            _ => {
                self.set_peers(number, false);
                self.set_own(number, false);
            }
        }
    }
}

/// A peer of node 8 that is connected to segment 7 of `owner` by any adapter.
fn connected(fabric: &Fabric) -> Process {
    let mut peer = fabric.member(8);
    peer.expect("connect-any s 4 7", &format!("ok {SEGMENT_BYTES}"));
    peer.expect(&format!("map-remote s 0 {SEGMENT_BYTES}"), &format!("ok {SEGMENT_BYTES}"));
    peer
}

#[test]
fn bytes_come_whole_while_links_go_down_and_up_at_random() {
    let mut random = Random::new();
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let local = available(&owner, 7, SEGMENT_BYTES);
    let map = owner.map_local(local, Part { offset: 0, bytes: SEGMENT_BYTES }).unwrap();
    let mut peer = connected(&fabric);
    let links = Links::new(&fabric, &owner);
    peer.begin(&format!("stream s {RETRIED}"));
    let (taken, has_ended) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                links.take_down(random.below(2) as u32, &mut random);
                // Each state of the links is used, for more or less long.
                let end = taken.load(Ordering::Relaxed) + random.below(50);
                support::wait_until(|| {
                    taken.load(Ordering::Relaxed) >= end || has_ended.load(Ordering::Relaxed)
                });
            }
        });
        while !peer.has_said() {
            match read(&map, taken.load(Ordering::Relaxed)) {
                Some(number) => taken.store(number, Ordering::Relaxed),
                None => std::thread::yield_now(),
            }
        }
        has_ended.store(true, Ordering::Relaxed);
    });
    let taken = taken.into_inner();
    assert_eq!(peer.hear(), format!("ok {taken}"));
    // All are down: as for who has one adapter.
    [0, 1].into_iter().for_each(|number| links.set_own(number, false));
    peer.expect("start s", "Pending");
    links.set_own(1, true);
    links.set_peers(1, true);
    peer.expect("start s", "Ok");
    links.set_peers(0, true);
    links.set_own(0, true);
    peer.expect("check s", "Ok");
}

#[test]
fn who_named_the_adapter_that_is_down_waits_for_it() {
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    available(&owner, 7, SEGMENT_BYTES);
    let mut peer = connected(&fabric);
    peer.expect("connect t 4 7 0", &format!("ok {SEGMENT_BYTES}"));
    ["s", "t"].into_iter().for_each(|name| peer.expect(&format!("start {name}"), "Ok"));
    owner.call(Call::SetLink(adapter(0), false)).unwrap();
    peer.expect("check t", "Pending");
    peer.expect("start t", "Pending");
    peer.expect("check s", "Retriable");
    peer.expect("start s", "Ok");
    owner.call(Call::SetLink(adapter(0), true)).unwrap();
    peer.expect("check s", "Ok");
}

#[test]
fn job_of_dma_goes_on_by_the_other_adapter() {
    const BYTES: u64 = 32 << 20;
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let remote = available(&owner, 7, BYTES);
    let user = FabricMember::open(fabric.config(8)).unwrap();
    let local = available(&user, 9, BYTES);
    let whole = Part { offset: 0, bytes: BYTES };
    let (from, to) = (user.map_local(local, whole).unwrap(), owner.map_local(remote, whole).unwrap());
    let bytes: Vec<u8> = (0..BYTES as u32).map(|at| (at % 251) as u8).collect();
    from.copy_in(0, &bytes).unwrap();
    let connect = |by| {
        let (timeout_nanos, is_asynchronous, has_callback) = (Some(0), false, false);
        let (node, id, adapter) = (NodeId(4), SegmentId(7), by);
        let connect = Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback };
        let Ok(Value::Remote(remote, _)) = user.call(connect) else { panic!("not connected") };
        remote
    };
    // The same entry many times, so that the job is under way when the link goes down.
    let entries = [DmaEntry { local_offset: 0, remote_offset: 0, bytes: BYTES }; 16];
    let set_link = |is_up| user.call(Call::SetLink(adapter(0), is_up)).unwrap();
    let mut came = vec![0; bytes.len()];
    for (by, state) in [(AdapterNumber::ANY, DmaState::Done), (adapter(0), DmaState::Error)] {
        let queue = user.dma_queue(16).unwrap();
        let (remote, direction) = (connect(by), DmaDirection::Write);
        let transfer = DmaTransfer { local: DmaLocal::Segment(local), remote, direction, entries: &entries };
        to.copy_in(0, &[0; 2]).unwrap();
        queue.start(transfer).unwrap();
        support::wait_until(|| {
            to.copy_out(0, &mut came[..2]).unwrap();
            came[..2] == bytes[..2]
        });
        // Fewer times than a piece is copied at most.
        for is_up in [false, true].repeat(30) {
            set_link(is_up);
            std::thread::yield_now();
        }
        assert_eq!(queue.wait(None), Ok(state));
    }
    to.copy_out(0, &mut came).unwrap();
    assert!(came == bytes);
}

#[test]
fn interrupts_are_triggered_by_the_other_adapter() {
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let user = FabricMember::open(fabric.config(8)).unwrap();
    let number = InterruptNumber(5);
    let options = InterruptOptions { number: Some(number), ..InterruptOptions::default() };
    let _interrupt = owner.create_interrupt(options).unwrap();
    let connect = |by| user.connect_interrupt(NodeId(4), number, by, Some(Duration::ZERO)).unwrap();
    let (any, first) = (connect(AdapterNumber::ANY), connect(adapter(0)));
    owner.call(Call::SetLink(adapter(0), false)).unwrap();
    assert_eq!((any.trigger(), first.trigger()), (Ok(()), Err(Refusal::NoRemoteLinkAccess)));
    user.call(Call::SetLink(adapter(1), false)).unwrap();
    assert!(any.trigger().is_err());
}
