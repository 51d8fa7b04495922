//! Payloads and their flags in a segment of a file, with an adversary between the sender's stores and its memory. And senders that are killed
//! meanwhile, whose slots others take.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::path::Path;
use std::process::{Child, Command};
use std::time::Instant;

use beeline_fabric::{AdapterNumber, Call, LocalSegment, NodeId, Part, RemoteSegment, SegmentId, Value};
use beeline_fabric_bar::BarMember;
use support::disorder::{BYTES, PAYLOAD_LINES, Receiver, cases, seen_and_torn, send_on, take_up_to};
use support::random::{Random, number};
use support::{Memory, config};

const SENDS: &str = "BEELINE_TEST_SENDS";
const FILE: &str = "BEELINE_TEST_FILE";
const WHOLE: Part = Part { offset: 0, bytes: BYTES };

fn available(member: &BarMember) -> LocalSegment {
    let (is_auto, is_private, is_empty, has_callback) = (false, false, false, false);
    let (id, adapter) = (SegmentId(7), AdapterNumber::new(0).unwrap());
    let create = Call::CreateSegment { id, is_auto, bytes: BYTES, is_private, is_empty, has_callback };
    let Value::Local(local, _) = member.call(create).unwrap() else { panic!("no segment was made") };
    member.call(Call::Prepare(local, adapter)).unwrap();
    member.call(Call::SetAvailable(local, adapter)).unwrap();
    local
}

fn connect(member: &BarMember) -> RemoteSegment {
    let (is_asynchronous, has_callback) = (false, false);
    let (node, id, adapter) = (NodeId(4), SegmentId(7), AdapterNumber::new(0).unwrap());
    let timeout_nanos = Some(60_000_000_000);
    let connect = Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback };
    match member.call(connect).unwrap() {
        Value::Remote(remote, _) => remote,
        other => panic!("{other:?} is no connection"),
    }
}

#[test]
fn payload_before_a_barrier_is_whole_whenever_its_flag_is_seen_and_without_one_it_is_torn() {
    let memory = Memory::new();
    let (owner, user) = (memory.member_here(4), memory.member_here(8));
    let local = available(&owner);
    let remote = connect(&user);
    let (map, sequence) = (user.map_remote(remote, WHOLE).unwrap(), user.sequence(remote).unwrap());
    let mut random = Random::new();
    for _ in 0..cases() {
        for split_lines in [false, true] {
            let payload_lines = 1 + random.below(30) as u32;
            let receiver = Receiver { map: owner.map_local(local, WHOLE).unwrap(), payload_lines };
            let (seen, torn) = seen_and_torn(&receiver, (&map, &sequence), (random.any(), split_lines, true));
            assert!(seen >= 39 && torn == 0, "{payload_lines} lines: {seen} seen, {torn} torn");
        }
    }
    for split_lines in [false, true] {
        let receiver = Receiver { map: owner.map_local(local, WHOLE).unwrap(), payload_lines: 7 };
        let (_, torn) = seen_and_torn(&receiver, (&map, &sequence), (1, split_lines, false));
        assert!(torn > 0, "the adversary has left 39 messages alone");
    }
}

#[test]
fn role() {
    let (Ok(seed), Some(path)) = (std::env::var(SENDS), std::env::var_os(FILE)) else { return };
    let user = BarMember::open(config(Path::new(&path), 8, None)).unwrap();
    let remote = connect(&user);
    let map = user.map_remote(remote, WHOLE).unwrap();
    send_on(&map, &user.sequence(remote).unwrap(), seed.parse().unwrap());
}

/// Sends until it is dropped.
struct Sender(Child);

impl Sender {
    fn new(memory: &Memory, seed: u64) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "role", "--nocapture", "--test-threads=1"]);
        Sender(command.env(FILE, memory.path()).env(SENDS, seed.to_string()).spawn().unwrap())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let _killed = self.0.kill();
        let _waited = self.0.wait();
    }
}

#[test]
fn messages_are_whole_and_in_order_whoever_is_killed_while_lines_are_on_their_way() {
    // More than the memory has slots.
    let kills = number("BEELINE_KILLS").unwrap_or(6).min(1000);
    let memory = Memory::new();
    let mut random = Random::new();
    let owner = memory.member_here(4);
    let local = available(&owner);
    let receiver = Receiver { map: owner.map_local(local, WHOLE).unwrap(), payload_lines: PAYLOAD_LINES };
    let mut next = 1;
    for _ in 0..kills {
        let sender = Sender::new(&memory, random.any());
        let last = next + random.below(20);
        take_up_to(&receiver, &mut next, last);
        let (started, nanos) = (Instant::now(), random.below(20_000));
        while started.elapsed().as_nanos() < u128::from(nanos) {
            std::hint::spin_loop();
        }
        drop(sender);
    }
    println!("{} messages, {kills} senders", next - 1);
}
