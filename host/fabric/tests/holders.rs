//! Segments that several members hold: holders that are silent, names that cannot be looked at, and memory that nobody has borrowed.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod world;

use std::num::NonZeroU64;

use beeline_fabric::*;
use world::*;

const ID: u32 = 7;
const SECOND: u64 = 1_000_000_000;

fn make_available(world: &mut World, who: usize, local: LocalSegment) {
    world.now(who, Call::Prepare(local, adapter(0))).unwrap();
    world.now(who, Call::SetAvailable(local, adapter(0))).unwrap();
}

/// A member whose segment others of its node may hold.
fn share(world: &mut World, who: usize) -> LocalSegment {
    let local = local_of(world.now(who, create(ID, 64)).unwrap());
    make_available(world, who, local);
    world.now(who, Call::Share { local, group: NonZeroU64::MIN }).unwrap();
    local
}

fn find_holder(world: &mut World, who: usize) -> Holder {
    let find = Call::FindHolder { node: NODES[0], id: SegmentId(ID), among: MemberRange::default() };
    match world.now(who, find).unwrap() {
        Value::Holder(holder) => holder,
        other => panic!("{other:?} is no holder"),
    }
}

/// Makes another member of the node a holder.
fn hold(world: &mut World, who: usize) {
    let holder = find_holder(world, who);
    let Holder { bytes, group, .. } = holder;
    let hold = Call::Hold { name: Name::segment(SegmentId(ID)), bytes, group, of: Some(holder) };
    let local = local_of(world.now(who, hold).unwrap());
    make_available(world, who, local);
}

/// What is found of a sequence if the entry of the segment is free after so many loads; `None` if that is not before it is known.
fn check_while_it_goes(loads: usize, is_shared: bool) -> Option<SequenceStatus> {
    let mut world = World::of(&[NODES[0], NODES[1]]);
    if is_shared {
        share(&mut world, 0);
    } else {
        let local = local_of(world.now(0, create(ID, 64)).unwrap());
        make_available(&mut world, 0, local);
    }
    let remote = remote_of(world.now(1, connect(NODES[0], ID)).unwrap());
    let Value::Started(_, Some(start)) = world.now(1, Call::StartSequence(remote)).unwrap() else {
        panic!("the links are up");
    };
    let board = world.processes[0].board.clone();
    let state = HEADER_WORDS + ENTRY_WORDS * u32::from(world.slot_of(0, ID).unwrap().0);
    words::change_after(loads, &board, state, 0);
    let checked = world.now(1, Call::CheckSequence(remote, start)).unwrap();
    let Value::Checked(status) = checked else { panic!("{checked:?} is no status") };
    words::has_changed().then_some(status)
}

/// What a sequence that begins now finds.
fn start(world: &mut World, who: usize, remote: RemoteSegment) -> SequenceStatus {
    match world.now(who, Call::StartSequence(remote)).unwrap() {
        Value::Started(status, _) => status,
        other => panic!("{other:?} is no start"),
    }
}

#[test]
fn look_at_names_that_fails_is_made_again_and_ends_no_connection() {
    let mut world = World::of(&[NODES[0], NODES[0], NODES[1]]);
    share(&mut world, 0);
    let remote = remote_of(world.now(2, connect(NODES[0], ID)).unwrap());
    hold(&mut world, 1);
    world.fails_to_find = true;
    world.kill(0);
    while !world.gone.is_empty() {
        world.learn(0);
    }
    assert_eq!(start(&mut world, 2, remote), SequenceStatus::Pending);
    assert_eq!(start(&mut world, 2, remote), SequenceStatus::Pending);
    world.now = Nanos(SECOND);
    assert_eq!(start(&mut world, 2, remote), SequenceStatus::Pending);
    world.fails_to_find = false;
    // Names that are not to be had are asked for once a second.
    assert_eq!([(); 3].map(|()| start(&mut world, 2, remote)), [SequenceStatus::Pending; 3]);
    world.now = Nanos(2 * SECOND);
    start(&mut world, 2, remote);
    assert_eq!(start(&mut world, 2, remote), SequenceStatus::Ok);
}

#[test]
fn silent_holder_delays_nobody_who_connects_to_another() {
    for silent in [0, 1, 2] {
        let mut world = World::of(&[NODES[0], NODES[0], NODES[0], NODES[1]]);
        share(&mut world, 0);
        hold(&mut world, 1);
        hold(&mut world, 2);
        world.silent = vec![silent];
        let remote = remote_of(world.now(3, connect(NODES[0], ID)).unwrap());
        assert_eq!(start(&mut world, 3, remote), SequenceStatus::Ok);
        find_holder(&mut world, 3);
        let reached: Vec<_> = world.waiting.iter().map(|(who, member, _)| (*who, *member)).collect();
        assert_eq!(reached, [(3, silent)], "it may answer later");
    }
}

#[test]
fn eight_holders_are_reached_at_once_and_the_next_when_one_does_not_answer() {
    let mut world = World::of(&[[NODES[0]; 10].as_slice(), &[NODES[1]]].concat());
    share(&mut world, 0);
    (1..10).for_each(|who| hold(&mut world, who));
    world.silent = (0..10).collect();
    let Outcome::Waiting(ticket) = world.call(10, connect(NODES[0], ID)) else { panic!("nobody answers") };
    let reached = |world: &World| world.waiting.iter().map(|(_, member, _)| *member).collect::<Vec<_>>();
    assert_eq!(reached(&world), [9, 8, 7, 6, 5, 4, 3, 2]);
    world.look(10);
    assert_eq!(world.waiting.len(), 8);
    world.silent = vec![9, 8, 7, 6, 5, 4, 3, 2, 1];
    // Any of them, not the one that is asked first.
    world.refuse_waiting(10, 5);
    world.refuse_waiting(10, 9);
    assert!(matches!(world.outcome(10, ticket), Some(Ok(Value::Remote(..)))));
}

#[test]
fn shared_memory_that_nobody_has_borrowed_is_given_back() {
    for is_borrowed in [false, true] {
        let mut world = World::of(&[NODES[0], NODES[0]]);
        let local = share(&mut world, 0);
        let holder = find_holder(&mut world, 1);
        let (_, pair) = world.processes[1].pairs[&holder.pair];
        if is_borrowed {
            assert!(world.processes[0].member.lends(pair, holder.lent).is_some());
        }
        world.now(0, Call::RemoveSegment { local, is_forced: false }).unwrap();
        assert_eq!(world.processes[0].punched.is_empty(), is_borrowed);
        assert_eq!(world.processes[0].member.lends(pair, holder.lent), None);
    }
}

#[test]
fn segment_that_goes_at_any_load_of_a_check_is_not_retriable_unless_others_may_hold_it() {
    for (is_shared, expected) in [(false, SequenceStatus::NotRetriable), (true, SequenceStatus::Pending)] {
        let found: Vec<_> = (0..).map_while(|loads| check_while_it_goes(loads, is_shared)).collect();
        assert!(found.contains(&expected), "{found:?}");
        let allowed = |it: &SequenceStatus| [expected, SequenceStatus::Ok].contains(it);
        assert!(found.iter().all(allowed), "{found:?}");
    }
}
