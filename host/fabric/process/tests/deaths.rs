//! Members that are killed at any moment leave nothing.
//!
//! `BEELINE_KILLS` asks for another number of kills than 30. The seed is printed and taken back from `BEELINE_SEED`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::time::Duration;

use beeline_fabric_process::FabricMember;
use support::segments::{available, connect, remove};
use support::{Fabric, Process};

#[test]
fn role() {
    support::play();
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ word >> 31) % limit
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().unwrap())
}

/// Descriptors and mappings of this process.
fn held() -> (usize, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let of_members = maps.lines().filter(|line| line.contains("/memfd:beeline"));
    (std::fs::read_dir("/proc/self/fd").unwrap().count(), of_members.count())
}

fn start(fabric: &Fabric, node: u16) -> Process {
    let mut process = fabric.member(node);
    process.begin("churn 7");
    process
}

#[test]
fn members_that_are_killed_at_any_moment_leave_no_name_no_claim_and_no_descriptor() {
    let kills = number("BEELINE_KILLS").unwrap_or(30);
    let seed = number("BEELINE_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("BEELINE_SEED={seed}");
    let mut random = Random(seed);
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let local = available(&owner, 7, 4096);
    // So that the registries that it asks are open.
    for node in [8, 12] {
        connect(&owner, node, 1).unwrap_err();
    }
    let before = held();
    const NODES: [u16; 4] = [4, 8, 8, 12];
    let mut processes: Vec<_> = NODES.into_iter().map(|node| start(&fabric, node)).collect();
    for _ in 0..kills {
        std::thread::sleep(Duration::from_micros(random.below(20_000)));
        let which = random.below(NODES.len() as u64) as usize;
        let new = start(&fabric, NODES[which]);
        std::mem::replace(&mut processes[which], new).kill();
    }
    processes.into_iter().for_each(Process::kill);
    remove(&owner, local);
    // What is left of the last one goes when its death is known, and where it is dropped.
    support::wait_until(|| {
        let _ = connect(&owner, 8, 1);
        held() == before
    });
    let registry = fabric.domain().registry("fabric.8").unwrap();
    assert_eq!((registry.entries().unwrap(), registry.holders().unwrap()), (vec![], vec![]));
}
