//! Queues end and begin again, and leave nothing behind.

use beeline_driver::{OnHalf, QueueHalf, Receive, Sent, Stopped, Transmit, TxQueueConfig};

use super::Setup;
use super::exchange::{exchange, longest, take_all};
use super::frames::{frame, padded, random_frames};
use crate::{Random, Rig, finish, open};

/// A queue is closed in the middle of its work and opened again, several times: what arrives of the closed life is a
/// beginning of what it sent, in order and unchanged, and the next life works from its first frame on.
///
/// # Panics
/// When the interface breaks the promise.
pub fn lives<R: Rig>(rig: &mut R, setup: &Setup) {
    let mut rx = setup.receive(rig, 1);
    setup.with_half(rig, 0, TxQueueConfig::default(), Lives { rx: &mut rx, seed: setup.random });
}

struct Lives<'a> {
    rx: &'a mut dyn Receive,
    seed: u64,
}

impl<R: Rig> OnHalf<&mut R> for Lives<'_> {
    type Output = ();

    fn run<T: Transmit + QueueHalf + 'static>(self, rig: &mut R, half: Stopped<T>) {
        live(rig, half, self.rx, self.seed);
    }
}

fn live<R: Rig, H: Transmit + QueueHalf>(rig: &mut R, half: Stopped<H>, rx: &mut dyn Receive, seed: u64) {
    let mut random = Random::new(seed);
    let mut stopped = half;
    for life in 0..6 {
        let mut tx = open(rig, stopped);
        let multiple_bytes = tx.declared().frame_multiple_bytes();
        let frames = random_frames(&mut random, life * 1000, 40, longest(&tx));
        exchange(rig, &mut tx, rx, &frames, 4);
        let mut sent = Vec::new();
        for number in 0..20 {
            let frame = frame(life * 1000 + 500 + number, 14 + random.below(300));
            if tx.try_send(&frame).expect("a legal frame") == Sent::Sent {
                sent.push(padded(&frame, multiple_bytes));
            }
            if random.below(6) == 0 {
                rig.step().expect("the port lives");
            }
        }
        let pending = rig.port().close(tx);
        stopped = finish(rig, pending).expect("a sound device stops a queue");
        let mut received = Vec::new();
        for _ in 0..50 {
            rig.step().expect("the port lives");
            take_all(rx, &mut received);
        }
        let is_beginning = sent.starts_with(&received);
        assert!(
            is_beginning,
            "life {life}: {} frames came, no beginning of the {} sent",
            received.len(),
            sent.len()
        );
    }
}

/// The device is reset while frames are under way: nothing of them comes later, and everything works again.
///
/// # Panics
/// When the interface breaks the promise.
pub fn reset<R: Rig>(rig: &mut R, setup: &Setup) {
    for round in 0..3 {
        let (mut tx, mut rx) = (setup.transmit(rig, 0, TxQueueConfig::default()), setup.receive(rig, 1));
        let growth_bytes = 20.min((longest(&tx) - 40) / 30);
        let frames: Vec<_> = (0..30).map(|n| frame(round * 100 + n, 40 + growth_bytes * n)).collect();
        exchange(rig, &mut tx, &mut rx, &frames, 7);
        for frame in &frames {
            let _full_is_fine = tx.try_send(frame).expect("a legal frame");
        }
        drop((tx, rx));
        rig.restart();
    }
}
