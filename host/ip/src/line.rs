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

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    Sent,
    /// There is no room, or no link.
    Full,
    /// The device of the other node has a smaller MTU.
    TooLong {
        longest_bytes: u16,
    },
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
    pub(crate) fn send(&self, framed: &mut [u8]) -> Result<Put, Gone> {
        let bytes = (framed.len() - HEAD_BYTES) as u32;
        framed[..HEAD_BYTES].copy_from_slice(&bytes.to_le_bytes());
        match self.queue.send(framed) {
            Ok(Sent::Sent) => Ok(Put::Sent),
            Ok(Sent::Full) => Ok(Put::Full),
            Err(Refusal::IllegalParameter) => {
                let longest = self.queue.longest_bytes().map_or(0, |bytes| bytes.saturating_sub(HEAD_BYTES));
                Ok(Put::TooLong { longest_bytes: u16::try_from(longest).unwrap_or(u16::MAX) })
            }
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
