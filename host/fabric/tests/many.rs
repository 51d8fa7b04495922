//! Thousands of segments: what is looked at is what anybody waits for.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod world;

use beeline_fabric::*;
use world::words::loads;
use world::*;

const MANY: u32 = 1000;

/// A member with many segments, and one that is connected to all of them.
fn connected(has_callback: bool) -> (World, Vec<LocalSegment>, Vec<RemoteSegment>) {
    let mut world = World::of(&[NODES[0], NODES[1]]);
    let (mut locals, mut remotes) = (Vec::new(), Vec::new());
    for id in 0..MANY {
        let Value::Local(local, _) = world.now(0, create(id, 64)).unwrap() else {
            panic!("no segment is made")
        };
        world.now(0, Call::Prepare(local, adapter(0))).unwrap();
        world.now(0, Call::SetAvailable(local, adapter(0))).unwrap();
        let Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, .. } = connect(NODES[0], id)
        else {
            unreachable!("it is a connect")
        };
        let call = Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback };
        let Value::Remote(remote, _) = world.now(1, call).unwrap() else { panic!("it is not connected") };
        locals.push(local);
        remotes.push(remote);
    }
    (world, locals, remotes)
}

/// Words that are loaded when a member looks.
fn loads_of_look(world: &mut World, who: usize) -> usize {
    let before = loads();
    world.look(who);
    loads() - before
}

#[test]
fn look_loads_nothing_of_segments_that_nobody_waits_for() {
    let (mut world, locals, remotes) = connected(false);
    assert_eq!([0, 1].map(|who| loads_of_look(&mut world, who)), [0, 0]);
    assert_eq!([0, 1].map(|who| world.processes[who].member.wake_at()), [None, None]);

    let (local, remote, timeout_nanos) = (locals[700], remotes[900], Some(50));
    let Outcome::Now(connect) = world.call(0, Call::WaitLocal { local, timeout_nanos }) else {
        panic!("it was connected to before")
    };
    assert_eq!(connect, Ok(Value::LocalEvent(LocalEvent::Connect(NODES[1]))));
    let Outcome::Waiting(of_local) = world.call(0, Call::WaitLocal { local, timeout_nanos }) else {
        panic!("nothing else has happened")
    };
    let Outcome::Waiting(of_remote) = world.call(1, Call::WaitRemote { remote, timeout_nanos }) else {
        panic!("nothing has happened")
    };
    // A claim of the segment; a life, a link, an entry and twice its group of the connection.
    assert_eq!([0, 1].map(|who| loads_of_look(&mut world, who)), [1, 5]);
    assert_eq!([0, 1].map(|who| world.processes[who].member.wake_at()), [Some(Nanos(50)); 2]);
    world.now = Nanos(50);
    world.look(0);
    world.look(1);
    assert_eq!(world.outcome(0, of_local), Some(Err(Refusal::Timeout)));
    assert_eq!(world.outcome(1, of_remote), Some(Err(Refusal::Timeout)));
    assert_eq!([0, 1].map(|who| loads_of_look(&mut world, who)), [0, 0]);
}

#[test]
fn events_of_many_connections_are_found_in_one_round() {
    let (mut world, _, remotes) = connected(true);
    world.processes[1].told.clear();
    let before = loads();
    world.now(0, Call::SetLink(adapter(0), false)).unwrap();
    world.ring(0);
    let told = world.processes[1].told.iter();
    let expected = remotes.iter().map(|remote| Told::OfRemote(*remote, RemoteEvent::NotOperational));
    assert!(told.copied().eq(expected), "each is told once, in turn");
    // Five words each when its event is found, and once more to learn that there is no other.
    assert_eq!(loads() - before, 2 * 5 * MANY as usize);
}

#[test]
fn connection_beyond_the_last_is_refused_at_once_whatever_its_time() {
    let mut world = World::of(&[NODES[0], NODES[1]]);
    let local = local_of(world.now(0, create(7, 64)).unwrap());
    world.now(0, Call::Prepare(local, adapter(0))).unwrap();
    world.now(0, Call::SetAvailable(local, adapter(0))).unwrap();
    let waiting = Call::Connect {
        node: NODES[0],
        id: SegmentId(7),
        adapter: adapter(0),
        timeout_nanos: Some(1_000_000_000),
        is_asynchronous: false,
        has_callback: false,
    };
    for _ in 0..1024 {
        world.now(1, connect(NODES[0], 7)).unwrap();
    }
    assert_eq!(world.now(1, waiting), Err(Refusal::MaxEntries));
}
