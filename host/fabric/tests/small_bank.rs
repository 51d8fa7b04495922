//! A bank that is a part of a file or a BAR: what nobody has a claim of any more is given out again, and what somebody has mapped who is
//! silent is not.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod world;

use beeline_fabric::*;
use world::*;

/// Multiples at which segments begin.
const ALIGN: u64 = 64 << 10;

/// Two members, whose banks have room for one segment.
fn world() -> World {
    let mut world = World::of(&[NODES[0], NODES[1]]);
    for process in &mut world.processes {
        process.member.limit_bank(ALIGN);
        process.member.reuse_bank();
    }
    world
}

/// A segment that the other member is connected to.
fn connected(world: &mut World) -> (LocalSegment, RemoteSegment) {
    let local = local_of(world.now(0, create(7, 64)).unwrap());
    world.now(0, Call::Prepare(local, adapter(0))).unwrap();
    world.now(0, Call::SetAvailable(local, adapter(0))).unwrap();
    (local, remote_of(world.now(1, connect(NODES[0], 7)).unwrap()))
}

#[test]
fn memory_is_another_segments_when_the_last_user_lets_go() {
    let mut world = world();
    let (local, remote) = connected(&mut world);
    assert_eq!(world.now(0, create(8, 64)), Err(Refusal::Nospc));
    world.now(0, Call::RemoveSegment { local, is_forced: true }).unwrap();
    assert_eq!(world.now(0, create(8, 64)), Err(Refusal::Nospc), "somebody may have it mapped");
    world.now(1, Call::Disconnect(remote)).unwrap();
    // No look of the member comes in between.
    world.now(0, create(8, 64)).unwrap();
}

#[test]
fn memory_that_a_member_gives_out_first_is_made_zero_where_it_may_have_been_anothers() {
    let mut world = world();
    let local = local_of(world.now(0, create(7, 64)).unwrap());
    assert_eq!(world.processes[0].punched, [(0, 64)]);
    world.now(0, Call::RemoveSegment { local, is_forced: false }).unwrap();
    world.now(0, create(8, 100)).unwrap();
    assert_eq!(world.processes[0].punched, [(0, 64), (0, 64)], "zero since it was given back");
    let mut world = World::of(&[NODES[0]]);
    world.now(0, create(7, 64)).unwrap();
    assert_eq!(world.processes[0].punched, [], "nobody else had a bank of its own");
}

#[test]
fn memory_of_a_number_that_was_refused_is_another_segments() {
    let mut world = World::of(&[NODES[0], NODES[0]]);
    world.processes[0].member.limit_bank(ALIGN);
    world.processes[0].member.reuse_bank();
    world.now(1, create(7, 64)).unwrap();
    assert_eq!(world.now(0, create(7, 64)), Err(Refusal::SegmentidUsed));
    world.now(0, create(8, 64)).unwrap();
}

#[test]
fn memory_that_a_silent_member_had_connected_to_is_nobody_elses() {
    for is_silent in [true, false] {
        let mut world = world();
        let (local, _) = connected(&mut world);
        let pair = *world.processes[0].users.keys().next().unwrap();
        let member = &mut world.processes[0].member;
        if is_silent {
            member.silent(pair, Nanos(0));
        } else {
            member.gone(pair, Nanos(0));
        }
        world.now(0, Call::RemoveSegment { local, is_forced: false }).unwrap();
        let next = world.now(0, create(8, 64));
        assert_eq!(next.is_ok(), !is_silent, "{next:?}");
    }
}

#[test]
fn memory_that_was_removed_before_its_user_fell_silent_is_nobody_elses() {
    let mut world = world();
    let (local, _) = connected(&mut world);
    world.now(0, Call::RemoveSegment { local, is_forced: true }).unwrap();
    let pair = *world.processes[0].users.keys().next().unwrap();
    world.processes[0].member.silent(pair, Nanos(0));
    assert_eq!(world.now(0, create(8, 64)), Err(Refusal::Nospc));
}

#[test]
fn memory_that_a_member_may_have_had_whose_claims_were_cleared_is_nobody_elses() {
    for (is_replaced, is_removed_before) in [(true, true), (true, false), (false, false)] {
        let mut world = world();
        let (local, _) = connected(&mut world);
        if is_removed_before {
            world.now(0, Call::RemoveSegment { local, is_forced: true }).unwrap();
        }
        let (pair, claims) = world.processes[0].users.pop_first().unwrap();
        claims.0.borrow_mut().clear();
        let tell = if is_replaced { Member::replaced } else { Member::silent };
        tell(&mut world.processes[0].member, pair, Nanos(0));
        if !is_removed_before {
            world.now(0, Call::RemoveSegment { local, is_forced: false }).unwrap();
        }
        let next = world.now(0, create(8, 64));
        assert_eq!(next.is_ok(), !is_replaced, "{next:?}");
    }
}
