//! Payloads and their flags in a segment, with an adversary between the sender's stores and its memory. And senders that are killed meanwhile.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use beeline_fabric::Part;
use beeline_fabric_process::FabricMember;
use proptest::prelude::*;
use support::disorder::{BYTES, PAYLOAD_LINES, Receiver, cases, seen_and_torn, send_on, take_up_to};
use support::random::{Random, number};
use support::segments::{available, connect, connect_within};
use support::{Fabric, Process, config_in};

const SENDS: &str = "BEELINE_TEST_SENDS";
const WHOLE: Part = Part { offset: 0, bytes: BYTES };

/// What was seen of messages between two members.
fn tried(seed: u64, split_lines: bool, payload_lines: u32, has_barrier: bool) -> (u32, u32) {
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let user = FabricMember::open(fabric.config(8)).unwrap();
    let local = available(&owner, 7, BYTES);
    let receiver = Receiver { map: owner.map_local(local, WHOLE).unwrap(), payload_lines };
    let remote = connect(&user, 4, 7).unwrap();
    let (map, sequence) = (user.map_remote(remote, WHOLE).unwrap(), user.sequence(remote).unwrap());
    seen_and_torn(&receiver, (&map, &sequence), (seed, split_lines, has_barrier))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]
    #[test]
    fn payload_before_a_barrier_is_whole_whenever_its_flag_is_seen(
        seed in any::<u64>(), split_lines in any::<bool>(), payload_lines in 1..31_u32,
    ) {
        let (seen, torn) = tried(seed, split_lines, payload_lines, true);
        prop_assert!(seen >= 39);
        prop_assert_eq!(torn, 0);
    }
}

#[test]
fn flag_without_a_barrier_before_it_is_seen_with_a_torn_payload() {
    for split_lines in [false, true] {
        let (_, torn) = tried(1, split_lines, PAYLOAD_LINES, false);
        assert!(torn > 0, "the adversary has left 39 messages alone");
    }
}

#[test]
fn role() {
    let (Ok(seed), Some(root)) = (std::env::var(SENDS), std::env::var_os("BEELINE_TEST_ROOT")) else {
        return;
    };
    let user = FabricMember::open(config_in(Path::new(&root), 8)).unwrap();
    let remote = connect_within(&user, 4, 7, 60_000_000_000).unwrap();
    let map = user.map_remote(remote, WHOLE).unwrap();
    send_on(&map, &user.sequence(remote).unwrap(), seed.parse().unwrap());
}

#[test]
fn messages_are_whole_and_in_order_whoever_is_killed_while_lines_are_on_their_way() {
    let kills = number("BEELINE_KILLS").unwrap_or(30).min(1000);
    let fabric = Fabric::new();
    let mut random = Random::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let local = available(&owner, 7, BYTES);
    let map = owner.map_local(local, WHOLE).unwrap();
    let receiver = Receiver { map, payload_lines: PAYLOAD_LINES };
    let mut next = 1;
    for _ in 0..kills {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(SENDS, random.any().to_string());
        let sender = Process::start_as(command, fabric.root(), 8, &[]);
        let last = next + random.below(20);
        take_up_to(&receiver, &mut next, last);
        let (started, nanos) = (Instant::now(), random.below(20_000));
        while started.elapsed().as_nanos() < u128::from(nanos) {
            std::hint::spin_loop();
        }
        sender.kill();
    }
    println!("{} messages, {kills} senders", next - 1);
}
