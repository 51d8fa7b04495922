//! `coherent`: entries of lines in host memory that pass from producer to consumer and back with their own header.
//!
//! To send, the host fills the next entry of a ring, header last; the device, which keeps a copy of the line, is told when
//! it changes ([`crate::watch_port`]), takes short frames from the entry itself and fetches those that it names
//! ([`tx_lines`]). To receive, the device fills the next entry of another ring, and a buffer where a frame does not fit
//! ([`rx_lines`]). Each gives an entry back by clearing the owner bit of its header. No doorbell, no tail, no head count,
//! no credit: nothing but the lines is written or read by either side.
//!
//! The rings of entries are small and lines are given back soon, so that they stay in the two caches; buffers are taken
//! last in, first out, so that one used lately is used again.
//!
//! From: changes of watched lines, answers to reads; frames from the wire. To: the egress arbiter, by `FrameSource`; host
//! memory. Schuh et al., ASPLOS'24 (CC-NIC); HotOS'25 §4.2.

mod entries;
mod rx_lines;
#[cfg(test)]
mod tests;
mod tx_lines;

pub(crate) use rx_lines::RxLines;

use crate::fetch::Fetching;

/// The transmit engine of coherent lines.
pub(crate) type CoherentEngine = Fetching<tx_lines::TxLines>;
