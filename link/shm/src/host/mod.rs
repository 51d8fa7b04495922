//! The host's half: windows, doorbells, registers and memory of a port of another process.

mod channel;
mod connection;
mod link;
mod memory;
mod window;

pub use link::{ShmLink, ShmOptions};
pub use memory::ShmMemory;
pub use window::{ShmDoorbell, ShmWindow};
