//! What carries the messages of a client to its server and back.

use std::time::Duration;

use beeline_window::Sent;

use crate::deadline::Deadline;
use crate::error::Loss;
use crate::payload::Payload;

/// Carries messages to one server and back: whole, in order and exactly once, until the server is lost. Non-blocking;
/// implemented over windows ([`crate::shm`]) and over a wire ([`crate::wire`]).
pub trait Transport {
    /// A message in the transport's memory.
    type Message<'a>: Payload
    where
        Self: 'a;

    /// Longest message in bytes; at least 64.
    fn max_message_bytes(&self) -> usize;

    /// Sends one message of two parts, if there is room: `head` of [`beeline_window::HEAD_BYTES`] bytes, or fewer when
    /// `rest` is empty.
    ///
    /// # Errors
    /// [`Loss`].
    fn try_send(&mut self, head: &[u8], rest: &[u8]) -> Result<Sent, Loss>;

    /// Sends one message whose first word is `word`, then `bytes`, if there is room.
    ///
    /// # Errors
    /// [`Loss`].
    fn try_send_prefixed(&mut self, word: u64, bytes: &[u8]) -> Result<Sent, Loss>;

    /// The next message, if one is there. Where several streams come together, a look at one of them. A loss that it finds
    /// is [`Transport::tend`]'s to tell: a result that may be an error would travel through memory with every message.
    fn poll(&mut self) -> Option<Self::Message<'_>>;

    /// A deadline as the server reads it.
    fn encode_deadline(&self, deadline: Deadline) -> u64;

    /// The client has abandoned this call: a hint to the server.
    fn cancel(&mut self, number: u32, slot: usize);

    /// The server has answered an abandoned call.
    fn uncancel(&mut self, slot: usize);

    /// What has to be done now and then: once in some tens of polls, and before every sleep.
    ///
    /// # Errors
    /// [`Loss`].
    fn tend(&mut self) -> Result<(), Loss>;

    /// Looks for a server again after a loss; `true` once there is one. Never blocks; called now and then.
    fn reconnect(&mut self) -> bool;

    /// Whether [`Transport::reconnect`] may ever find one. It cannot where the proof that let the client in was good once.
    fn looks_again(&self) -> bool {
        true
    }

    /// Announces a sleep; then [`Transport::has_news`] is asked, and the sleep begins or is cancelled.
    fn prepare_sleep(&mut self);

    /// Whether a poll may find something, on any stream.
    fn has_news(&mut self) -> bool;

    /// Sleeps until something may be there, at most `limit`.
    fn park(&mut self, limit: Duration);

    /// Takes [`Transport::prepare_sleep`] back.
    fn cancel_sleep(&mut self);
}
