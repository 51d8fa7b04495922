//! `niq`: small packets whole in a queue entry in the BAR, written to send and read to receive.
//!
//! To send, the host stores an entry of fixed size (64, 128 or 256 bytes) into the next place of the queue's window: a
//! short frame whole, a longer one's address ([`tx_entries`]). That is all: no descriptor, no doorbell. To receive, it
//! reads the next entry at the same addresses ([`rx_entries`]); a read of an entry that is not there yet is held until
//! a frame comes or its time is up ([`held_reads`]), so that a host that polls costs one crossing a frame and none in
//! vain. Frames longer than an entry go through the queue's receive ring, and their entry says so.
//!
//! Entries must arrive in order, one whole before the next begins, so the sender fences after each; bytes of one entry
//! may arrive in any order. `mmio` does not need that.
//!
//! From: writes to and reads of the window; frames from the wire. To: the egress arbiter, by `FrameSource`; completions
//! of reads. Flajslik & Rosenblum, ATC'13 (NIQ).

mod held_reads;
mod rx_entries;
#[cfg(test)]
mod tests;
mod tx_entries;

pub(crate) use held_reads::HeldReads;
pub(crate) use rx_entries::{Found, RxEntries};

use crate::fetch::Fetching;

/// The transmit engine of entries in the BAR.
pub(crate) type NiqEngine = Fetching<tx_entries::TxEntries>;
