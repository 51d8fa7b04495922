//! Lap windows: several receivers, none of which ever writes the window.
//!
//! In a blank window the receiver overwrites what it has read, so there is one of it and its mapping is writable. Here bit 63
//! of each word is the lap, which flips each time the window goes round, and a word has arrived when it has the lap that is
//! due (`beeline_spec::lap`). A receiver only loads: its mapping may be read-only, the memory need not be coherent, and any
//! number of receivers see the same messages. No payload is lost or changed by it: the bits that laps displace travel in the
//! message. A [`LapWriter`] stores a line again only after every receiver that joined has said that it has all of it, each by
//! a count of its own in memory of the sender. See docs/decisions/0024-lap-bits.md for when to use which.
//!
//! Only whole messages: no reservations, no batches, no void messages. Nobody wakes a receiver of several, so they poll, or
//! the caller's port wakes them ([`beeline_contract_memory::StorePort::wake_receiver`]). As in a blank window nothing is
//! fenced, but when a receiver joins.

mod delivery;
mod error;
mod message;
mod reader_id;
mod readers;
mod receiver;
mod writer;

pub use error::LapSendError;
pub use message::LapMessage;
pub use reader_id::ReaderId;
pub use receiver::LapReceiver;
pub use writer::LapWriter;

#[cfg(test)]
pub(crate) mod test_memory;
#[cfg(test)]
mod tests;
