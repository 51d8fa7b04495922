//! What each call answers in each state, from tables.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod world;

use beeline_fabric::*;
use world::*;

const WHOLE: Part = Part { offset: 0, bytes: 64 };
const BEYOND: Part = Part { offset: 1, bytes: 64 };

/// A row is a call, a column a state that the segment is in before it. A cell is the code, and after `>` the state that follows if it is
/// another one. E: empty and nothing registered. NP: not prepared. P: prepared. A: available. C: available and connected to. M: prepared
/// and mapped. `gone`: the handle names nothing.
const LOCAL: &str = "
call              E                 NP                  P                 A                 C                 M
prepare           IllegalOperation  ok>P                ok                ok                ok                ok
prepare-15        NoSuchAdapterno   NoSuchAdapterno     NoSuchAdapterno   NoSuchAdapterno   NoSuchAdapterno   NoSuchAdapterno
available         IllegalOperation  SegmentNotPrepared  ok>A              ok                ok                ok>A
unavailable       IllegalOperation  SegmentNotPrepared  IllegalOperation  ok>P              ok                IllegalOperation
unavailable-force IllegalOperation  SegmentNotPrepared  ok                ok>P              ok>P              ok
map               IllegalOperation  ok                  ok                ok                ok                ok
map-beyond        IllegalOperation  OutOfRange          OutOfRange        OutOfRange        OutOfRange        OutOfRange
unmap             IllegalParameter  IllegalParameter    IllegalParameter  IllegalParameter  IllegalParameter  ok>P
register          ok>NP             IllegalOperation    IllegalOperation  IllegalOperation  IllegalOperation  IllegalOperation
wait              Timeout           Timeout             Timeout           Timeout           ok                Timeout
remove            ok>gone           ok>gone             ok>gone           ok>gone           Busy              Busy
remove-force      ok>gone           ok>gone             ok>gone           ok>gone           ok>gone           Busy
";

/// O: operational. N: a link is down. L: the segment is gone. M: operational and mapped. C: connecting.
const REMOTE: &str = "
call         C                    O           N         L             M
map          SegmentNotConnected  ok          ok        NotConnected  ok
map-beyond   SegmentNotConnected  OutOfRange  OutOfRange NotConnected OutOfRange
unmap        IllegalParameter     IllegalParameter IllegalParameter IllegalParameter ok>O
start        SegmentNotConnected  Ok          Pending   NotRetriable  Ok
wait         Timeout              Timeout     ok        ok            Timeout
disconnect   ok>gone              ok>gone     ok>gone   ok>gone       Busy
";

fn cells(table: &str) -> Vec<(String, String, String)> {
    let rows: Vec<Vec<&str>> = table.trim().lines().map(|line| line.split_whitespace().collect()).collect();
    let states = &rows[0][1..];
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "every row has a cell for every state");
    rows[1..]
        .iter()
        .flat_map(|row| {
            states
                .iter()
                .zip(&row[1..])
                .map(|(state, cell)| (row[0].to_owned(), (*state).to_owned(), (*cell).to_owned()))
        })
        .collect()
}

fn code(outcome: Result<Value, Refusal>) -> String {
    match outcome {
        Ok(Value::Started(status, start)) => {
            assert_eq!(start.is_some(), status == SequenceStatus::Ok);
            format!("{status:?}")
        }
        Ok(_) => "ok".to_owned(),
        Err(refusal) => format!("{refusal:?}"),
    }
}

/// The segment's member is the first, who connects the second.
fn two() -> World {
    World::of(&[NODES[0], NODES[1]])
}

fn local_in(world: &mut World, state: &str) -> LocalSegment {
    if state == "E" {
        let (is_auto, is_private, is_empty, has_callback) = (false, false, true, false);
        let empty =
            Call::CreateSegment { id: SegmentId(7), is_auto, bytes: 0, is_private, is_empty, has_callback };
        return local_of(world.now(0, empty).unwrap());
    }
    let local = local_of(world.now(0, create(7, 64)).unwrap());
    let steps: &[Call] = match state {
        "NP" => &[],
        "P" => &[Call::Prepare(local, adapter(0))],
        "M" => &[Call::Prepare(local, adapter(0)), Call::MapLocal(local, WHOLE)],
        "A" | "C" => &[Call::Prepare(local, adapter(0)), Call::SetAvailable(local, adapter(0))],
        other => panic!("no state is called {other}"),
    };
    for step in steps {
        world.now(0, *step).unwrap();
    }
    if state == "C" {
        world.now(1, connect(NODES[0], 7)).unwrap();
    }
    local
}

fn local_call(call: &str, local: LocalSegment) -> Call {
    match call {
        "prepare" => Call::Prepare(local, adapter(0)),
        "prepare-15" => Call::Prepare(local, adapter(15)),
        "available" => Call::SetAvailable(local, adapter(0)),
        "unavailable" => Call::SetUnavailable { local, adapter: adapter(0), is_forced: false },
        "unavailable-force" => Call::SetUnavailable { local, adapter: adapter(0), is_forced: true },
        "map" => Call::MapLocal(local, WHOLE),
        "map-beyond" => Call::MapLocal(local, BEYOND),
        "unmap" => Call::UnmapLocal(local),
        "register" => Call::Register { local, bytes: 64, is_shareable: true },
        "wait" => Call::WaitLocal { local, timeout_nanos: Some(0) },
        "remove" => Call::RemoveSegment { local, is_forced: false },
        "remove-force" => Call::RemoveSegment { local, is_forced: true },
        other => panic!("no call is called {other}"),
    }
}

/// In which state a segment is, by what calls answer that change nothing if they are refused.
fn local_state(world: &mut World, local: LocalSegment) -> &'static str {
    let mut answer = |call: &str| code(world.now(0, local_call(call, local)));
    match (&*answer("map-beyond"), &*answer("unavailable"), &*answer("unmap")) {
        ("IllegalParameter", ..) => "gone",
        ("IllegalOperation", ..) => "E",
        (_, "SegmentNotPrepared", _) => "NP",
        (_, "ok", _) => "A",
        (_, _, "ok") => "M",
        _ => "P",
    }
}

/// Makes each call of a table in each state, and looks at its answer and at the state that follows.
fn check_table<H: Copy>(
    table: &str,
    who: usize,
    begin_in: fn(&mut World, &str) -> H,
    call_of: fn(&str, H) -> Call,
    state_of: fn(&mut World, H) -> &'static str,
    unseen: &[&str],
) {
    for (call, state, cell) in cells(table) {
        let mut world = two();
        let handle = begin_in(&mut world, &state);
        let (expected, next) = cell.split_once('>').unwrap_or((&cell, ""));
        let answered = code(world.now(who, call_of(&call, handle)));
        assert_eq!(answered, expected, "{call} in state {state}");
        let after = state_of(&mut world, handle);
        // What was mapped already and is mapped once more is in no other state, for what can be asked without changing anything.
        let stays = next.is_empty() && !unseen.contains(&&*state) && call != "map";
        let expected = if stays { &*state } else { next };
        assert!(expected.is_empty() || after == expected, "after {call} in state {state}: {after}");
    }
}

#[test]
fn calls_on_segments_of_a_member_answer_as_the_table_says() {
    // For what its member can ask without changing anything, a segment that is connected to is one that is available.
    check_table(LOCAL, 0, local_in, local_call, local_state, &["C"]);
}

fn remote_in(world: &mut World, state: &str) -> RemoteSegment {
    let local = local_in(world, if state == "C" { "P" } else { "A" });
    if state == "C" {
        let (node, id, adapter) = (NODES[0], SegmentId(7), adapter(0));
        let (timeout_nanos, is_asynchronous, has_callback) = (None, true, false);
        let connecting = Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous, has_callback };
        return remote_of(world.now(1, connecting).unwrap());
    }
    let remote = remote_of(world.now(1, connect(NODES[0], 7)).unwrap());
    let steps: &[(usize, Call)] = match state {
        "O" => &[],
        "M" => &[(1, Call::MapRemote(remote, WHOLE))],
        "N" => &[(0, Call::SetLink(adapter(0), false))],
        "L" => &[(0, Call::RemoveSegment { local, is_forced: true })],
        other => panic!("no state is called {other}"),
    };
    for (who, step) in steps {
        world.now(*who, *step).unwrap();
    }
    remote
}

fn remote_call(call: &str, remote: RemoteSegment) -> Call {
    match call {
        "map" => Call::MapRemote(remote, WHOLE),
        "map-beyond" => Call::MapRemote(remote, BEYOND),
        "unmap" => Call::UnmapRemote(remote),
        "start" => Call::StartSequence(remote),
        "wait" => Call::WaitRemote { remote, timeout_nanos: Some(0) },
        "disconnect" => Call::Disconnect(remote),
        other => panic!("no call is called {other}"),
    }
}

fn remote_state(world: &mut World, remote: RemoteSegment) -> &'static str {
    let mut answer = |call: &str| code(world.now(1, remote_call(call, remote)));
    match (&*answer("start"), &*answer("unmap")) {
        ("IllegalParameter", _) => "gone",
        ("SegmentNotConnected", _) => "C",
        ("Ok", "ok") => "M",
        ("Ok", _) => "O",
        ("Pending", _) => "N",
        _ => "L",
    }
}

#[test]
fn calls_on_connections_answer_as_the_table_says() {
    check_table(REMOTE, 1, remote_in, remote_call, remote_state, &[]);
}

#[test]
fn making_a_segment_is_refused_for_what_is_wrong_with_it() {
    let mut world = two();
    assert_eq!(world.now(0, create(7, 0)), Err(Refusal::SizeAlignment));
    assert_eq!(world.now(0, create(7, u64::MAX)), Err(Refusal::Nospc));
    let (id, bytes, has_callback) = (SegmentId(7), 64, false);
    let made = |is_auto, is_private, is_empty| Call::CreateSegment {
        id,
        is_auto,
        bytes,
        is_private,
        is_empty,
        has_callback,
    };
    assert_eq!(world.now(0, made(true, true, false)), Err(Refusal::IllegalFlag));
    world.now(0, create(7, 64)).unwrap();
    assert_eq!(world.now(0, create(7, 64)), Err(Refusal::SegmentidUsed));
    // Another node has numbers of its own; a private segment has none; the next free one is taken.
    world.now(1, create(7, 64)).unwrap();
    let private = local_of(world.now(0, made(false, true, false)).unwrap());
    world.now(0, Call::Prepare(private, adapter(0))).unwrap();
    assert_eq!(world.now(0, Call::SetAvailable(private, adapter(0))), Err(Refusal::IllegalOperation));
    let Ok(Value::Local(_, SegmentId(8))) = world.now(0, made(true, false, false)) else {
        panic!("8 is free")
    };
    // Memory that nobody else can map makes no segment available.
    let empty = local_of(
        world
            .now(
                0,
                Call::CreateSegment {
                    id: SegmentId(9),
                    is_auto: false,
                    bytes: 0,
                    is_private: false,
                    is_empty: true,
                    has_callback,
                },
            )
            .unwrap(),
    );
    world.now(0, Call::Register { local: empty, bytes: 64, is_shareable: false }).unwrap();
    world.now(0, Call::Prepare(empty, adapter(0))).unwrap();
    assert_eq!(world.now(0, Call::SetAvailable(empty, adapter(0))), Err(Refusal::IllegalOperation));
}

#[test]
fn connecting_is_refused_with_its_reason() {
    let mut world = two();
    let local = local_in(&mut world, "P");
    assert_eq!(world.now(1, connect(NodeId(99), 7)), Err(Refusal::NoSuchNodeid));
    assert_eq!(world.now(1, connect(NODES[2], 7)), Err(Refusal::NodeNotResponding));
    assert_eq!(world.now(1, connect(NODES[0], 6)), Err(Refusal::NoSuchSegment));
    assert_eq!(world.now(1, connect(NODES[0], 7)), Err(Refusal::ConnectionRefused));
    world.now(0, Call::SetAvailable(local, adapter(0))).unwrap();
    world.now(0, Call::SetLink(adapter(0), false)).unwrap();
    assert_eq!(world.now(1, connect(NODES[0], 7)), Err(Refusal::NoRemoteLinkAccess));
    world.now(1, Call::SetLink(adapter(0), false)).unwrap();
    assert_eq!(world.now(1, connect(NODES[0], 7)), Err(Refusal::NoLinkAccess));
    world.now(0, Call::SetLink(adapter(0), true)).unwrap();
    world.now(1, Call::SetLink(adapter(0), true)).unwrap();
    let Ok(Value::Remote(remote, 64)) = world.now(1, connect(NODES[0], 7)) else { panic!("it is available") };
    let map = world.now(1, Call::MapRemote(remote, Part { offset: 8, bytes: 8 }));
    let Ok(Value::MapRemote(_, memory, part)) = map else { panic!("it is connected: {map:?}") };
    assert_eq!((memory, part), (Memory::Bank { offset: 0 }, Part { offset: 8, bytes: 8 }));
    world.kill(0);
    assert_eq!(world.now(1, connect(NODES[0], 7)), Err(Refusal::NodeNotResponding));
}

#[test]
fn connecting_waits_until_the_segment_is_available_or_the_time_is_over() {
    let mut world = two();
    let local = local_in(&mut world, "P");
    let waiting = |timeout| {
        let (node, id, adapter) = (NODES[0], SegmentId(7), adapter(0));
        Call::Connect {
            node,
            id,
            adapter,
            timeout_nanos: timeout,
            is_asynchronous: false,
            has_callback: false,
        }
    };
    let Outcome::Waiting(short) = world.call(1, waiting(Some(3_000_000))) else { panic!("not available") };
    let Outcome::Waiting(long) = world.call(1, waiting(None)) else { panic!("not available") };
    // It asks again about once a millisecond, as it says.
    for _ in 0..3 {
        assert!(world.outcome(1, short).is_none());
        let at = world.processes[1].member.wake_at().unwrap();
        assert!(at > world.now && at.0 <= world.now.0 + 1_000_000, "{at:?} after {:?}", world.now);
        world.now = at;
        world.look(1);
    }
    assert_eq!(world.outcome(1, short), Some(Err(Refusal::TimeoutNotAvailable)));
    world.now(0, Call::SetAvailable(local, adapter(0))).unwrap();
    world.now = world.processes[1].member.wake_at().unwrap();
    world.look(1);
    assert!(matches!(world.outcome(1, long), Some(Ok(Value::Remote(_, 64)))));
    assert_eq!(world.processes[1].member.wake_at(), None);
}

#[test]
fn cancelled_attempts_end_the_calls_that_wait_and_asynchronous_ones_go_on() {
    let mut world = two();
    let local = local_in(&mut world, "P");
    let connecting = |is_asynchronous| {
        let (node, id, adapter) = (NODES[0], SegmentId(7), adapter(0));
        Call::Connect {
            node,
            id,
            adapter,
            timeout_nanos: None,
            is_asynchronous,
            has_callback: is_asynchronous,
        }
    };
    let Outcome::Waiting(waiting) = world.call(1, connecting(false)) else { panic!("not available") };
    let asynchronous = remote_of(world.now(1, connecting(true)).unwrap());
    world.processes[1].member.cancel_attempts();
    world.look(1);
    assert_eq!(world.outcome(1, waiting), Some(Err(Refusal::Cancelled)));
    world.now(0, Call::SetAvailable(local, adapter(0))).unwrap();
    world.now = world.processes[1].member.wake_at().unwrap();
    world.look(1);
    let told = std::mem::take(&mut world.processes[1].told);
    assert_eq!(told, [Told::OfRemote(asynchronous, RemoteEvent::Connect(64))]);
}

#[test]
fn asynchronous_connection_is_an_event_whether_it_is_made_or_not() {
    let mut world = two();
    local_in(&mut world, "A");
    let connecting = |id| {
        let (node, id, adapter) = (NODES[0], SegmentId(id), adapter(0));
        Call::Connect { node, id, adapter, timeout_nanos: Some(0), is_asynchronous: true, has_callback: true }
    };
    let made = remote_of(world.now(1, connecting(7)).unwrap());
    let not_made = remote_of(world.now(1, connecting(6)).unwrap());
    let told = std::mem::take(&mut world.processes[1].told);
    let expected = [
        Told::OfRemote(made, RemoteEvent::Connect(64)),
        Told::OfRemote(not_made, RemoteEvent::NotMade(Refusal::NoSuchSegment)),
    ];
    assert_eq!(told, expected);
    assert_eq!(world.now(1, Call::Disconnect(not_made)), Ok(Value::Nothing));
}

#[test]
fn waits_end_with_an_event_their_time_or_the_removal() {
    let mut world = two();
    let local = local_in(&mut world, "A");
    let wait = |timeout_nanos| Call::WaitLocal { local, timeout_nanos };
    let Outcome::Waiting(first) = world.call(0, wait(None)) else { panic!("nothing happened") };
    let Outcome::Waiting(second) = world.call(0, wait(Some(5))) else { panic!("nothing happened") };
    let Outcome::Waiting(third) = world.call(0, wait(None)) else { panic!("nothing happened") };
    let remote = remote_of(world.now(1, connect(NODES[0], 7)).unwrap());
    let Outcome::Waiting(of_remote) = world.call(1, Call::WaitRemote { remote, timeout_nanos: None }) else {
        panic!("nothing happened")
    };
    // Whoever listens is rung, and told then.
    assert_eq!((world.rings.len(), world.outcome(0, first)), (1, None));
    world.ring(0);
    assert_eq!(world.outcome(0, first), Some(Ok(Value::LocalEvent(LocalEvent::Connect(NODES[1])))));
    assert_eq!(world.processes[0].member.wake_at(), Some(Nanos(5)));
    world.now = Nanos(5);
    world.look(0);
    assert_eq!(world.outcome(0, second), Some(Err(Refusal::Timeout)));
    world.now(0, Call::RemoveSegment { local, is_forced: true }).unwrap();
    assert_eq!(world.outcome(0, third), Some(Err(Refusal::Cancelled)));
    world.ring(0);
    assert_eq!(world.outcome(1, of_remote), Some(Ok(Value::RemoteEvent(RemoteEvent::Lost))));
    let Outcome::Waiting(last) = world.call(1, Call::WaitRemote { remote, timeout_nanos: None }) else {
        panic!("it is told once")
    };
    world.now(1, Call::Disconnect(remote)).unwrap();
    assert_eq!(world.outcome(1, last), Some(Err(Refusal::Cancelled)));
}

#[test]
fn nobody_waits_for_what_a_callback_is_told() {
    let mut world = two();
    let (id, is_auto, bytes, is_private, is_empty) = (SegmentId(7), false, 64, false, false);
    let with_callback = Call::CreateSegment { id, is_auto, bytes, is_private, is_empty, has_callback: true };
    let local = local_of(world.now(0, with_callback).unwrap());
    world.now(0, Call::Prepare(local, adapter(0))).unwrap();
    world.now(0, Call::SetAvailable(local, adapter(0))).unwrap();
    let refused = world.now(0, Call::WaitLocal { local, timeout_nanos: None });
    assert_eq!(refused, Err(Refusal::IllegalOperation));
    let (node, adapter, timeout_nanos) = (NODES[0], adapter(0), Some(0));
    let connect =
        Call::Connect { node, id, adapter, timeout_nanos, is_asynchronous: false, has_callback: true };
    let remote = remote_of(world.now(1, connect).unwrap());
    let refused = world.now(1, Call::WaitRemote { remote, timeout_nanos: None });
    assert_eq!(refused, Err(Refusal::IllegalOperation));
}

#[test]
fn sequence_finds_what_happened_since_it_began() {
    let mut world = two();
    let local = local_in(&mut world, "A");
    let remote = remote_of(world.now(1, connect(NODES[0], 7)).unwrap());
    let Ok(Value::Started(SequenceStatus::Ok, Some(start))) = world.now(1, Call::StartSequence(remote))
    else {
        panic!("both links are up")
    };
    let own = world.processes[1].board.clone();
    let (_, view) = world.processes[1].member.view(remote, &own).unwrap().unwrap();
    let mut finds = |who, call| {
        world.now(who, call).unwrap();
        let found = world.now(1, Call::CheckSequence(remote, start)).unwrap();
        assert_eq!(found, Value::Checked(view.check(start)), "the member and its words agree");
        found
    };
    // A segment that nobody else can connect to is as good as before.
    let unavailable = |is_forced| Call::SetUnavailable { local, adapter: adapter(0), is_forced };
    assert_eq!(finds(0, unavailable(false)), Value::Checked(SequenceStatus::Ok));
    assert_eq!(finds(0, Call::SetLink(adapter(1), false)), Value::Checked(SequenceStatus::Ok));
    assert_eq!(finds(0, Call::SetLink(adapter(0), false)), Value::Checked(SequenceStatus::Pending));
    assert_eq!(finds(0, Call::SetLink(adapter(0), true)), Value::Checked(SequenceStatus::Retriable));
    assert_eq!(finds(1, Call::SetLink(adapter(0), false)), Value::Checked(SequenceStatus::Pending));
    assert_eq!(finds(0, Call::SetAvailable(local, adapter(0))), Value::Checked(SequenceStatus::Pending));
    assert_eq!(finds(0, unavailable(true)), Value::Checked(SequenceStatus::NotRetriable));
}

#[test]
fn member_that_leaves_or_dies_loses_its_connections_for_ever() {
    for dies in [false, true] {
        let mut world = two();
        local_in(&mut world, "A");
        let remote = remote_of(world.now(1, connect(NODES[0], 7)).unwrap());
        if dies {
            world.kill(0);
            assert_eq!(remote_state(&mut world, remote), "O", "nobody knows yet");
            world.learn(0);
        } else {
            world.processes[0].member.leave();
            assert_eq!(world.now(1, connect(NODES[0], 7)), Err(Refusal::NodeNotResponding));
        }
        assert_eq!(remote_state(&mut world, remote), "L");
        let outcome = world.now(1, Call::WaitRemote { remote, timeout_nanos: None });
        assert_eq!(outcome, Ok(Value::RemoteEvent(RemoteEvent::Lost)));
        world.now(1, Call::Disconnect(remote)).unwrap();
    }
}

#[test]
fn connection_that_was_forced_off_and_its_successor_are_counted_apart() {
    let mut world = two();
    let local = local_in(&mut world, "A");
    let old = remote_of(world.now(1, connect(NODES[0], 7)).unwrap());
    world.now(0, Call::SetUnavailable { local, adapter: adapter(0), is_forced: true }).unwrap();
    world.now(0, Call::SetAvailable(local, adapter(0))).unwrap();
    let new = remote_of(world.now(1, connect(NODES[0], 7)).unwrap());
    assert_eq!((remote_state(&mut world, old), remote_state(&mut world, new)), ("L", "O"));
    world.now(1, Call::Disconnect(old)).unwrap();
    let remove = Call::RemoveSegment { local, is_forced: false };
    assert_eq!(world.now(0, remove), Err(Refusal::Busy));
    world.now(1, Call::Disconnect(new)).unwrap();
    assert_eq!(world.now(0, remove), Ok(Value::Nothing));
}

#[test]
fn entry_is_of_another_incarnation_for_each_segment_and_what_is_lost_stays_lost() {
    let mut world = two();
    let state = |world: &World| world.processes[0].board.0.borrow()[&32];
    let local = local_in(&mut world, "A");
    let first = state(&world);
    world.now(0, Call::RemoveSegment { local, is_forced: false }).unwrap();
    // Whoever has read the first entry and claims it now is refused, though the next segment looks the same.
    let local = local_in(&mut world, "A");
    let second = state(&world);
    assert_eq!((first as u32, second as u32), (1 << 16 | 1, 1 << 16 | 1));
    assert_ne!(first >> 32, second >> 32);
    let remote = remote_of(world.now(1, connect(NODES[0], 7)).unwrap());
    world.now(0, Call::RemoveSegment { local, is_forced: true }).unwrap();
    assert_eq!(remote_state(&mut world, remote), "L");
    // A member that says that the segment is there again is not believed.
    world.processes[0].board.0.borrow_mut().insert(32, second);
    assert_eq!(remote_state(&mut world, remote), "L");
}

#[test]
fn memory_of_a_segment_that_was_taken_from_its_users_is_given_back_once_more_when_they_leave() {
    let mut world = two();
    let local = local_in(&mut world, "A");
    let remote = remote_of(world.now(1, connect(NODES[0], 7)).unwrap());
    world.now(0, Call::RemoveSegment { local, is_forced: true }).unwrap();
    assert_eq!(world.processes[0].punched, [(0, 64)]);
    // Neither the offset nor the entry is another segment's meanwhile.
    let next = local_in(&mut world, "A");
    let map = world.now(0, Call::MapLocal(next, WHOLE)).unwrap();
    assert_eq!(map, Value::MapLocal(Memory::Bank { offset: 64 << 10 }, WHOLE));
    assert_eq!(remote_state(&mut world, remote), "L");
    world.look(0);
    assert_eq!(world.processes[0].punched, [(0, 64)]);
    world.now(1, Call::Disconnect(remote)).unwrap();
    world.look(0);
    assert_eq!(world.processes[0].punched, [(0, 64), (0, 64)]);
}

#[test]
fn connection_that_was_forced_off_keeps_the_entry_though_its_member_connects_once_more() {
    let mut world = two();
    let local = local_in(&mut world, "A");
    let old = remote_of(world.now(1, connect(NODES[0], 7)).unwrap());
    world.now(1, Call::MapRemote(old, WHOLE)).unwrap();
    world.now(0, Call::SetUnavailable { local, adapter: adapter(0), is_forced: true }).unwrap();
    world.now(0, Call::SetAvailable(local, adapter(0))).unwrap();
    let new = remote_of(world.now(1, connect(NODES[0], 7)).unwrap());
    world.now(1, Call::Disconnect(new)).unwrap();
    // Nobody is connected to what the segment is now, so it is removed; the old map can still store into its memory.
    world.now(0, Call::RemoveSegment { local, is_forced: false }).unwrap();
    assert_eq!(world.slot_of(0, 7), None);
    local_in(&mut world, "A");
    assert_eq!(world.slot_of(0, 7), Some(Slot(1)), "the entry is not another segment's");
    world.look(0);
    assert_eq!(world.processes[0].punched, [(0, 64)]);
    world.now(1, Call::UnmapRemote(old)).unwrap();
    world.now(1, Call::Disconnect(old)).unwrap();
    world.look(0);
    assert_eq!(world.processes[0].punched, [(0, 64), (0, 64)]);
    world.now(0, create(8, 64)).unwrap();
    assert_eq!(world.slot_of(0, 8), Some(Slot(0)));
}

fn entry_is_found_though_its_member_never_looks(next: Call) {
    let mut world = two();
    let local = local_in(&mut world, "A");
    let remote = remote_of(world.now(1, connect(NODES[0], 7)).unwrap());
    // Every other entry is that of a segment whose name nobody has put yet.
    for id in 8..8 + u32::from(u16::MAX) {
        world.processes[0].member.call(create(id, 64), Nanos(0)).unwrap();
    }
    let remove = Call::RemoveSegment { local, is_forced: true };
    assert_eq!(world.processes[0].member.call(remove, Nanos(0)), Ok(Done::Now(Value::Nothing)));
    assert_eq!(world.processes[0].member.call(next, Nanos(0)), Err(Refusal::MaxEntries));
    world.now(1, Call::Disconnect(remote)).unwrap();
    assert!(matches!(world.processes[0].member.call(next, Nanos(0)), Ok(Done::Wait(_))));
    let wants = std::iter::from_fn(|| world.processes[0].member.next_want());
    let punched = wants.filter(|want| *want == Want::Punch { offset: 0, bytes: 64 }).count();
    assert_eq!(punched, 2, "the memory of the segment is given back once more");
}

#[test]
fn entry_is_found_for_a_segment_though_its_member_never_looks() {
    entry_is_found_though_its_member_never_looks(create(7, 64));
}

#[test]
fn entry_is_found_for_an_interrupt_though_its_member_never_looks() {
    let (number, kind) = (Some(InterruptNumber(7)), InterruptKind::Plain);
    entry_is_found_though_its_member_never_looks(Call::CreateInterrupt { number, kind });
}

#[test]
fn claims_beyond_belief_are_those_of_one_member() {
    let mut world = two();
    let (id, is_auto, bytes, is_private, is_empty) = (SegmentId(7), false, 64, false, false);
    let with_callback = Call::CreateSegment { id, is_auto, bytes, is_private, is_empty, has_callback: true };
    let local = local_of(world.now(0, with_callback).unwrap());
    // As many connections as there are bits for and as many that have ended, and then nonsense.
    let lies = Words::default();
    lies.0.borrow_mut().insert(0, 1 << 32 | 0xffff_ffff);
    world.processes[0].member.admit(NODES[2], lies.clone());
    world.look(0);
    let connected = std::mem::take(&mut world.processes[0].told);
    assert_eq!(connected.len(), 3 * 1024);
    lies.0.borrow_mut().insert(0, u64::MAX);
    world.look(0);
    assert_eq!(world.processes[0].told.len(), 1024);
    assert_eq!(world.now(0, Call::RemoveSegment { local, is_forced: false }), Ok(Value::Nothing));
}

#[test]
fn attempt_that_is_made_once_ends_where_a_member_never_answers() {
    let mut world = two();
    let member = &mut world.processes[1].member;
    let began = Nanos(5);
    let Ok(Done::Wait(ticket)) = member.call(connect(NODES[0], 7), began) else { panic!("it is asked for") };
    let Some(Want::Name(ask, _)) = member.next_want() else { panic!("the name is looked for") };
    let candidates = vec![Candidate { member: MemberNumber(0), slot: Slot(0) }];
    member.answered(ask, Answer::Found(Found { is_node_alive: true, candidates }), began);
    assert!(matches!(member.next_want(), Some(Want::Reach { .. })));
    let end = member.wake_at().unwrap();
    assert_eq!(end, Nanos(began.0 + FIRST_CONTACT_NANOS));
    member.look(Nanos(end.0 - 1));
    assert!(end > began && member.next_event().is_none());
    member.look(end);
    let told = member.next_event();
    let refused = matches!(told, Some(Told::Outcome(of, Err(Refusal::NodeNotResponding))) if of == ticket);
    assert!(refused, "{told:?}");
}
