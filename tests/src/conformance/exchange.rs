//! Sending and receiving at once, with a watchdog, and the comparison of both.

use std::collections::VecDeque;

use beeline_driver::{Receive, Sent, Transmit};

use super::frames::padded;
use crate::Rig;

/// The longest frame that can be sent and received: what the port carries, padding included.
pub(super) fn longest(tx: &dyn Transmit) -> usize {
    let multiple_bytes = tx.declared().frame_multiple_bytes();
    tx.max_frame_bytes() / multiple_bytes * multiple_bytes
}

/// Takes every frame that is there.
pub(super) fn take_all(rx: &mut dyn Receive, received: &mut Vec<Vec<u8>>) {
    while let Some(mut frame) = rx.poll().expect("the device writes what it must") {
        let mut bytes = Vec::new();
        frame.copy_to(&mut bytes);
        received.push(bytes);
    }
}

/// Sends the frames in bursts of up to `burst` and receives meanwhile, until everything sent was received.
pub(super) fn exchange<R: Rig>(
    rig: &mut R,
    tx: &mut dyn Transmit,
    rx: &mut dyn Receive,
    frames: &[Vec<u8>],
    burst: usize,
) {
    exchange_into(rig, tx, rx, (frames, frames), burst);
}

/// The same where the device changes what it sends: the frames, and what must arrive of each.
pub(super) fn exchange_into<R: Rig>(
    rig: &mut R,
    tx: &mut dyn Transmit,
    rx: &mut dyn Receive,
    (frames, arriving): (&[Vec<u8>], &[Vec<u8>]),
    burst: usize,
) {
    let multiple_bytes = tx.declared().frame_multiple_bytes();
    let views: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let (mut sent, mut received, mut idle_steps) = (0, 0, 0);
    let mut arrived = Vec::new();
    while received < frames.len() {
        let end = frames.len().min(sent + burst);
        let taken = match &views[sent..end] {
            [] => 0,
            [one] => usize::from(tx.try_send(one).expect("a legal frame") == Sent::Sent),
            some => tx.try_send_burst(some).expect("legal frames").0,
        };
        sent += taken;
        if taken == 0 {
            tx.progress().expect("the device counts right");
            rig.step().expect("the port lives");
        }
        take_all(rx, &mut arrived);
        idle_steps = if taken == 0 && arrived.is_empty() { idle_steps + 1 } else { 0 };
        assert!(
            idle_steps < rig.max_idle_steps(),
            "stuck: {sent} of {} sent, {received} received",
            frames.len()
        );
        for got in arrived.drain(..) {
            assert!(received < sent, "frame {received} is received and was not sent");
            let expected = padded(&arriving[received], multiple_bytes);
            assert!(got == expected, "frame {received}: {}", difference(&got, &expected));
            received += 1;
        }
    }
    settle(rig, tx);
}

/// Steps until the queue knows that everything is finished.
pub(super) fn settle<R: Rig>(rig: &mut R, tx: &mut dyn Transmit) {
    for _ in 0..rig.max_idle_steps() {
        tx.progress().expect("the device counts right");
        if tx.is_idle() {
            return;
        }
        rig.step().expect("the port lives");
    }
    panic!("the device has transmitted everything and does not say so");
}

/// Hands over frames from the front until the queue has been full for a while; gives how many.
pub(super) fn fill<R: Rig>(rig: &mut R, tx: &mut dyn Transmit, frames: &mut VecDeque<Vec<u8>>) -> usize {
    const FULL_STEPS: usize = 50;
    let (mut sent, mut full_steps) = (0, 0);
    while let Some(frame) = frames.front().filter(|_| full_steps < FULL_STEPS) {
        if tx.try_send(frame).expect("a legal frame") == Sent::Sent {
            frames.pop_front();
            (sent, full_steps) = (sent + 1, 0);
        } else {
            tx.progress().expect("the device counts right");
            rig.step().expect("the port lives");
            full_steps += 1;
        }
    }
    sent
}

/// Where two frames differ, in words.
pub(super) fn difference(got: &[u8], expected: &[u8]) -> String {
    let at = got.iter().zip(expected).position(|(a, b)| a != b);
    format!("{} bytes received, {} expected, first difference at {at:?}", got.len(), expected.len())
}
