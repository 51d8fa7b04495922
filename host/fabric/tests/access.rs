//! Segments to which not every member may connect: what others claim of them counts for nothing.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod world;

use beeline_contract_adapter::{PublishPort, ViewPort};
use beeline_fabric::*;
use world::*;

const OWNER: usize = 0;
const LISTED: usize = 1;
const OTHER: usize = 2;

/// Three members, and a segment of the first to which the second may connect.
fn exported() -> (World, LocalSegment) {
    let mut world = World::of(&NODES);
    let local = local_of(world.now(OWNER, create(7, 64)).unwrap());
    let access = Access { nodes: Some(vec![NODES[LISTED]]), ..Access::default() };
    world.processes[OWNER].member.export(local, access).unwrap();
    world.processes[OWNER].member.tell_segment(local);
    world.now(OWNER, Call::Prepare(local, adapter(0))).unwrap();
    world.now(OWNER, Call::SetAvailable(local, adapter(0))).unwrap();
    (world, local)
}

fn told(world: &mut World) -> Vec<Told> {
    world.look(OWNER);
    std::mem::take(&mut world.processes[OWNER].told)
}

#[test]
fn claim_of_who_may_not_connect_is_told_to_nobody_keeps_nothing_and_is_passed_no_memory() {
    let (mut world, local) = exported();
    let [listed, other] = [LISTED, OTHER].map(|who| {
        let remote = remote_of(world.now(who, connect(NODES[OWNER], 7)).unwrap());
        assert_eq!(world.processes[who].member.is_listed(remote), Some(true));
        let Borrowed { pair, lent, .. } = world.processes[who].member.borrowed(remote).unwrap();
        let (_, there) = world.processes[who].pairs[&pair];
        let lends = world.processes[OWNER].member.lends(there, lent);
        assert_eq!(lends.map(|(local, _)| local), (who == LISTED).then_some(local));
        remote
    });
    assert_eq!(told(&mut world), [Told::OfLocal(local, LocalEvent::Connect(NODES[LISTED]))]);
    let remove = Call::RemoveSegment { local, is_forced: false };
    assert_eq!(world.now(OWNER, remove), Err(Refusal::Busy));
    world.now(OTHER, Call::Disconnect(other)).unwrap();
    assert_eq!(told(&mut world), []);
    remote_of(world.now(OTHER, connect(NODES[OWNER], 7)).unwrap());
    world.now(LISTED, Call::Disconnect(listed)).unwrap();
    assert_eq!(told(&mut world), [Told::OfLocal(local, LocalEvent::Disconnect(NODES[LISTED]))]);
    assert_eq!(world.now(OWNER, remove), Ok(Value::Nothing));
}

#[test]
fn segment_that_is_exported_leaves_the_bank_and_one_that_is_in_use_is_not() {
    let (mut world, local) = exported();
    world.look(OWNER);
    assert_eq!(world.processes[OWNER].punched, [(0, 64)]);
    let whole = Part { offset: 0, bytes: 64 };
    let map = Call::MapLocal(local, whole);
    assert!(matches!(world.now(OWNER, map), Ok(Value::MapLocal(Memory::Own { .. }, _))));
    let export = |world: &mut World, local| world.processes[OWNER].member.export(local, Access::default());
    assert_eq!(export(&mut world, local), Err(Refusal::IllegalOperation));
    let mapped = local_of(world.now(OWNER, create(8, 64)).unwrap());
    world.now(OWNER, Call::MapLocal(mapped, whole)).unwrap();
    assert_eq!(export(&mut world, mapped), Err(Refusal::IllegalOperation));
    world.now(OWNER, Call::UnmapLocal(mapped)).unwrap();
    assert_eq!(export(&mut world, mapped), Ok(Value::Nothing));
}

#[test]
fn member_of_another_user_claims_only_what_is_exported_to_that_user() {
    let mut world = World::of(&NODES);
    let mut claims = Words::claims(&Words::board());
    let user = Some(1001);
    for (id, users, lets) in [(7, vec![1001], true), (8, vec![1002], false), (9, vec![], false)] {
        let local = local_of(world.now(OWNER, create(id, 64)).unwrap());
        let access = Access { users, ..Access::default() };
        let member = &mut world.processes[OWNER].member;
        member.export(local, access).unwrap();
        let pair = member.admit_user(NODES[OTHER], user, claims.clone());
        let slot = world.slot_of(OWNER, id).unwrap();
        // The first word of an entry has the incarnation in its upper half, as a claim has.
        let incarnation = (world.processes[OWNER].board.load(32 + 8 * u32::from(slot.0)) >> 32) as u32;
        let lent = Lent { slot, incarnation };
        claims.publish(slot.0.into(), u64::from(incarnation) << 32 | 1);
        claims.barrier().unwrap();
        assert_eq!(world.processes[OWNER].member.lends(pair, lent).is_some(), lets, "{id}");
    }
}

/// Its removal takes no entry from the board: the next segment of the slot would be one that nobody has looked for claims of.
#[test]
fn board_has_nothing_of_a_private_segment() {
    let mut world = World::of(&NODES);
    let (id, bytes) = (SegmentId(7), 64);
    let (is_auto, is_private, is_empty, has_callback) = (false, true, false, false);
    let private = Call::CreateSegment { id, is_auto, bytes, is_private, is_empty, has_callback };
    let local = local_of(world.now(OWNER, private).unwrap());
    world.now(OWNER, Call::Prepare(local, adapter(0))).unwrap();
    let entries = |world: &World| world.processes[OWNER].board.0.borrow().range(32..).count();
    for is_forced in [false, true] {
        // Whatever is answered.
        let _ = world.now(OWNER, Call::SetUnavailable { local, adapter: adapter(0), is_forced });
        assert_eq!(entries(&world), 0);
    }
    world.now(OWNER, create(7, 64)).unwrap();
    assert!(entries(&world) > 0);
}
