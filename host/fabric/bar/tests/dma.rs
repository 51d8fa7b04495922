//! DMA between segments of two processes that have the path of a file in common.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

#[path = "../../transfer/tests/cases/dma.rs"]
mod cases;
mod support;

use std::fs::File;

use beeline_fabric::{DmaState, Refusal};
use beeline_fabric_bar::DmaDirection;
use cases::{LARGE, Two, endless, entry};
use support::Memory;

#[test]
fn role() {
    support::play();
}

#[test]
fn member_that_leaves_keeps_nothing_mapped_for_the_next_job() {
    let memory = Memory::new();
    let Two { member, local, remote, owner } = Two::new(&memory, 100_000);
    let (queue, slot) = (member.dma_queue(16).unwrap(), member.slot());
    let two = Two { member, local, remote, owner };
    assert_eq!(queue.copy(two.transfer(DmaDirection::Write, &[entry(0, 0, 8)])), Ok(DmaState::Done));
    drop(two.member);
    // A member that has something mapped keeps its slot.
    memory.member_in(12, slot).finish();
    two.owner.finish();
}

#[test]
fn job_fails_when_the_file_is_cut_under_it() {
    let memory = Memory::with_room(2 * LARGE);
    let two = Two::new(&memory, LARGE);
    let queue = two.queue();
    let job = queue.start(two.transfer(DmaDirection::Write, &endless())).unwrap();
    File::options().write(true).open(memory.path()).unwrap().set_len(4096).unwrap();
    assert_eq!((job.wait(None), job.failure()), (Ok(DmaState::Error), Some(Refusal::TransferFailed)));
    // Its thread may not have looked since.
    support::wait_until(|| two.member.dma_queue(16).err() == Some(Refusal::NoLinkAccess));
}
