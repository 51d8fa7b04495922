//! Both ways to a node that is there: its message queue, and what wakes it.
//!
//! A queue carries bytes. A packet is one message of it: its length, four bytes, and the packet.

use beeline_fabric::Refusal;
use beeline_fabric_process::{MessageQueue, Received, Sent};

use crate::joined::OtherInterrupt;

/// Bytes before a packet.
pub(crate) const HEAD_BYTES: usize = 4;

#[derive(Debug)]
pub(crate) struct Line {
    queue: MessageQueue,
    trigger: OtherInterrupt,
}

/// The other end is gone, or breaks the rules: what was on its way is lost, and both ends begin anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

impl Line {
    pub(crate) fn new(queue: MessageQueue, trigger: OtherInterrupt) -> Self {
        Line { queue, trigger }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.queue.open(std::time::Duration::ZERO).is_ok()
    }

    /// Sends a packet, which lies behind [`HEAD_BYTES`] that are written here; whether there was room, and a link.
    #[inline]
    pub(crate) fn send(&self, framed: &mut [u8]) -> Result<bool, Gone> {
        let bytes = (framed.len() - HEAD_BYTES) as u32;
        framed[..HEAD_BYTES].copy_from_slice(&bytes.to_le_bytes());
        match self.queue.send(framed) {
            Ok(Sent::Sent) => Ok(true),
            Ok(Sent::Full) => Ok(false),
            // The other end takes shorter ones: its device has a smaller MTU. It is a loss of this packet alone.
            Err(Refusal::IllegalParameter) => Ok(false),
            Err(_) => Err(Gone),
        }
    }

    /// Wakes the other node, if it sleeps. Where no link is up it looks by itself before long.
    #[inline]
    pub(crate) fn ring(&self) -> Result<(), Gone> {
        match self.trigger.trigger() {
            Err(Refusal::NotConnected) => Err(Gone),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The next packet, in `packet`, which has room for the longest; how many bytes it has.
    #[inline]
    pub(crate) fn receive(&self, packet: &mut [u8]) -> Result<Option<usize>, Gone> {
        let mut head = [0; HEAD_BYTES];
        match self.queue.receive(&mut head) {
            Ok(Received::All) => {}
            Ok(Received::TooFew) => return Ok(None),
            Err(_) => return Err(Gone),
        }
        let bytes = u32::from_le_bytes(head) as usize;
        let room = packet.get_mut(..bytes).ok_or(Gone)?;
        // It came with its head.
        match self.queue.receive(room) {
            Ok(Received::All) => Ok(Some(bytes)),
            Ok(Received::TooFew) | Err(_) => Err(Gone),
        }
    }
}
