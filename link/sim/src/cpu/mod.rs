//! A core, its write-combining buffers, and the cost of what a program does with them.
//!
//! From: a program, by way of [`crate::machine`]. To: the root complex, as pieces of lines and loads. Not here: memory
//! that is cached, whose lines cost time and go nowhere.

mod core;
mod interrupts;
mod settings;
mod write_combining;

pub use self::core::{Core, CoreOutlet, Load, Operation};
pub use settings::{CoreSettings, CoreSettingsError, FenceAck, Release};
pub use write_combining::{Blocked, Kept, Outlet, Piece, WriteCombining};
