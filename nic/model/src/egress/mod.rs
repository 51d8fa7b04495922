//! What goes on the wire next.
//!
//! Engines say which queues have a frame ([`Scheduler::frame_ready`]); the device asks for the next queue whenever the
//! wire takes a frame. Frames themselves stay with their engine until they go out; one that the wire has taken a part of
//! is told apart ([`Wire`]). Source of the QoS: Larsen & Lee, NAS'15,
//! §V ("a core can control I/O transactions based on priority").

mod checksums;
mod scheduler;
mod wire;

pub(crate) use checksums::fill_in;
pub(crate) use scheduler::Scheduler;
pub(crate) use wire::{OnWire, Wire};
