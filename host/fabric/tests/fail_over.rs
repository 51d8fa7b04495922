//! Connections by any adapter of two nodes: what every state of the links, and every change from one to another, does to them.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod world;

use beeline_fabric::*;
use world::*;

/// Which links are up: a bit for each adapter of the owner, then of the user.
type Links = u8;

const ALL_UP: Links = 0b1111;

/// The adapter that is gone by, the first with both ends up.
fn path(links: Links) -> Option<u8> {
    (0..2).find(|adapter| links >> adapter & 1 == 1 && links >> (adapter + 2) & 1 == 1)
}

/// Takes links from one state to another one, each that differs once: up before others go down, unless none is in use in the end.
fn change(world: &mut World, from: Links, to: Links) {
    let goes_up = |link: &u32| to >> link & 1 == 1;
    let (up, down): (Vec<_>, _) = (0..4).filter(|link| (from ^ to) >> link & 1 == 1).partition(goes_up);
    let in_order = if path(to).is_some() { [up, down] } else { [down, up] };
    for link in in_order.concat() {
        let set = Call::SetLink(adapter(link % 2), to >> link & 1 == 1);
        world.now(usize::from(link >= 2), set).unwrap();
    }
    while !world.rings.is_empty() {
        world.ring(0);
    }
}

/// A segment that is available by both adapters.
fn owned() -> (World, LocalSegment) {
    let mut world = World::of(&[NODES[0], NODES[1]]);
    let local = local_of(world.now(0, create(7, 64)).unwrap());
    world.now(0, Call::Prepare(local, AdapterNumber::ANY)).unwrap();
    world.now(0, Call::SetAvailable(local, AdapterNumber::ANY)).unwrap();
    (world, local)
}

fn connect_by(by: AdapterNumber, has_callback: bool) -> Call {
    let (node, id, timeout_nanos, is_asynchronous) = (NODES[0], SegmentId(7), Some(0), false);
    Call::Connect { node, id, adapter: by, timeout_nanos, is_asynchronous, has_callback }
}

fn started(world: &mut World, remote: RemoteSegment) -> (SequenceStatus, Option<SequenceStart>) {
    match world.now(1, Call::StartSequence(remote)) {
        Ok(Value::Started(status, start)) => (status, start),
        other => panic!("{other:?}"),
    }
}

fn checked(world: &mut World, remote: RemoteSegment, start: SequenceStart) -> SequenceStatus {
    match world.now(1, Call::CheckSequence(remote, start)) {
        Ok(Value::Checked(status)) => status,
        other => panic!("{other:?}"),
    }
}

fn events(world: &mut World, remote: RemoteSegment) -> Vec<RemoteEvent> {
    world.look(1);
    let told = std::mem::take(&mut world.processes[1].told);
    let of_remote = |told| match told {
        Told::OfRemote(of, event) if of == remote => Some(event),
        _ => None,
    };
    told.into_iter().filter_map(of_remote).collect()
}

#[test]
fn who_names_no_adapter_connects_where_any_is_up_at_both_ends() {
    for links in 0..=ALL_UP {
        let (mut world, _) = owned();
        change(&mut world, ALL_UP, links);
        let outcome = world.now(1, connect_by(AdapterNumber::ANY, false)).map(|_| ());
        let expected = match (path(links), links >> 2) {
            (Some(_), _) => Ok(()),
            (None, 0) => Err(Refusal::NoLinkAccess),
            (None, _) => Err(Refusal::NoRemoteLinkAccess),
        };
        assert_eq!(outcome, expected, "{links:04b}");
        let probed = world.processes[1].member.probe(NODES[0], AdapterNumber::ANY);
        assert_eq!(probed, expected, "{links:04b}");
    }
}

#[test]
fn sequence_goes_on_by_another_adapter_and_says_that_its_stores_may_be_lost() {
    for from in 0..=ALL_UP {
        for to in 0..=ALL_UP {
            let (mut world, _) = owned();
            let remote = remote_of(world.now(1, connect_by(AdapterNumber::ANY, true)).unwrap());
            change(&mut world, ALL_UP, from);
            events(&mut world, remote);
            let (status, start) = started(&mut world, remote);
            let begins = if path(from).is_some() { SequenceStatus::Ok } else { SequenceStatus::Pending };
            assert_eq!((status, start.is_some()), (begins, path(from).is_some()), "{from:04b}");
            change(&mut world, from, to);
            if let Some(start) = start {
                let in_use = path(from).map_or(0, |adapter| 0b101 << adapter);
                let expected = match path(to) {
                    _ if (from ^ to) & in_use == 0 => SequenceStatus::Ok,
                    Some(_) => SequenceStatus::Retriable,
                    None => SequenceStatus::Pending,
                };
                assert_eq!(checked(&mut world, remote, start), expected, "{from:04b} {to:04b}");
            }
            let told = match (path(from), path(to)) {
                (Some(_), None) => vec![RemoteEvent::NotOperational],
                (None, Some(_)) => vec![RemoteEvent::Operational],
                _ => Vec::new(),
            };
            assert_eq!(events(&mut world, remote), told, "{from:04b} {to:04b}");
        }
    }
}

#[test]
fn who_names_an_adapter_is_told_of_its_links_alone() {
    let (mut world, _) = owned();
    let remote = remote_of(world.now(1, connect_by(adapter(1), true)).unwrap());
    let (_, start) = started(&mut world, remote);
    change(&mut world, ALL_UP, 0b1010);
    assert_eq!(checked(&mut world, remote, start.unwrap()), SequenceStatus::Ok);
    assert_eq!(events(&mut world, remote), []);
    change(&mut world, 0b1010, 0b0111);
    assert_eq!(checked(&mut world, remote, start.unwrap()), SequenceStatus::Pending);
    assert_eq!(events(&mut world, remote), [RemoteEvent::NotOperational]);
    assert_eq!(world.now(1, connect_by(adapter(1), false)), Err(Refusal::NoLinkAccess));
}

#[test]
fn connection_goes_by_the_adapters_alone_that_its_segment_was_available_by() {
    let (mut world, local) = owned();
    let unavailable = |by| Call::SetUnavailable { local, adapter: by, is_forced: false };
    world.now(0, unavailable(adapter(0))).unwrap();
    let remote = remote_of(world.now(1, connect_by(AdapterNumber::ANY, false)).unwrap());
    world.now(0, Call::SetAvailable(local, adapter(0))).unwrap();
    change(&mut world, ALL_UP, 0b0101);
    assert_eq!(started(&mut world, remote), (SequenceStatus::Pending, None));
    world.now(0, unavailable(AdapterNumber::ANY)).unwrap();
    assert_eq!(world.now(0, unavailable(AdapterNumber::ANY)), Err(Refusal::IllegalOperation));
    assert_eq!(world.now(1, connect_by(AdapterNumber::ANY, false)), Err(Refusal::ConnectionRefused));
}

#[test]
fn trigger_reaches_its_interrupt_by_any_adapter() {
    let mut world = World::of(&[NODES[0], NODES[1]]);
    let (number, kind) = (Some(InterruptNumber(5)), InterruptKind::Plain);
    world.now(0, Call::CreateInterrupt { number, kind }).unwrap();
    let connect = Call::ConnectInterrupt {
        node: NODES[0],
        number: InterruptNumber(5),
        has_data: false,
        adapter: AdapterNumber::ANY,
        timeout_nanos: Some(0),
    };
    let Ok(Value::Trigger(remote)) = world.now(1, connect) else { panic!("not connected") };
    let own = world.processes[1].board.clone();
    let (_, trigger) = world.processes[1].member.trigger(remote, &own).unwrap();
    let mut before = ALL_UP;
    for links in 0..=ALL_UP {
        change(&mut world, before, links);
        assert_eq!(trigger.check().is_ok(), path(links).is_some(), "{links:04b}");
        before = links;
    }
}
