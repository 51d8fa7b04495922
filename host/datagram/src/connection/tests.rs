//! Two connections without endpoints: sessions of the test's choice, so that numbers wrap when it wants them to.

use std::collections::VecDeque;

use crate::connection::Connection;
use crate::header::{Head, Kind};
use crate::outbox::Wire;
use crate::sequence::Session;
use crate::{Address, Config, Down, HEAD_BYTES, MacAddress, Nanos, Sent};

const SESSIONS: [u64; 2] = [0x1111_1111_ffff_fff0, 0x2222_2222_ffff_ffff];

/// Frames one way, of which some are lost and some swap places.
#[derive(Default)]
struct Lane {
    frames: VecDeque<Vec<u8>>,
    random: u64,
    loss_percent: u64,
}

impl Lane {
    fn random(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }
}

impl Wire for Lane {
    fn put(&mut self, frame: &[u8]) -> bool {
        if self.random() % 100 >= self.loss_percent {
            self.frames.push_back(frame.to_vec());
            if self.loss_percent > 0 && self.frames.len() >= 2 && self.random().is_multiple_of(8) {
                let last = self.frames.len() - 1;
                self.frames.swap(last, last - 1);
            }
        }
        true
    }
}

fn address(index: usize) -> Address {
    MacAddress([2, 0, 0, 0, 0, index as u8 + 1]).into()
}

/// Both ends of a connection between these sessions.
fn ends(sessions: [u64; 2], now: Nanos) -> [Connection; 2] {
    let both: [Session; 2] = sessions.map(Session);
    [0, 1].map(|index| {
        let config = Config::client(address(index).mac);
        let mut connection = Connection::new(&config);
        connection.begin_server(address(1 - index), both[index], both[1 - index], &config, now);
        assert!(connection.announce());
        connection
    })
}

/// Lets both ends talk for a while; gives how many messages each got, all in order.
fn talk(ends: &mut [Connection; 2], lanes: &mut [Lane; 2], messages: u64, now: &mut Nanos) -> [u64; 2] {
    let (mut sent, mut received) = ([0_u64; 2], [0_u64; 2]);
    for end in 0..2 {
        // As after a handshake, each side knows of the other's room.
        let loss_percent = std::mem::take(&mut lanes[end].loss_percent);
        assert!(ends[end].send_ack(true, &mut lanes[end]));
        lanes[end].loss_percent = loss_percent;
    }
    for _ in 0..1_000_000 {
        *now = now.after(1000);
        for end in 0..2 {
            if let Some(frame) = lanes[1 - end].frames.pop_front() {
                let head = Head::read(&frame, address(end)).unwrap();
                let message = &frame[HEAD_BYTES..HEAD_BYTES + usize::from(head.message_bytes)];
                if ends[end].take(&head, message, false, *now) {
                    assert_eq!(message, received[end].to_le_bytes());
                    received[end] += 1;
                }
            }
            while let Some((slot, bytes)) = ends[end].deliver() {
                assert_eq!(ends[end].message(slot, bytes), received[end].to_le_bytes());
                received[end] += 1;
            }
            if sent[end] < messages
                && ends[end].send(&sent[end].to_le_bytes(), &[], *now, &mut lanes[end]) == Sent::Sent
            {
                sent[end] += 1;
            }
            if ends[end].needs_work() {
                ends[end].work(*now, &mut lanes[end]);
            }
            if ends[end].deadline() <= *now {
                ends[end].on_time(*now, &mut lanes[end]);
            }
        }
        if received == [messages; 2] && ends.iter().all(Connection::is_idle) {
            return received;
        }
    }
    panic!("{sent:?} sent, {received:?} received: {:?} {:?}", ends[0].stats(), ends[1].stats());
}

#[test]
fn numbers_wrap_in_the_middle_of_losses() {
    for seed in 0..20 {
        for loss_percent in [0, 5, 30] {
            let mut now = Nanos(1_000_000_000);
            let mut ends = ends(SESSIONS, now);
            let mut lanes = [seed, seed + 100].map(|random| Lane { random, loss_percent, ..Lane::default() });
            assert_eq!(
                talk(&mut ends, &mut lanes, 300, &mut now),
                [300, 300],
                "seed {seed}, {loss_percent} %"
            );
            assert_eq!(ends[0].arrived().wire(), 299, "across the wrap: it began at 2^32 - 1");
            assert_eq!(ends[1].arrived().wire(), 300 - 16);
            assert!(ends.iter().all(|end| end.stats().wild_acks == 0 && end.stats().beyond == 0));
        }
    }
}

#[test]
fn a_fair_lane_repeats_nothing() {
    let mut now = Nanos(1_000_000_000);
    let mut ends = ends(SESSIONS, now);
    let mut lanes = [Lane::default(), Lane::default()];
    talk(&mut ends, &mut lanes, 1000, &mut now);
    for end in &ends {
        let stats = end.stats();
        assert_eq!((stats.repeated_early, stats.timeouts, stats.duplicates), (0, 0, 0));
        assert!(stats.round_trip_ns < 200_000, "{stats:?}");
    }
}

#[test]
fn restarted_end_has_no_state_of_its_last_connection() {
    let mut now = Nanos(1_000_000_000);
    let mut ends = ends(SESSIONS, now);
    let mut lanes = [7, 8].map(|random| Lane { random, loss_percent: 20, ..Lane::default() });
    talk(&mut ends, &mut lanes, 100, &mut now);
    ends[0].end_with(Down::Restarted);
    let config = Config::client(address(0).mac);
    ends[0].begin_server(address(1), Session(5), Session(6), &config, now);
    ends[1].begin_server(address(0), Session(6), Session(5), &Config::client(address(1).mac), now);
    assert!(ends[0].announce() && ends[1].announce());
    lanes = [Lane::default(), Lane::default()];
    talk(&mut ends, &mut lanes, 100, &mut now);
    assert_eq!((ends[0].end(), ends[0].stats().messages_sent, ends[0].stats().timeouts), (None, 100, 0));
}

#[test]
fn a_close_that_finds_no_room_waits_for_it() {
    let now = Nanos(1_000_000_000);
    let mut ends = ends(SESSIONS, now);
    let mut lane = Lane::default();
    assert!(ends[1].send_ack(false, &mut lane));
    let head = Head::read(&lane.frames.pop_front().unwrap(), address(0)).unwrap();
    ends[0].take(&head, &[], false, now);
    while ends[0].send(b"x", b"", now, &mut lane) == Sent::Sent {}
    assert_eq!(lane.frames.len(), 64);
    ends[0].close();
    assert!(!ends[0].needs_work());
    let acknowledged = head.acknowledged.wrapping_add(1);
    ends[0].take(&Head { acknowledged, ..head }, &[], false, now);
    assert!(ends[0].needs_work());
    ends[0].work(now, &mut lane);
    let last = Head::read(lane.frames.back().unwrap(), address(1)).unwrap();
    assert_eq!((last.kind, last.number), (Kind::Close, acknowledged.wrapping_add(63)));
}

#[test]
fn an_acknowledgement_stands_for_sixteen_messages_or_waits_for_its_time() {
    let now = Nanos(1_000_000_000);
    let mut ends = ends(SESSIONS, now);
    let mut lanes = [Lane::default(), Lane::default()];
    assert!(ends[1].send_ack(false, &mut lanes[1]));
    let room = Head::read(&lanes[1].frames.pop_front().unwrap(), address(0)).unwrap();
    ends[0].take(&room, &[], false, now);
    for index in 1..=16 {
        assert_eq!(ends[0].send(b"x", b"", now, &mut lanes[0]), Sent::Sent);
        let head = Head::read(&lanes[0].frames.pop_front().unwrap(), address(1)).unwrap();
        assert!(ends[1].take(&head, b"x", false, now));
        assert_eq!(ends[1].needs_work(), index == 16, "after {index}");
        assert_eq!(ends[1].deadline(), now.after(100_000));
    }
    ends[1].work(now, &mut lanes[1]);
    assert_eq!((lanes[1].frames.len(), ends[1].needs_work()), (1, false));
}

#[test]
fn reset_that_acknowledges_everything_is_a_close_and_another_a_restart() {
    for (acknowledged, expected) in [(2, Down::Closed), (1, Down::Restarted)] {
        let now = Nanos(1_000_000_000);
        let mut ends = ends(SESSIONS, now);
        let mut lane = Lane::default();
        assert!(ends[1].send_ack(false, &mut lane));
        let room = Head::read(&lane.frames.pop_front().unwrap(), address(0)).unwrap();
        ends[0].take(&room, &[], false, now);
        for _ in 0..2 {
            assert_eq!(ends[0].send(b"x", b"", now, &mut lane), Sent::Sent);
        }
        ends[0].close();
        ends[0].work(now, &mut lane);
        assert_eq!((lane.frames.len(), ends[0].unacknowledged()), (3, 2));
        let acknowledged = room.acknowledged.wrapping_add(acknowledged);
        ends[0].take(&Head { acknowledged, ..room }, &[], false, now);
        assert_eq!(ends[0].end(), None);
        assert!(ends[0].reset(&Head { kind: Kind::Reset, number: 1, ..room }));
        assert_eq!(ends[0].end(), Some(expected));
    }
}
