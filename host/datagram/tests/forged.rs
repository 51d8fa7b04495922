//! Frames of an attacker: forged ones of any station, and whatever the other side of a connection may send. They cost an endpoint no
//! memory, are answered by no more than they are, and harm no connection but the attacker's.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use beeline_datagram::Event;
use beeline_spec::formats::{datagram_frame as f, datagram_kind as kind};
use support::{Fate, Impairments, Net, Shared, Side, mac, pair, run_until, seed};

const UNIMPAIRED: [Impairments; 2] = [Impairments::UNIMPAIRED; 2];
const SECOND: u64 = 1_000_000_000;
/// Beyond buffers that grow once.
const MOST_MORE_BYTES: i64 = 64 << 10;
const FRAMES: u64 = 20_000;

/// Two sides that said a word each, with every frame of it.
fn talked(seed: u64) -> (Shared, Side, Side, Vec<Vec<u8>>) {
    let net = Net::new(seed, UNIMPAIRED);
    net.lock().unwrap().log = Some(Vec::new());
    let (mut client, mut server) = pair(&net, |config| config);
    exchange(&net, &mut client, &mut server);
    let log = net.lock().unwrap().log.replace(Vec::new()).unwrap();
    // What the server sends from here on goes to nobody.
    net.lock().unwrap().script(|from, _| if from == 1 { Fate::Lose } else { Fate::Pass });
    let of_client = log.into_iter().filter(|(from, _)| *from == 0).map(|(_, frame)| frame).collect();
    (net, client, server, of_client)
}

fn exchange(net: &Shared, client: &mut Side, server: &mut Side) {
    (client.to_send, server.to_send) = (client.to_send + 5, server.to_send + 5);
    let until = net.lock().unwrap().now + SECOND;
    let both = |sides: &[&mut Side]| sides.iter().all(|side| side.received == side.to_send);
    assert!(run_until(net, &mut [client, server], until, both), "{:?} {:?}", client.down, server.down);
}

fn put(frame: &mut [u8], at: usize, value: u64, bytes: usize) {
    frame[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
}

/// What the server made of a frame: what it told its program, and the frames that it sent.
fn deliver(net: &Shared, server: &mut Side, frame: &[u8]) -> (Vec<Event>, Vec<Vec<u8>>) {
    {
        let mut net = net.lock().unwrap();
        // So little time that nothing is due beside it.
        net.inject(1, frame, 1);
        net.now += 2;
    }
    let events = std::iter::from_fn(|| server.endpoint.poll().unwrap()).collect();
    let sent = std::mem::take(net.lock().unwrap().log.as_mut().unwrap());
    (events, sent.into_iter().filter(|(from, _)| *from == 1).map(|(_, frame)| frame).collect())
}

/// A frame of any kind from any station, with any numbers: one that the protocol has but for its sessions, or with bits of it
/// flipped, or a part of it.
fn forged(random: &mut impl FnMut() -> u64, pattern: &[u8]) -> Vec<u8> {
    let mut frame = pattern.to_vec();
    if !random().is_multiple_of(4) {
        put(&mut frame, 8, random(), 4);
    }
    if frame[f::KIND_OFFSET] == kind::OPEN && !random().is_multiple_of(4) {
        // As every station may open a connection.
        put(&mut frame, f::FROM_SESSION_OFFSET, random(), 8);
        return frame;
    }
    frame[f::KIND_OFFSET] = (random() % 8) as u8;
    for at in [f::TO_SESSION_OFFSET, f::FROM_SESSION_OFFSET, f::SELECTIVE_OFFSET] {
        put(&mut frame, at, random(), 8);
    }
    put(&mut frame, f::NUMBER_OFFSET, random() % 4, 4);
    put(&mut frame, f::FROM_PORT_OFFSET, random(), 2);
    if random().is_multiple_of(4) {
        let at = f::VERSION_OFFSET + random() as usize % (frame.len() - f::VERSION_OFFSET);
        frame[at] ^= 1 << (random() % 8);
    }
    if random().is_multiple_of(8) {
        frame.truncate(random() as usize % frame.len());
    }
    frame
}

#[test]
fn forged_frames_cost_no_memory_and_are_answered_by_no_more_than_they_are() {
    let (net, mut client, mut server, patterns) = talked(seed(1));
    let (mut asked_bytes, mut answered_bytes, mut answers) = (0, 0, [0_u64; 8]);
    let memory = allocation_counter::measure(|| {
        for number in 0..FRAMES {
            let pattern = &patterns[(number % patterns.len() as u64) as usize];
            let frame = forged(&mut || net.lock().unwrap().random(), pattern);
            let (events, sent) = deliver(&net, &mut server, &frame);
            assert_eq!(events, [], "frame {number}");
            assert!(sent.len() <= 1, "{} answers to frame {number}", sent.len());
            let bytes: usize = sent.iter().map(Vec::len).sum();
            assert!(bytes <= frame.len(), "{bytes} bytes for one of {}", frame.len());
            match frame.get(f::KIND_OFFSET) {
                Some(kind @ 0..8) => answers[usize::from(*kind)] += sent.len() as u64,
                _ => assert_eq!(sent.len(), 0, "an answer to no frame of the protocol"),
            }
            (asked_bytes, answered_bytes) = (asked_bytes + frame.len(), answered_bytes + bytes);
        }
    });
    assert!(memory.bytes_current < MOST_MORE_BYTES, "{} bytes are held", memory.bytes_current);
    // What answers something itself is not answered, so that no two endpoints can be set on each other.
    assert_eq!((answers[usize::from(kind::WELCOME)], answers[usize::from(kind::RESET)]), (0, 0));
    assert!(answers[usize::from(kind::OPEN)] > 0 && answers[usize::from(kind::DATA)] > 0, "{answers:?}");
    println!("{answered_bytes} bytes in answer to {asked_bytes}");
    net.lock().unwrap().script(|_, _| Fate::Pass);
    exchange(&net, &mut client, &mut server);
}

#[test]
fn other_side_of_a_connection_sends_anything_and_holds_no_more_than_its_window() {
    let (net, client, mut server, patterns) = talked(seed(2));
    let real = patterns.iter().rfind(|frame| frame[f::KIND_OFFSET] == kind::DATA).unwrap();
    let (mut opened, mut messages) = (0, 0);
    let memory = allocation_counter::measure(|| {
        for number in 0..FRAMES {
            let random = || net.lock().unwrap().random();
            let mut frame = real.clone();
            frame[f::KIND_OFFSET] = [kind::DATA, kind::DATA, kind::ACK, kind::WELCOME][random() as usize % 4];
            // Near what is expected at times, and anywhere; each field of some frames only, so that the others are looked at too.
            let near = |value: u64, random: u64| {
                if random.is_multiple_of(2) { value.wrapping_add(random / 2 % 80) } else { random }
            };
            let first = u32::from_le_bytes(*real[f::NUMBER_OFFSET..].first_chunk().unwrap());
            let expected = u64::from(first) + messages as u64;
            put(&mut frame, f::NUMBER_OFFSET, near(expected, random()), 4);
            match random() % 12 {
                0 => put(&mut frame, f::ACKNOWLEDGED_OFFSET, near(expected, random()), 4),
                1 => put(&mut frame, f::SELECTIVE_OFFSET, random() & random(), 8),
                2 => frame[f::ROOM_OFFSET] = random() as u8,
                3 => frame[f::FLAGS_OFFSET] = random() as u8,
                _ => {}
            }
            let (events, sent) = deliver(&net, &mut server, &frame);
            opened += events.iter().filter(|event| matches!(event, Event::Opened { .. })).count();
            messages += events.iter().filter(|event| matches!(event, Event::Message { .. })).count();
            assert!(sent.len() <= 70, "{} frames after frame {number}: more than a window", sent.len());
        }
    });
    assert!(opened == 0 && messages > 100, "{opened} opened, {messages} messages of the attacker's");
    // A window of 64 frames may be held out of order.
    assert!(memory.bytes_current < 2 * MOST_MORE_BYTES, "{} bytes are held", memory.bytes_current);
    // Whoever comes next is served.
    net.lock().unwrap().script(|_, _| Fate::Pass);
    drop(client);
    let mut next = Side::new(support::endpoint(&net, 0, 9, |config| config), [3, 4], 0);
    let mut server = Side::new(server.endpoint, [4, 3], 0);
    next.id = Some(next.endpoint.connect(mac(1)).unwrap());
    let until = net.lock().unwrap().now + 60 * SECOND;
    assert!(run_until(&net, &mut [&mut next, &mut server], until, |sides| sides[0].opened == 1));
}
