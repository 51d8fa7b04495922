//! Unmatched, late and replayed frames change nothing but counters.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use beeline_datagram::{Address, ConnectError, Down, Event, Port};
use beeline_spec::formats::{datagram_frame as f, datagram_kind as kind, datagram_reset as reset};
use support::{Fate, Impairments, Net, Side, TestEndpoint, endpoint, mac, pair, run_until};

const UNIMPAIRED: [Impairments; 2] = [Impairments::UNIMPAIRED; 2];
const SECOND: u64 = 1_000_000_000;

fn run(net: &support::Shared, sides: &mut [&mut Side], ns: u64) {
    let until = net.lock().unwrap().now + ns;
    run_until(net, sides, until, |_| false);
}

fn put(frame: &mut [u8], at: usize, value: u64, bytes: usize) {
    frame[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
}

fn get(frame: &[u8], at: usize, bytes: usize) -> u64 {
    let mut value = [0; 8];
    value[..bytes].copy_from_slice(&frame[at..at + bytes]);
    u64::from_le_bytes(value)
}

/// A frame from station 0 to station 1 that station 0 sent, the last one of this kind.
fn last_of(net: &support::Shared, wanted: u8) -> Vec<u8> {
    let net = net.lock().unwrap();
    let log = net.log.as_ref().unwrap();
    log.iter().rev().find(|(from, frame)| *from == 0 && frame[f::KIND_OFFSET] == wanted).unwrap().1.clone()
}

/// Two sides that said a word each, every frame of which was recorded.
fn talked() -> (support::Shared, Side, Side) {
    let net = Net::new(1, UNIMPAIRED);
    net.lock().unwrap().log = Some(Vec::new());
    let (mut client, mut server) = pair(&net, |config| config);
    (client.to_send, server.to_send) = (5, 5);
    run(&net, &mut [&mut client, &mut server], SECOND / 100);
    assert_eq!((client.received, server.received), (5, 5));
    (net, client, server)
}

fn drain(endpoint: &mut TestEndpoint) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..200 {
        events.extend(endpoint.poll().unwrap());
    }
    events
}

#[test]
fn a_recorded_conversation_played_again_changes_nothing() {
    let (net, mut client, mut server) = talked();
    let log = net.lock().unwrap().log.take().unwrap();
    for (from, frame) in &log {
        net.lock().unwrap().inject(1 - from, frame, 10);
    }
    run(&net, &mut [&mut client, &mut server], SECOND);
    assert_eq!((client.down, server.down, client.opened, server.opened), (None, None, 1, 1));
    assert_eq!((client.received, server.received), (5, 5));
    let stats = server.endpoint.stats(server.id.unwrap()).unwrap();
    assert_eq!(stats.duplicates, 5);
}

#[test]
fn a_conversation_that_ended_cannot_be_played_again() {
    let (net, mut client, mut server) = talked();
    client.endpoint.close(client.id.unwrap());
    run(&net, &mut [&mut client, &mut server], SECOND / 10);
    assert_eq!((client.down, server.down), (Some((Down::Closed, 0)), Some((Down::ClosedByPeer, 0))));
    let log = net.lock().unwrap().log.take().unwrap();
    for (from, frame) in log.iter().filter(|(from, _)| *from == 0) {
        net.lock().unwrap().inject(1 - from, frame, 10);
    }
    net.lock().unwrap().now += 1000;
    assert_eq!(drain(&mut server.endpoint), [], "the offer still holds, but it was taken up before");
    assert!(server.endpoint.endpoint_stats().ended_session >= 6);
    // Later the offer does not hold any more.
    net.lock().unwrap().now += 3600 * SECOND;
    for (from, frame) in log.iter().filter(|(from, _)| *from == 0) {
        net.lock().unwrap().inject(1 - from, frame, 10);
    }
    net.lock().unwrap().now += 1000;
    assert_eq!(drain(&mut server.endpoint), []);
}

#[test]
fn an_old_session_s_frames_do_not_end_a_new_one() {
    let (net, mut client, mut server) = talked();
    let old = net.lock().unwrap().log.take().unwrap();
    client.endpoint.close(client.id.unwrap());
    run(&net, &mut [&mut client, &mut server], SECOND / 10);
    let mut client = Side::new(client.endpoint, [3, 4], 5);
    let mut server = Side::new(server.endpoint, [4, 3], 5);
    client.id = Some(client.endpoint.connect(mac(1)).unwrap());
    run(&net, &mut [&mut client, &mut server], SECOND / 10);
    for (from, frame) in &old {
        net.lock().unwrap().inject(1 - from, frame, 10);
    }
    run(&net, &mut [&mut client, &mut server], SECOND);
    assert_eq!((client.down, server.down, client.received, server.received), (None, None, 5, 5));
    assert_eq!((client.opened, server.opened), (1, 1));
}

#[test]
fn opens_without_end_cost_no_connection() {
    let (net, mut client, mut server) = talked();
    let open = last_of(&net, kind::OPEN);
    for number in 0..10_000_u64 {
        let mut flood = open.clone();
        put(&mut flood, f::FROM_SESSION_OFFSET, number + 1, 8);
        put(&mut flood, f::FROM_PORT_OFFSET, number % 60_000 + 1, 2);
        net.lock().unwrap().inject(1, &flood, 10);
    }
    net.lock().unwrap().now += 1000;
    let events = drain(&mut server.endpoint);
    assert_eq!(events, []);
    while server.endpoint.endpoint_stats().opens < 10_001 {
        assert_eq!(drain(&mut server.endpoint), []);
    }
    assert_eq!(client.endpoint.connect(mac(3)).map(|_| ()), Ok(()));
    (client.to_send, server.to_send) = (10, 10);
    run(&net, &mut [&mut client, &mut server], SECOND / 100);
    assert_eq!((client.received, server.received), (10, 10));
}

#[test]
fn an_invented_confirmation_is_answered_by_a_reset() {
    let (net, _client, mut server) = talked();
    let mut invented = last_of(&net, kind::DATA);
    put(&mut invented, f::FROM_PORT_OFFSET, 9, 2);
    put(&mut invented, f::TO_SESSION_OFFSET, 0x1234_5678_9abc_def0, 8);
    let before = net.lock().unwrap().sent[1];
    net.lock().unwrap().inject(1, &invented, 10);
    net.lock().unwrap().now += 1000;
    assert_eq!(drain(&mut server.endpoint), []);
    assert_eq!(server.endpoint.endpoint_stats().unknown_session, 1);
    let net = net.lock().unwrap();
    let (_, answer) = net.log.as_ref().unwrap().last().unwrap();
    assert_eq!(net.sent[1] - before, 1);
    assert_eq!(
        (answer[f::KIND_OFFSET], get(answer, f::NUMBER_OFFSET, 4) as u8),
        (kind::RESET, reset::UNKNOWN)
    );
    assert_eq!(get(answer, f::FROM_SESSION_OFFSET, 8), 0x1234_5678_9abc_def0);
}

#[test]
fn a_reset_needs_both_sessions_and_a_reason_and_is_never_answered() {
    let (net, _client, mut server) = talked();
    let real = last_of(&net, kind::DATA);
    let mut resets = Vec::new();
    for (at, bytes) in [(f::TO_SESSION_OFFSET, 8), (f::FROM_SESSION_OFFSET, 8)] {
        let mut forged = real.clone();
        forged.truncate(f::BYTES);
        put(&mut forged, f::LENGTH_BYTES_OFFSET, 0, 2);
        forged[f::KIND_OFFSET] = kind::RESET;
        put(&mut forged, f::NUMBER_OFFSET, 1, 4);
        let value = get(&forged, at, bytes) ^ 1;
        put(&mut forged, at, value, bytes);
        resets.push(forged);
    }
    let mut unreasonable = resets[0].clone();
    let value = get(&unreasonable, f::TO_SESSION_OFFSET, 8) ^ 1;
    put(&mut unreasonable, f::TO_SESSION_OFFSET, value, 8);
    put(&mut unreasonable, f::NUMBER_OFFSET, 77, 4);
    resets.push(unreasonable);
    let before = net.lock().unwrap().sent[1];
    for frame in &resets {
        net.lock().unwrap().inject(1, frame, 10);
    }
    net.lock().unwrap().now += 1000;
    assert_eq!(drain(&mut server.endpoint), []);
    let stats = server.endpoint.endpoint_stats();
    assert_eq!((stats.unasked, stats.malformed, net.lock().unwrap().sent[1] - before), (2, 1, 0));
    // The same with the right reason ends it.
    let mut right = resets.pop().unwrap();
    put(&mut right, f::NUMBER_OFFSET, reset::UNKNOWN.into(), 4);
    net.lock().unwrap().inject(1, &right, 10);
    net.lock().unwrap().now += 1000;
    let id = server.id.unwrap();
    assert_eq!(drain(&mut server.endpoint), [Event::Closed { id, why: Down::Restarted, unacknowledged: 0 }]);
}

#[test]
fn wild_numbers_within_a_session_are_counted_and_dropped() {
    let (net, _client, mut server) = talked();
    let real = last_of(&net, kind::DATA);
    let id = server.id.unwrap();
    let acknowledged = get(&real, f::ACKNOWLEDGED_OFFSET, 4) as u32;
    let number = get(&real, f::NUMBER_OFFSET, 4) as u32;
    let send = |server: &mut Side, change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = real.clone();
        change(&mut frame);
        net.lock().unwrap().inject(1, &frame, 10);
        net.lock().unwrap().now += 1000;
        drain(&mut server.endpoint)
    };
    let wild = |server: &Side| server.endpoint.stats(id).unwrap().wild_acks;
    // More than was ever sent; by one, and by much.
    let sent = get(&real, f::TO_SESSION_OFFSET, 4) as u32;
    let most = sent.wrapping_add(5);
    for ahead in [1, 60, 1 << 20, (1 << 31) - 100] {
        let before = wild(&server);
        let value = most.wrapping_add(ahead);
        assert_eq!(send(&mut server, &|f| put(f, f::ACKNOWLEDGED_OFFSET, value.into(), 4)), []);
        assert_eq!(wild(&server), before + 1, "{ahead} ahead of what was sent");
    }
    for bit in [0, 1, 63] {
        let before = wild(&server);
        assert_eq!(
            send(&mut server, &|f| {
                put(f, f::ACKNOWLEDGED_OFFSET, most.into(), 4);
                put(f, f::SELECTIVE_OFFSET, 1 << bit, 8);
            }),
            []
        );
        assert_eq!(wild(&server), before + 1, "bit {bit} names what was never sent");
    }
    // Behind: an old acknowledgement, which says nothing new.
    assert_eq!(
        send(&mut server, &|f| put(f, f::ACKNOWLEDGED_OFFSET, acknowledged.wrapping_sub(1000).into(), 4)),
        []
    );
    // Messages beyond the room, and from the past.
    let beyond = server.endpoint.stats(id).unwrap().beyond;
    for ahead in [65_u32, 1000, 1 << 30] {
        assert_eq!(
            send(&mut server, &|f| put(f, f::NUMBER_OFFSET, number.wrapping_add(ahead).into(), 4)),
            []
        );
    }
    assert_eq!(server.endpoint.stats(id).unwrap().beyond, beyond + 3);
    // A message longer than this side's frames, out of order so that it would have to be held.
    let long = send(&mut server, &|frame| {
        frame.resize(f::BYTES + 1459, 0);
        put(frame, f::LENGTH_BYTES_OFFSET, 1459, 2);
        put(frame, f::NUMBER_OFFSET, number.wrapping_add(3).into(), 4);
    });
    assert_eq!((long, server.endpoint.stats(id).unwrap().beyond), (vec![], beyond + 4));
    let duplicates = server.endpoint.stats(id).unwrap().duplicates;
    assert_eq!(send(&mut server, &|f| put(f, f::NUMBER_OFFSET, number.wrapping_sub(1000).into(), 4)), []);
    assert_eq!(server.endpoint.stats(id).unwrap().duplicates, duplicates + 1);
}

#[test]
fn a_peer_that_takes_back_room_or_names_everything_holds_up_itself_only() {
    let (net, _client, mut server) = talked();
    let mut frame = last_of(&net, kind::DATA);
    let id = server.id.unwrap();
    frame.truncate(f::BYTES);
    put(&mut frame, f::LENGTH_BYTES_OFFSET, 0, 2);
    frame[f::KIND_OFFSET] = kind::ACK;
    server.to_send += 64;
    server.run();
    let acknowledged = (get(&frame, f::TO_SESSION_OFFSET, 4) as u32).wrapping_add(5);
    put(&mut frame, f::ACKNOWLEDGED_OFFSET, acknowledged.into(), 4);
    put(&mut frame, f::SELECTIVE_OFFSET, u64::MAX >> 1, 8);
    frame[f::ROOM_OFFSET] = 0;
    // It claims to have everything but the first, for ever, and answers every question.
    let mut events = Vec::new();
    for _ in 0..100_000 {
        net.lock().unwrap().inject(1, &frame, 10);
        net.lock().unwrap().now += 1_000_000;
        events.extend(server.endpoint.poll().unwrap());
        events.extend(server.endpoint.poll().unwrap());
        if !events.is_empty() {
            break;
        }
    }
    let [Event::Closed { id: ended, why: Down::Stuck { after }, unacknowledged: 64 }] = events[..] else {
        panic!("{events:?}");
    };
    assert!(ended == id && after.as_secs() >= 3);
}

#[test]
fn a_full_endpoint_refuses_and_says_so() {
    let net = Net::new(1, UNIMPAIRED);
    let one = |mut config: beeline_datagram::Config| {
        config.max_connections = 1;
        config
    };
    let (mut client, mut server) = pair(&net, one);
    let too_many = client.endpoint.connect(mac(5));
    assert_eq!(too_many, Err(ConnectError::TooMany { most: 1 }));
    run(&net, &mut [&mut client, &mut server], SECOND / 100);
    net.lock().unwrap().log = Some(Vec::new());
    let second = |mut config: beeline_datagram::Config| {
        config.port = Port(3);
        config
    };
    let mut other = endpoint(&net, 0, 9, second);
    let id = other.connect(mac(1)).unwrap();
    let mut events = Vec::new();
    while events.is_empty() {
        net.lock().unwrap().now += 1000;
        drain(&mut server.endpoint);
        events = drain(&mut other);
    }
    assert_eq!(events, [Event::Closed { id, why: Down::Refused, unacknowledged: 0 }]);
    assert_eq!(server.endpoint.endpoint_stats().refused, 1);
}

#[test]
fn endpoints_of_one_station_do_not_disturb_each_other() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |config| config);
    // A second endpoint at the client's station sees every frame, as with AF_PACKET.
    net.lock().unwrap().log = Some(Vec::new());
    client.to_send = 10;
    server.to_send = 10;
    run(&net, &mut [&mut client, &mut server], SECOND / 100);
    let mut second = endpoint(&net, 0, 9, |mut config| {
        config.port = Port(3);
        config
    });
    let log = net.lock().unwrap().log.take().unwrap();
    let frames: Vec<_> = log.into_iter().filter(|(from, _)| *from == 1).collect();
    for (_, frame) in &frames {
        net.lock().unwrap().inject(0, frame, 10);
    }
    let before = net.lock().unwrap().sent[0];
    net.lock().unwrap().now += 1000;
    assert_eq!(drain(&mut second), []);
    assert_eq!(second.endpoint_stats().foreign, frames.len() as u64);
    assert_eq!(net.lock().unwrap().sent[0], before, "and answers none of them");
    let address = Address { mac: mac(1), port: Port(0) };
    assert_eq!(second.connect(address).map(|_| ()), Ok(()));
}

#[test]
fn a_client_that_is_killed_while_it_opens_leaves_nothing() {
    let net = Net::new(1, UNIMPAIRED);
    let mut server = Side::new(endpoint(&net, 1, 2, |config| config), [2, 1], 0);
    let mut client = endpoint(&net, 0, 1, |config| config);
    client.connect(mac(1)).unwrap();
    drop(client);
    net.lock().unwrap().script(|from, _| if from == 1 { Fate::Lose } else { Fate::Pass });
    net.lock().unwrap().now += SECOND;
    assert_eq!(drain(&mut server.endpoint), []);
    let stats = server.endpoint.endpoint_stats();
    assert_eq!((stats.opens, stats.frames), (1, 1));
}
