//! Members that are killed at any moment leave nothing.
//!
//! `BEELINE_KILLS` asks for another number of kills. The seed is printed and taken back from `BEELINE_SEED`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::time::Duration;

use beeline_fabric_process::FabricMember;
use support::held::{held, held_at_rest};
use support::random::{Random, number};
use support::segments::{available, connect, remove};
use support::{Fabric, Process};

#[test]
fn role() {
    support::play();
}

fn start(fabric: &Fabric, node: u16) -> Process {
    let mut process = fabric.member(node);
    process.begin("churn 7");
    process
}

#[test]
fn members_that_are_killed_at_any_moment_leave_no_name_no_claim_and_no_descriptor() {
    let kills = number("BEELINE_KILLS").unwrap_or(30);
    let mut random = Random::new();
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let local = available(&owner, 7, 4096);
    // So that the registries that it asks are open.
    for node in [8, 12] {
        fabric.member(node).finish();
        connect(&owner, node, 1).unwrap_err();
    }
    let before = held_at_rest();
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
