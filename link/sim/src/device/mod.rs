//! A device in time: what stands between its pins and the logic behind `contract/device`'s trait.
//!
//! The logic is a pure state machine without a notion of how long anything takes; this gives each of its wants a time.
//! From: the link. To: the logic, and back. Not here: the logic, and what it means ([`crate::machine`] calls it).

mod ports;
mod settings;
mod wire;

pub use ports::{Line, Ports, Server};
pub use settings::{DeviceSettings, Rate};
pub use wire::{Transmitted, Wire};
