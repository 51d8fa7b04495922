//! Pipes of several queues behind one ring of notifications, from the behavioural NIC: every frame comes once, by its
//! queue, in order, while queues come and go; an owner that stops takes the others with it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use beeline_driver::{
    EnsoReceiver, FailureCause, JoinError, MmioConfig, Port, PortError, Receive, RxEnsoConfig, RxEnsoMember,
    RxEnsoMemberConfig, Sent, Stopped, Transmit,
};
use support::nic::{Link, counters, nic, open};
use support::{BusDoorbell, BusMemory, finish};

type Nic = beeline_nic_model::Nic;
type Receiver = EnsoReceiver<BusMemory<Nic>, BusDoorbell<Nic>>;
type Member = RxEnsoMember<BusMemory<Nic>, BusDoorbell<Nic>>;

const OWNER: u32 = 1;

fn receiver(port: &mut Port<Link>, notifications: u32) -> Receiver {
    let config = RxEnsoConfig { lines: 128, notifications, ..RxEnsoConfig::default() };
    let half = port.rx_enso(OWNER, config).unwrap();
    let owner = open(port, half);
    port.enso_receiver(owner)
}

fn member(port: &mut Port<Link>, queue: u32) -> Stopped<Member> {
    let config = RxEnsoMemberConfig { lines: 64, ..RxEnsoMemberConfig::default() };
    port.rx_enso_member(queue, OWNER, config).unwrap()
}

/// A frame whose first word is its number, which also steers it.
fn numbered(number: u64, bytes: usize) -> Vec<u8> {
    let mut frame = number.to_le_bytes().to_vec();
    frame.extend((8..bytes).map(|at| (at as u64 * 31 + number) as u8));
    frame
}

/// What came: the last number by each queue, and how many frames.
#[derive(Default)]
struct Came {
    last: [u64; 4],
    frames: [u64; 4],
}

impl Came {
    /// Takes all that is there; each frame as it was sent, in the order of its queue.
    fn take(&mut self, rx: &mut Receiver) {
        let mut bytes = Vec::new();
        while let Some((queue, mut frame)) = rx.poll_pipes().unwrap() {
            frame.copy_to(&mut bytes);
            let number = frame.word(0).unwrap();
            assert_eq!(bytes, numbered(number, bytes.len()));
            let last = std::mem::replace(&mut self.last[queue as usize], number);
            assert!(number > last, "queue {queue}: {number} after {last}");
            self.frames[queue as usize] += 1;
        }
    }

    fn total(&self) -> u64 {
        self.frames.iter().sum()
    }
}

fn send(link: &Link, numbers: std::ops::Range<u64>) {
    let frames = numbers.map(|number| numbered(number, 14 + (number * 97 % 1400) as usize));
    link.0.borrow_mut().arriving.extend(frames);
}

fn is_sent(link: &Link) -> bool {
    link.0.borrow().arriving.is_empty()
}

#[test]
fn one_notification_ring_serves_all_pipes_and_frames_name_their_queue() {
    for notifications in [4, 64] {
        let (link, mut port) = nic(true);
        let mut rx = receiver(&mut port, notifications);
        for queue in [0, 2, 3] {
            let half = member(&mut port, queue);
            let member = open(&mut port, half);
            rx.join(member).unwrap();
        }
        let mut came = Came::default();
        for round in 0..50 {
            send(&link, 1 + round * 40..1 + (round + 1) * 40);
            for _ in 0..1000 {
                link.pass(100);
                came.take(&mut rx);
                if is_sent(&link) {
                    break;
                }
            }
        }
        link.pass(100);
        came.take(&mut rx);
        assert_eq!(came.total(), 2000);
        assert!(came.frames.iter().all(|frames| *frames > 300), "{:?}", came.frames);
        assert!(rx.wants_interrupt().unwrap());
        let counters = counters(&link);
        assert!(counters.notifications < 1500, "{} for 2000 frames", counters.notifications);
        assert_eq!(counters.bad_accesses, 0);
        let (owner, members) = rx.into_parts();
        let frames = owner.frames() + members.iter().map(RxEnsoMember::frames).sum::<u64>();
        assert_eq!((frames, members.len()), (2000, 3));
    }
}

/// Frames come between opening and joining, and after leaving; a new life's frames are not taken for an old one's.
#[test]
fn pipes_join_and_leave_while_frames_come() {
    let (link, mut port) = nic(false);
    let mut rx = receiver(&mut port, 8);
    let mut came = Came::default();
    let mut next = 1;
    let mut step = |link: &Link, rx: &mut Receiver, came: &mut Came, takes: bool| {
        send(link, next..next + 7);
        next += 7;
        link.pass(200);
        if takes {
            came.take(rx);
        }
    };
    let mut stopped = Some(member(&mut port, 3));
    for life in 0..30 {
        let member = open(&mut port, stopped.take().unwrap());
        for round in 0..life % 4 {
            step(&link, &mut rx, &mut came, round % 2 == 0);
        }
        rx.join(member).unwrap();
        let before = came.frames[3];
        for round in 0..6 {
            if round == 3 {
                // In the middle of its work, and back.
                let member = rx.leave(3).unwrap();
                step(&link, &mut rx, &mut came, life % 2 == 0);
                rx.join(member).unwrap();
            }
            step(&link, &mut rx, &mut came, true);
        }
        assert!(came.frames[3] > before, "life {life}");
        // With notifications of it in the ring, taken or not.
        step(&link, &mut rx, &mut came, life % 3 == 0);
        let member = rx.leave(3).unwrap();
        assert!(rx.leave(3).is_none());
        step(&link, &mut rx, &mut came, life % 2 == 0);
        let pending = port.close(member);
        stopped = Some(finish(&mut port, pending).unwrap());
        step(&link, &mut rx, &mut came, life % 5 == 0);
        // A frame that nobody took is in the way of the next; the port is lossless.
        for _ in 0..20 {
            link.pass(200);
            came.take(&mut rx);
        }
    }
    assert!(is_sent(&link));
    assert_eq!(counters(&link).bad_accesses, 0);
}

#[test]
fn a_ring_that_is_not_there_or_full_fails_the_queue_with_its_cause() {
    let (_, mut port) = nic(true);
    let no_ring = |result: Result<Member, PortError>| match result {
        Err(PortError::FailedAtStart { status, .. }) => assert_eq!(status.cause, FailureCause::NoRing),
        other => panic!("{:?}", other.map(|_| ())),
    };
    let half = member(&mut port, 0);
    let pending = port.open(half);
    no_ring(finish(&mut port, pending));
    let mut rx = receiver(&mut port, 2);
    let half = member(&mut port, 2);
    let second = open(&mut port, half);
    rx.join(second).unwrap();
    let half = member(&mut port, 3);
    let pending = port.open(half);
    no_ring(finish(&mut port, pending));
}

#[test]
fn an_owner_that_stops_fails_the_others_and_its_memory_stays_as_it_is() {
    let (link, mut port) = nic(true);
    let mut rx = receiver(&mut port, 4);
    // Its ring is in the region that was made last.
    let ring = link.0.borrow().regions().len() - 1;
    let half = member(&mut port, 2);
    let second = open(&mut port, half);
    rx.join(second).unwrap();
    send(&link, 1..60);
    link.pass(1000);
    let (owner, mut members) = rx.into_parts();
    let pending = port.close(owner);
    let owner = finish(&mut port, pending).unwrap();
    let pending = port.queue_status(2);
    let status = finish(&mut port, pending).unwrap();
    assert!(status.quarantined && status.cause == FailureCause::NoRing, "{status}");
    assert_eq!(counters(&link).bad_accesses, 1);
    let before = link.0.borrow().regions()[ring].1.clone();
    send(&link, 60..100);
    link.pass(10_000);
    assert!(link.0.borrow().regions()[ring].1 == before, "it may be somebody else's now");
    // Everything works again, the owner first.
    let owner = open(&mut port, owner);
    let mut rx = port.enso_receiver(owner);
    let pending = port.recover(members.remove(0));
    let second = finish(&mut port, pending).unwrap();
    rx.join(second).unwrap();
    let mut came = Came::default();
    for round in 0..100 {
        send(&link, 100 + round * 5..105 + round * 5);
        link.pass(1000);
        came.take(&mut rx);
    }
    assert!(came.frames[1] > 100 && came.frames[2] > 100, "{:?}", came.frames);
}

#[test]
fn a_pipe_of_another_ring_does_not_join_and_one_with_a_transmit_half_does() {
    let (link, mut port) = nic(true);
    let mut rx = receiver(&mut port, 4);
    let tx = port.mmio(0, MmioConfig::default()).unwrap();
    let half = tx.with(member(&mut port, 0)).unwrap();
    let (mut tx, first) = open(&mut port, half);
    rx.join(first).unwrap();
    assert_eq!(tx.try_send(&[9; 60]), Ok(Sent::Sent));
    link.pass(1000);
    assert_eq!(link.take_wire(), [[9; 60]]);
    let config = RxEnsoMemberConfig { epoch: 4, ..RxEnsoMemberConfig::default() };
    let other_epoch = port.rx_enso_member(2, OWNER, config).unwrap();
    let tx = port.mmio(2, MmioConfig::default()).unwrap();
    let differ = PortError::HalvesDiffer { queue: 2, what: "epoch", first: 1, second: 4 };
    assert_eq!(tx.with(other_epoch).map(|_| ()), Err(differ));
    let half = member(&mut port, 2);
    let second = open(&mut port, half);
    rx.join(second).unwrap();
    let second = rx.leave(2).unwrap();
    let other = {
        let half = port.rx_enso(3, RxEnsoConfig::default()).unwrap();
        let owner = open(&mut port, half);
        port.enso_receiver(owner).join(second)
    };
    assert!(matches!(other, Err(JoinError::NotOurs(member)) if member.frames() == 0));
}
