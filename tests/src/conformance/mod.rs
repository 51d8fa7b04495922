//! Conformance: what every interface promises on every link, as bodies that know neither.
//!
//! A body takes a [`Rig`] and a [`Setup`] (which interface, what disorder, which way to receive), opens queues with the
//! real host halves, and panics with the numbers when a promise is broken. The promises: every frame of a legal length
//! arrives once, in the order of its queue, byte for byte (padded where the interface declares it); an illegal one is
//! refused and harms nothing; a full queue says so and loses nothing; a higher class goes first; checksums are filled in
//! where that is asked for; a closed queue leaves nothing behind. What an interface declares it does *not* bear is shown
//! by [`limits`].
//!
//! Enter from: `tests/memory.rs`, or the test of another link. Not here: timings, processes that die.

pub mod checksums;
mod exchange;
mod frames;
pub mod life;
pub mod limits;
pub mod priority;
mod setup;
pub mod transport;

pub use setup::{Disorder, LongFrames, Reception, Setup};

use crate::Rig;

/// Every body but those about limits, one after the other, each on a device that was reset.
///
/// # Panics
/// When the interface breaks a promise.
pub fn all<R: Rig>(rig: &mut R, setup: &Setup) {
    all_but_priority(rig, setup);
    priority::higher_class_first(rig, setup);
    rig.restart();
}

/// The same for a device whose engine of the interface keeps one order over all its queues.
///
/// # Panics
/// When the interface breaks a promise.
pub fn all_but_priority<R: Rig>(rig: &mut R, setup: &Setup) {
    let bodies: [fn(&mut R, &Setup); 9] = [
        transport::every_length,
        transport::bursts,
        transport::telling_payloads,
        transport::illegal_lengths,
        transport::back_pressure,
        transport::several_queues,
        checksums::filled_in,
        life::lives,
        life::reset,
    ];
    for body in bodies {
        body(rig, setup);
        rig.restart();
    }
}
