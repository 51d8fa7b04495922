//! A member that is killed in some part of what it does over and over: what it had is free.
//!
//! `BEELINE_KILLS` asks for another number of kills. Apart from `deaths.rs`, which counts what its process holds.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::time::{Duration, Instant};

use beeline_fabric_process::FabricMember;
use support::joining::{SHARED, kill_in_a_join, shared_interrupt};
use support::random::number;
use support::segments::{available, remove};
use support::{Fabric, Process};

#[test]
fn role() {
    support::play();
}

#[test]
fn what_a_member_had_is_free_when_it_was_killed_in_whatever_part_of_a_round() {
    /// How long a member lives at most that is about to begin: a few rounds.
    const LIFE: Duration = Duration::from_millis(2);
    let kills = number("BEELINE_KILLS").unwrap_or(60) as u32;
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let heir = FabricMember::open(fabric.config(8)).unwrap();
    let mut local = available(&owner, 7, 4096);
    for kill in 0..kills {
        let mut process = fabric.member(8);
        if kill.is_multiple_of(4) {
            // It is killed in its first contact, or before or after that.
            process.begin("churn 7");
        } else {
            process.expect("connect s 4 7 0", "ok 4096");
            process.expect("disconnect s", "ok");
            process.begin("churn 7");
        }
        let started = Instant::now();
        while started.elapsed() < LIFE * kill / kills {
            std::hint::spin_loop();
        }
        process.kill();
        // Its number, which nobody has for longer than it lived; and what it claimed, once its death is known.
        let own = available(&heir, 100, 4096);
        remove(&heir, own);
        remove(&owner, local);
        local = available(&owner, 7, 4096);
    }
}

#[test]
fn member_that_joins_is_not_hindered_by_others_who_are_killed_as_they_join() {
    let kills = number("BEELINE_KILLS").unwrap_or(60).min(2000) as u32;
    let fabric = Fabric::lasting(Duration::from_secs(120) + Duration::from_millis(400) * kills);
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    let shared = available(&owner, SHARED.0, 4096);
    owner.share(shared).unwrap();
    let _interrupt = owner.create_interrupt(shared_interrupt()).unwrap();
    let mut companions: Vec<Process> = [12, 4].map(|node| fabric.member(node)).into();
    for kill in 0..kills {
        companions.iter_mut().for_each(|companion| companion.begin("joins 3"));
        kill_in_a_join(&fabric, [8, 4][kill as usize % 2], kill, kills);
        companions.iter_mut().for_each(|companion| assert_eq!(companion.hear(), "ok"));
    }
}
