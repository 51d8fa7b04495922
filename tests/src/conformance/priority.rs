//! A queue of a higher class goes first (the quality of service of Larsen & Lee, NAS'15, §V).

use std::collections::VecDeque;

use beeline_driver::{Sent, Transmit, TxQueueConfig};

use super::Setup;
use super::exchange::{fill, take_all};
use super::frames::frame;
use crate::Rig;

const LOW: u8 = 1;
const HIGH: u8 = 2;

/// While the wire stands still, frames are handed to a queue of a low class and then to one of a high class. When it
/// moves again, the high ones come before every low one that had not left the device by then.
///
/// # Panics
/// When the interface breaks the promise.
pub fn higher_class_first<R: Rig>(rig: &mut R, setup: &Setup) {
    const HIGH_FRAMES: usize = 5;
    let mut rx = setup.receive(rig, 1);
    let mut low = setup.transmit(rig, 0, TxQueueConfig { class: 5, ..TxQueueConfig::default() });
    let mut high = setup.transmit(rig, 2, TxQueueConfig { class: 2, ..TxQueueConfig::default() });
    let of = |queue: u8, number: usize| {
        let mut frame = frame(number, 64);
        frame[11] = queue;
        frame
    };
    // Nobody receives: everything on the way fills up and the wire stops.
    let mut left: VecDeque<_> = (0..20_000).map(|number| of(LOW, number)).collect();
    let low_sent = fill(rig, &mut low, &mut left);
    assert!(!left.is_empty(), "the wire never stops");
    for number in 0..HIGH_FRAMES {
        assert_eq!(high.try_send(&of(HIGH, number)), Ok(Sent::Sent));
    }
    for _ in 0..50 {
        high.progress().expect("the device counts right");
        rig.step().expect("the port lives");
    }
    let (mut received, mut idle_steps) = (Vec::new(), 0);
    while received.len() < low_sent + HIGH_FRAMES {
        let before = received.len();
        take_all(&mut rx, &mut received);
        low.progress().expect("the device counts right");
        rig.step().expect("the port lives");
        idle_steps = if received.len() == before { idle_steps + 1 } else { 0 };
        assert!(
            idle_steps < rig.max_idle_steps(),
            "{} of {} received",
            received.len(),
            low_sent + HIGH_FRAMES
        );
    }
    let places: Vec<usize> = (0..received.len()).filter(|i| received[*i][11] == HIGH).collect();
    assert_eq!(places.len(), HIGH_FRAMES);
    let (first, last) = (places[0], places[HIGH_FRAMES - 1]);
    assert_eq!(last - first + 1, HIGH_FRAMES, "low frames between the high ones, at {places:?}");
    assert!(
        last + 1 < received.len(),
        "no low frame waited, so this proved nothing: high frames at {places:?}"
    );
}
