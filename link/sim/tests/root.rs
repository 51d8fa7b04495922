//! A root complex by itself: packets on their way out, reads and writes on their way in.

use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::device::Rate;
use beeline_link_sim::pcie::{Answers, Generation, Kind, Lanes, LinkSettings, Tlp};
use beeline_link_sim::root::{Bandwidth, Inbound, Outbound, Outgoing, RootSettings};

fn settings() -> RootSettings {
    RootSettings {
        write_latency: Picoseconds(100),
        write_jitter: Picoseconds(0),
        write_interval: Picoseconds(30),
        write_places: 4,
        merges: false,
        read_latency: Picoseconds(1000),
        read_interval: Picoseconds(40),
        answers: Answers::EachBoundary,
        write_visible: Picoseconds(700),
        write_ingest: Picoseconds(50),
        memory_rate: Rate::UNLIMITED,
    }
}

fn line(number: u64) -> Tlp {
    Tlp { body: number as u32, ..Tlp::new(Kind::MemoryWrite, (1 << 40) + number * 64, 64) }
}

/// Takes what leaves until there is no more: times, bodies, bytes, and bodies that were merged into them.
fn drain(outbound: &mut Outbound, settings: &RootSettings) -> Vec<(u64, u32, u32, Option<u32>)> {
    let (mut now, mut left) = (Picoseconds::ZERO, Vec::new());
    loop {
        match outbound.take(now, settings) {
            Outgoing::Packet(second) => {
                let tlp = outbound.pop();
                outbound.left(now, &tlp);
                left.push((now.0, tlp.body, tlp.length_bytes, second));
            }
            Outgoing::Later(at) => now = at,
            Outgoing::Nothing => return left,
        }
    }
}

#[test]
fn packets_leave_when_they_are_ready_and_an_interval_apart() {
    let mut outbound = Outbound::new(&settings());
    for (ready, number) in [(500, 1), (510, 2), (900, 3), (505, 4)] {
        assert!(outbound.has_room());
        outbound.enter(Picoseconds(ready), line(number));
    }
    assert!(!outbound.has_room() && outbound.taken() == 4);
    // The fourth was stored by a core that was less far ahead.
    let left = drain(&mut outbound, &settings());
    assert_eq!(left, [(500, 1, 64, None), (530, 4, 64, None), (560, 2, 64, None), (900, 3, 64, None)]);
    assert_eq!((outbound.taken(), outbound.is_empty()), (0, true));
}

#[test]
fn an_event_is_asked_for_once_and_never_for_the_past() {
    let mut outbound = Outbound::new(&settings());
    assert_eq!(outbound.to_schedule(Picoseconds(10), Picoseconds::ZERO), None, "nothing waits");
    outbound.enter(Picoseconds(500), line(1));
    assert_eq!(outbound.to_schedule(Picoseconds(10), Picoseconds::ZERO), Some(Picoseconds(500)));
    assert_eq!(outbound.to_schedule(Picoseconds(20), Picoseconds::ZERO), None, "one is coming");
    outbound.enter(Picoseconds(300), line(2));
    assert_eq!(outbound.to_schedule(Picoseconds(20), Picoseconds::ZERO), Some(Picoseconds(300)), "sooner");
    outbound.woken(Picoseconds(300));
    // The link was not free then, and nobody looked before 800.
    assert_eq!(outbound.to_schedule(Picoseconds(800), Picoseconds::ZERO), Some(Picoseconds(800)));
    outbound.woken(Picoseconds(800));
    assert_eq!(outbound.to_schedule(Picoseconds(800), Picoseconds::ZERO), Some(Picoseconds(800)));
}

/// Asking for a packet only when the wire is free changes nothing but how often is asked: the next one leaves as if it had been
/// taken when it was ready, and lines are merged that waited then.
#[test]
fn packet_asked_for_on_a_free_wire_leaves_at_its_ready_time() {
    let settings = RootSettings { merges: true, ..settings() };
    let mut outbound = Outbound::new(&settings);
    for (ready, number) in [(400, 0), (420, 1), (424, 2)] {
        outbound.enter(Picoseconds(ready), line(number));
    }
    assert_eq!(outbound.to_schedule(Picoseconds(10), Picoseconds(450)), Some(Picoseconds(450)));
    let first = outbound.take(Picoseconds(450), &settings);
    assert_eq!((first, outbound.pop().length_bytes), (Outgoing::Packet(None), 64));
    let second = outbound.take(Picoseconds(429), &settings);
    assert_eq!(second, Outgoing::Later(Picoseconds(430)), "30 behind 400");
}

/// Two lines that make up 128 aligned bytes, both of which wait, of one core.
#[test]
fn only_neighbours_that_wait_are_merged() {
    let settings = RootSettings { merges: true, write_places: 100, ..settings() };
    let of_core = |core: u16, number| Tlp { requester: core, ..line(number) };
    let part = Tlp { length_bytes: 32, ..line(1) };
    let read = Tlp::new(Kind::MemoryRead, 1 << 40, 64);
    for (first, second, second_ready, merged) in [
        (line(0), line(1), 500, true),
        (line(2), line(3), 400, true),
        (line(0), line(1), 501, false),
        (line(1), line(2), 500, false),
        (line(0), line(2), 500, false),
        (line(1), line(0), 500, false),
        (line(0), part, 500, false),
        (part, line(1), 500, false),
        (read, line(1), 500, false),
        (of_core(1, 0), of_core(2, 1), 500, false),
        (of_core(2, 0), of_core(2, 1), 500, true),
    ] {
        let mut outbound = Outbound::new(&settings);
        // The link does not take the one before until 500.
        outbound.enter(Picoseconds(300), line(9));
        assert_eq!(outbound.take(Picoseconds(300), &settings), Outgoing::Packet(None));
        outbound.pop();
        outbound.left(Picoseconds(500), &line(9));
        outbound.enter(Picoseconds(400), first);
        outbound.enter(Picoseconds(second_ready), second);
        let Outgoing::Packet(body) = outbound.take(Picoseconds(500), &settings) else {
            panic!("it is ready")
        };
        let tlp = outbound.pop();
        assert_eq!(
            (tlp.length_bytes == 128, body),
            (merged, merged.then_some(second.body)),
            "{first:?}, {second:?}"
        );
        outbound.left(Picoseconds(500), &tlp);
        assert_eq!(outbound.taken(), usize::from(!merged), "a packet of two lines had two places");
    }
}

fn link(completion_boundary_bytes: u32) -> LinkSettings {
    let lanes = Lanes::new(16).expect("a width that exists");
    LinkSettings { completion_boundary_bytes, ..LinkSettings::new(Generation::Gen4, lanes) }
}

/// Completions as time, address and bytes.
fn answers(inbound: &mut Inbound) -> Vec<(u64, u64, u32)> {
    let (mut found, mut now) = (Vec::new(), Picoseconds::ZERO);
    loop {
        match inbound.next_answer(now) {
            Some((tlp, next)) => {
                assert_eq!((tlp.kind, tlp.tag, tlp.body), (Kind::CompletionWithData, 5, 6));
                found.push((now.0, tlp.address, tlp.length_bytes));
                let Some(next) = next else { return found };
                now = next;
            }
            None => now += Picoseconds(1),
        }
    }
}

#[test]
fn reads_are_answered_in_pieces_an_interval_a_line() {
    let request = Tlp { tag: 5, body: 6, ..Tlp::new(Kind::MemoryRead, 32, 160) };
    let mut inbound = Inbound::default();
    let first = inbound.read(Picoseconds(10), &request, &settings(), &link(64), &mut Bandwidth::default());
    assert_eq!(first, Some(Picoseconds(1010)));
    // The second one finds the first being read: three lines of 40.
    assert_eq!(
        inbound.read(Picoseconds(20), &request, &settings(), &link(64), &mut Bandwidth::default()),
        None,
        "an event is coming"
    );
    let pieces = [(0, 32, 32), (40, 64, 64), (80, 128, 64)];
    let expected =
        [1010, 1130].map(|start| pieces.map(|(after, address, bytes)| (start + after, address, bytes)));
    assert_eq!(answers(&mut inbound), expected.concat());
    // One packet is there when its last line is.
    let settings = RootSettings { answers: Answers::Longest, ..settings() };
    let mut inbound = Inbound::default();
    inbound.read(
        Picoseconds(0),
        &Tlp { address: 0, length_bytes: 512, ..request },
        &settings,
        &link(64),
        &mut Bandwidth::default(),
    );
    assert_eq!(answers(&mut inbound), [(1000 + 3 * 40, 0, 256), (1000 + 7 * 40, 256, 256)]);
}

#[test]
fn writes_are_seen_in_order_and_answers_behind_them() {
    let mut inbound = Inbound::default();
    let settings = settings();
    let write = |length| Tlp::new(Kind::MemoryWrite, 0, length);
    let answer = Tlp::new(Kind::CompletionWithData, 0, 8);
    assert_eq!(
        inbound.arrive(Picoseconds(0), answer, &settings, None),
        Some(Picoseconds(0)),
        "nothing in front of it"
    );
    assert_eq!(inbound.next_seen(), Some((answer, None)));
    // Four lines take 200 to be taken in; the write behind them begins then.
    assert_eq!(inbound.arrive(Picoseconds(100), write(256), &settings, None), Some(Picoseconds(800)));
    assert_eq!(inbound.arrive(Picoseconds(110), write(8), &settings, None), None);
    assert_eq!(inbound.arrive(Picoseconds(120), answer, &settings, None), None);
    assert_eq!(inbound.writes().count(), 2);
    assert_eq!(inbound.next_seen(), Some((write(256), Some(Picoseconds(1000)))));
    assert_eq!(
        inbound.next_seen(),
        Some((write(8), Some(Picoseconds(1000)))),
        "the answer not before the write"
    );
    assert_eq!(inbound.next_seen(), Some((answer, None)));
    assert_eq!(inbound.next_seen(), None);
}
