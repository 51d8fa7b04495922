//! Message queues: bytes in order between two members, either way, through a segment of each.
//!
//! Each end has a segment, in which are a window that the other end sends into and the credits for its own window at the other end
//! (`header.rs`). Two ends are a pair when each has stored the other's number into its own segment (`opening.rs`); from then on both
//! store and load (`ends.rs`), and no call takes a lock of the member.

mod ends;
#[cfg(fuzzing)]
pub(crate) mod fuzzed;
mod header;
mod opening;
mod terms;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use beeline_fabric::{NodeId, Refusal};

use crate::segments::Segments;

use ends::Ends;
use header::Room;
use opening::{Opening, Step};
pub use terms::{QueueConfig, Received, Sent};

/// Some five hundred years.
const FOR_EVER: Duration = Duration::from_nanos(u64::MAX);

/// One end of a message queue. Its segment is removed when this is dropped; the other end then learns that it is gone, after what was
/// sent before.
///
/// All threads may use it. Bytes come in the order in which they were sent, and a receive may ask for fewer or more than one message had.
#[derive(Debug)]
pub struct MessageQueue {
    member: Arc<dyn Segments>,
    config: QueueConfig,
    room: Room,
    // Before `opening`, so that it is dropped before: windows go before the maps that they are in.
    ends: OnceLock<Ends>,
    opening: Mutex<Opening>,
}

impl MessageQueue {
    /// An end of a message queue of a member, which is to be opened ([`MessageQueue::open`]).
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: no messages, or messages of no bytes. [`Refusal::Nospc`]: the queue would have more than 1 GiB.
    /// [`Refusal::NoSuchNodeid`]: that of the groups.
    pub fn new(member: Arc<dyn Segments>, config: QueueConfig) -> Result<Self, Refusal> {
        member.check()?;
        if config.node == NodeId::GROUPS {
            // A group has no other end.
            return Err(Refusal::NoSuchNodeid);
        }
        Ok(MessageQueue {
            room: Room::of(config.max_messages, config.max_message_bytes)?,
            member,
            config,
            ends: OnceLock::new(),
            opening: Mutex::new(Opening::default()),
        })
    }

    /// Makes this end's segment, and waits until the other end is there and takes this one for its peer. May be called again until it succeeds;
    /// what was reached so far stays. Once it has, it succeeds at once, as long as the other end is there.
    ///
    /// # Errors
    /// [`Refusal::Timeout`]: the other end did not come in time. [`Refusal::ConnectionRefused`]: it has another peer, or its segment is no queue;
    /// it may be removed and made again. [`Refusal::NotConnected`]: the queue was open, and the other end has gone; both ends are made anew then.
    /// Others are those of making a segment and connecting to one.
    pub fn open(&self, timeout: Duration) -> Result<(), Refusal> {
        self.member.check()?;
        let mut opening = self.lock_opening();
        // A time that no clock reaches is none.
        let end = Instant::now().checked_add(timeout);
        loop {
            if let Some(ends) = self.ends.get() {
                return if ends.is_there() { Ok(()) } else { Err(Refusal::NotConnected) };
            }
            // With a time an attempt is never one that is made once, which takes as long as the other side does.
            let least = if timeout.is_zero() { Duration::ZERO } else { Duration::from_nanos(1) };
            let left = end.map_or(FOR_EVER, |end| end.saturating_duration_since(Instant::now()).max(least));
            let reason = match opening.step(&self.member, &self.config, &self.room, left)? {
                Step::Open(ends) => {
                    let _first = self.ends.set(*ends);
                    continue;
                }
                Step::Waiting => Refusal::Timeout,
                Step::Refused => Refusal::ConnectionRefused,
            };
            if end.is_some_and(|end| end <= Instant::now()) {
                return Err(reason);
            }
        }
    }

    /// Sends a message, if there is room for all of it and the links are up. Without bytes it is nothing that could be received, and not
    /// sent.
    ///
    /// # Errors
    /// [`Refusal::NotConnected`]: the queue is not open, or the other end is gone. [`Refusal::IllegalParameter`]: the message is longer
    /// than what either end has said.
    pub fn send(&self, message: &[u8]) -> Result<Sent, Refusal> {
        self.there()?.send(message)
    }

    /// As [`MessageQueue::send`], and looks afterwards whether the message has come into the memory of an end that was there.
    ///
    /// # Errors
    /// As [`MessageQueue::send`]. With [`Refusal::NotConnected`] it is not known whether the other end had the message.
    pub fn send_checked(&self, message: &[u8]) -> Result<Sent, Refusal> {
        self.there()?.send_checked(message)
    }

    /// Fills `into` with the next bytes, if so many have come.
    ///
    /// # Errors
    /// [`Refusal::NotConnected`]: the queue is not open; or the other end is gone, and too few of its bytes are left.
    /// [`Refusal::IllegalParameter`]: `into` is larger than the queue.
    pub fn receive(&self, into: &mut [u8]) -> Result<Received, Refusal> {
        let ends = self.there()?;
        if into.len() as u64 > self.room.bytes() {
            return Err(Refusal::IllegalParameter);
        }
        ends.receive(into)
    }

    /// How many bytes a message could have that is sent now, as this end knows without looking: a hint.
    pub fn free_bytes(&self) -> usize {
        self.ends.get().map_or(0, Ends::free_bytes)
    }

    /// The longest message that both ends take; `None` while the queue is not open.
    pub fn longest_bytes(&self) -> Option<usize> {
        self.ends.get().map(Ends::longest_bytes)
    }

    /// How many bytes this end has taken out of the window and not given to the program yet: a hint, more may have come.
    pub fn kept_bytes(&self) -> usize {
        self.ends.get().map_or(0, Ends::kept_bytes)
    }

    fn there(&self) -> Result<&Ends, Refusal> {
        // Whether this process still is a member the sequence knows, without a lock.
        if !self.member.is_ours() {
            return Err(Refusal::System);
        }
        self.ends.get().ok_or(Refusal::NotConnected)
    }

    fn lock_opening(&self) -> MutexGuard<'_, Opening> {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for MessageQueue {
    fn drop(&mut self) {
        // First, without its windows the maps can go.
        drop(self.ends.take());
        if self.member.is_ours() {
            self.lock_opening().end(&self.member);
        }
    }
}
