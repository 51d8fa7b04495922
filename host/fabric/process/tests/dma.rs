//! DMA between segments of two processes that share a kernel.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

#[path = "../../transfer/tests/cases/dma.rs"]
mod cases;
mod support;

use std::num::NonZeroU64;
use std::time::Duration;

use beeline_fabric::{DmaState, NodeId, Refusal, SegmentId};
use beeline_fabric_process::{DmaDirection, Survey};
use cases::{Two, entry};
use support::Fabric;

#[test]
fn role() {
    support::play();
}

/// Also where it is removed or disconnected from by who knows nothing of the jobs.
#[test]
fn maps_that_are_kept_for_the_next_job_hinder_no_removal_from_outside() {
    let fabric = Fabric::new();
    let two = Two::new(&fabric, 100_000);
    let queue = two.queue();
    assert_eq!(queue.copy(two.transfer(DmaDirection::Write, &[entry(0, 0, 8)])), Ok(DmaState::Done));
    let survey = Survey::open(&fabric.config(8).domain).unwrap();
    let (member, _) = survey.owners(NodeId(8), SegmentId(9)).unwrap().pop().unwrap();
    survey
        .remove(NodeId(8), NonZeroU64::new(member.0).unwrap(), (SegmentId(9), false), Duration::from_secs(10))
        .unwrap();
    assert_eq!(two.remove(), Err(Refusal::IllegalParameter));
}
