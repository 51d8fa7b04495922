//! Messages through a window: credits, order recovery, escapes and batches, over any memory.
//!
//! A [`Writer`] turns messages into plain stores that nobody orders; a [`Receiver`] recovers the order and hands the
//! messages out where they lie ([`Message`]). Both are non-blocking state machines over the ports of `contract/memory`:
//! the same code runs on a peer's memory, on a NIC's window, on simulated time and under loom. Waiting is outside them:
//! who waits brings a [`beeline_contract_memory::Wait`], as `os/wait` has it.
//!
//! What is *not* here: memory and store instructions (`os/mmio`), who the peer is and whether it lives
//! (`os/domain`), what a NIC does with a window (`nic/model`). No `unsafe`, no system call, no allocation after
//! construction; no atomic but where several threads receive from one window (`SharedWindow`) or send into one (`Shared`).
//!
//! Without the feature `std` this needs only `core` and `alloc`, so that firmware or a kernel can hold an end of a window;
//! `SharedWindow` and `Shared`, which have locks, and the traits of `std::io` are then not there.
//!
//! Papers: HotOS'25 §3.1 (next start, valid vector), §3.4 (address reuse without fences); the escape replaces the
//! end-of-packet signature of kPIO+WC §III.A, which loses a packet in 2^64.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod arrival;
mod batch;
mod bulk;
mod bytes;
mod config;
mod credit;
mod delivery;
mod drain;
mod error;
pub mod lap;
mod message;
mod message_ref;
mod observed;
mod order;
mod pace;
mod payload;
mod phase;
mod prefetch;
mod receiver;
mod reservation;
mod sent;
mod set;
#[cfg(feature = "std")]
mod shared;
mod stream;
#[cfg(feature = "std")]
mod sync;
#[cfg(feature = "std")]
mod turns;
mod wait;
mod writer;

pub use arrival::{ArrivalTest, Blank};
pub use batch::Batch;
pub use beeline_contract_memory::WaitPolicy;
pub use bytes::{ByteRead, ByteReader, ByteWriteError, ByteWriter, MESSAGE_LINES};
pub use config::{FencePolicy, Position, UnknownPolicy, WindowConfig};
pub use error::{CreditError, ReceiveError, SendError, SenderEnd, Torn, WriteError};
pub use message::Message;
pub use message_ref::MessageRef;
pub use observed::{DataBuffer, Observed};
pub use payload::HEAD_BYTES;
pub use receiver::{COALESCE_PARTS, PREFETCH_LINES, Receiver};
pub use reservation::Reservation;
pub use sent::{Sent, Taken};
pub use set::{IDLE_PASSES, MemberError, MemberId, ReceiverSet};
#[cfg(feature = "std")]
pub use shared::{Finished, SharedMessage, SharedReceiver, SharedWindow};
#[cfg(feature = "std")]
pub use turns::{Shared, Turn};
pub use writer::Writer;

#[cfg(test)]
#[allow(dead_code, missing_docs, reason = "shared with the integration tests, which use the rest of it")]
mod test_memory;
