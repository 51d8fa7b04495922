//! Every frame arrives once, in order, byte for byte, and a full queue loses nothing.

use std::collections::VecDeque;

use beeline_driver::{Receive, Transmit, TxError, TxQueueConfig};
use beeline_spec::formats::{KPIO_EOP_DEFAULT, MIN_FRAME_BYTES};
use beeline_spec::{Interface, escape};

use super::Setup;
use super::exchange::{difference, exchange, fill, longest, settle, take_all};
use super::frames::{frame, padded, random_frames};
use crate::{Random, Rig};

/// Queue that transmits.
const TX: u32 = 0;
/// Queue that receives.
const RX: u32 = 1;

/// Every length from an Ethernet header to the longest frame, one by one and in bursts; windows and rings go round
/// many times.
///
/// # Panics
/// When the interface breaks the promise.
pub fn every_length<R: Rig>(rig: &mut R, setup: &Setup) {
    let (mut tx, mut rx) = (setup.transmit(rig, TX, TxQueueConfig::default()), setup.receive(rig, RX));
    let frames: Vec<_> = (MIN_FRAME_BYTES..=longest(&tx)).map(|bytes| frame(bytes, bytes)).collect();
    exchange(rig, &mut tx, &mut rx, &frames, 1);
    exchange(rig, &mut tx, &mut rx, &frames, 16);
}

/// Bursts of every size, of frames of random lengths.
///
/// # Panics
/// When the interface breaks the promise.
pub fn bursts<R: Rig>(rig: &mut R, setup: &Setup) {
    let (mut tx, mut rx) = (setup.transmit(rig, TX, TxQueueConfig::default()), setup.receive(rig, RX));
    let mut random = Random::new(setup.random);
    // The longest is more than the transmit queue of any rig takes at a time.
    for burst in [2, 3, 8, 31, 100] {
        let frames = random_frames(&mut random, burst * 1000, 2 * burst, longest(&tx));
        exchange(rig, &mut tx, &mut rx, &frames, burst);
    }
}

/// Payloads made of what could be mistaken for something else: zeros, ones, blanks and their neighbours, signatures,
/// headers.
///
/// # Panics
/// When the interface breaks the promise, or neither carries nor refuses such a frame.
pub fn telling_payloads<R: Rig>(rig: &mut R, setup: &Setup) {
    let (mut tx, mut rx) = (setup.transmit(rig, TX, TxQueueConfig::default()), setup.receive(rig, RX));
    let blank = escape::blank_from_random(setup.random);
    let marks = [0, u64::MAX, blank, blank + 1, blank - 1, KPIO_EOP_DEFAULT, 1 << 46 | 8, escape::link(1)];
    // So many marks fit behind the start of a frame.
    let room = (longest(&tx) - 16) / 8;
    let mut random = Random::new(setup.random + 1);
    let mut frames = Vec::new();
    for number in 0..200 {
        let mut made = frame(number, 16);
        for _ in 0..random.below(90.min(room + 1)) {
            made.extend(marks[random.below(marks.len())].to_le_bytes());
        }
        let holds = |mark: u64| made.as_chunks::<8>().0.contains(&mark.to_le_bytes());
        if setup.interface == Interface::Kpio && (holds(KPIO_EOP_DEFAULT) || holds(blank)) {
            // kPIO+WC has no escapes: it must say so rather than lose the frame. On an observed window a blank is
            // carried like any other word.
            match tx.try_send(&made) {
                Err(TxError::HoldsMark { .. }) => continue,
                Ok(_) if !holds(KPIO_EOP_DEFAULT) => {}
                other => panic!("frame {number} holds a mark that kpio cannot carry: {other:?}"),
            }
            exchange_rest(rig, &mut tx, &mut rx, &made);
            continue;
        }
        frames.push(made);
    }
    exchange(rig, &mut tx, &mut rx, &frames, 5);
}

/// Waits for a frame that was sent alone.
fn exchange_rest<R: Rig>(rig: &mut R, tx: &mut dyn Transmit, rx: &mut dyn Receive, sent: &[u8]) {
    let mut received = Vec::new();
    settle(rig, tx);
    for _ in 0..rig.max_idle_steps() {
        take_all(rx, &mut received);
        if !received.is_empty() {
            break;
        }
        rig.step().expect("the port lives");
    }
    assert!(received == [sent], "one frame was sent, {} came", received.len());
}

/// Frames shorter than an Ethernet header, empty ones and ones that are too long are refused; those around them arrive.
///
/// # Panics
/// When the interface breaks the promise.
pub fn illegal_lengths<R: Rig>(rig: &mut R, setup: &Setup) {
    let (mut tx, mut rx) = (setup.transmit(rig, TX, TxQueueConfig::default()), setup.receive(rig, RX));
    let longest_bytes = tx.max_frame_bytes();
    for (number, bytes) in
        (0..MIN_FRAME_BYTES).chain([longest_bytes + 1, 2 * longest_bytes, 1 << 20]).enumerate()
    {
        let refused = tx.try_send(&vec![1; bytes]);
        let is_right = matches!(refused, Err(TxError::Length { bytes: named, .. }) if named == bytes);
        assert!(is_right, "a frame of {bytes} bytes: {refused:?}");
        exchange(rig, &mut tx, &mut rx, &[frame(number, 60)], 1);
    }
}

/// While nobody receives, the queue fills and says so; then everything that was taken arrives, and it goes on.
///
/// # Panics
/// When the interface breaks the promise.
pub fn back_pressure<R: Rig>(rig: &mut R, setup: &Setup) {
    let (mut tx, mut rx) = (setup.transmit(rig, TX, TxQueueConfig::default()), setup.receive(rig, RX));
    let multiple_bytes = tx.declared().frame_multiple_bytes();
    let mut random = Random::new(setup.random + 2);
    for round in 0..3 {
        let frames = random_frames(&mut random, round * 100_000, 20_000, longest(&tx));
        let mut left = VecDeque::from(frames.clone());
        let sent = fill(rig, &mut tx, &mut left);
        assert!(!left.is_empty(), "round {round}: the queue never fills");
        assert!(!tx.is_idle(), "round {round}: nothing is left to transmit and yet it is full");
        let (mut received, mut idle_steps) = (Vec::new(), 0);
        while received.len() < sent {
            let before = received.len();
            take_all(&mut rx, &mut received);
            tx.progress().expect("the device counts right");
            rig.step().expect("the port lives");
            idle_steps = if received.len() == before { idle_steps + 1 } else { 0 };
            assert!(
                idle_steps < rig.max_idle_steps(),
                "round {round}: {} of {sent} received",
                received.len()
            );
        }
        for (i, (got, sent)) in received.iter().zip(&frames).enumerate() {
            let expected = padded(sent, multiple_bytes);
            assert!(*got == expected, "round {round}, frame {i}: {}", difference(got, &expected));
        }
        settle(rig, &mut tx);
        take_all(&mut rx, &mut received);
        assert_eq!(received.len(), sent, "round {round}: frames came that were not sent");
    }
}

/// Two queues send at the same time; each keeps its own order.
///
/// # Panics
/// When the interface breaks the promise.
pub fn several_queues<R: Rig>(rig: &mut R, setup: &Setup) {
    const COUNT: usize = 300;
    let mut rx = setup.receive(rig, RX);
    let mut queues = [0, 2].map(|queue| setup.transmit(rig, queue, TxQueueConfig::default()));
    let multiple_bytes = queues[0].declared().frame_multiple_bytes();
    let mut random = Random::new(setup.random + 3);
    let mut expected: Vec<VecDeque<Vec<u8>>> = Vec::new();
    let mut left: Vec<VecDeque<Vec<u8>>> = Vec::new();
    for queue in 0..2 {
        // The number's high bit tells the queue, in a byte that every frame has.
        let mut frames = random_frames(&mut random, 0, COUNT, longest(&queues[0]));
        frames.iter_mut().for_each(|frame| frame[11] = 1 + queue);
        expected.push(frames.iter().map(|frame| padded(frame, multiple_bytes)).collect());
        left.push(frames.into());
    }
    let (mut received, mut idle_steps) = (0, 0);
    let mut arrived = Vec::new();
    while received < 2 * COUNT {
        for (tx, left) in queues.iter_mut().zip(&mut left) {
            let burst: Vec<&[u8]> = left.iter().take(1 + random.below(9)).map(Vec::as_slice).collect();
            let taken = if burst.is_empty() { 0 } else { tx.try_send_burst(&burst).expect("legal frames").0 };
            left.drain(..taken);
            tx.progress().expect("the device counts right");
        }
        rig.step().expect("the port lives");
        take_all(&mut rx, &mut arrived);
        idle_steps = if arrived.is_empty() { idle_steps + 1 } else { 0 };
        assert!(idle_steps < rig.max_idle_steps(), "stuck: {received} of {} received", 2 * COUNT);
        for got in arrived.drain(..) {
            let queue = usize::from(got[11]) - 1;
            let next = expected[queue].pop_front().expect("no queue sent more");
            assert!(got == next, "queue {queue}: {}", difference(&got, &next));
            received += 1;
        }
    }
}
