//! One stream of bytes over two paths: a kernel's socket, and a window. The ledger says which path carries which bytes.
//!
//! The sender alone writes the ledger: before the first byte that leaves by another path it publishes at which byte of the stream that
//! path begins, and goes on. It waits for nobody, so a receiver that is stopped holds up no change of path, and a window that fails
//! costs no more than a store. The receiver takes from the socket only as many bytes as lie before the entry that comes next.
//!
//! Record 0068 (`docs/decisions/0068-sockets-by-preload.md`) says why the steps have the order that they have here; `tests/` has a
//! model of them that a checker goes through, whose mutants each lose or double a byte.
#![no_std]
#![forbid(unsafe_code)]

mod broken;
mod entry;
mod path;
mod receiver;
mod sender;
mod words;

pub use broken::Broken;
pub use path::{KernelPath, Path, Peeked, WindowLost, WindowPath};
pub use receiver::{Received, Receiver, Refused};
pub use sender::{Anew, Sender, Stays};
pub use words::{RECEIVER_WORDS, SENDER_WORDS};
