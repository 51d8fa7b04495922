//! The messages of one data interrupt, of whoever sends them.

use std::sync::Arc;

use super::yard::{Inlet, inlet, is_of};
use crate::space::Space;
use beeline_fabric::{MAX_MESSAGE_BYTES, MemberNumber, PairId, Place};

/// What has come of a data interrupt and was not taken. Each member's messages come in their order; members take turns.
#[derive(Debug)]
pub(crate) struct Inbox {
    owner: MemberNumber,
    place: Place,
    senders: Vec<Sender>,
    /// Whose turn it is.
    next: usize,
    /// A message that was looked at, or for which the caller's buffer was too small.
    kept: Option<Vec<u8>>,
}

/// A member that may send, and its slot.
#[derive(Debug)]
struct Sender {
    pair: PairId,
    slot: usize,
    /// The window that is this interrupt's, its word, and the end of it here; nothing behind what was no message.
    open: Option<(usize, u64, Option<Box<Inlet>>)>,
    is_gone: bool,
}

/// A buffer that is smaller than the message: the bytes that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooSmall(pub(crate) usize);

impl Inbox {
    pub(crate) fn new(owner: MemberNumber, place: Place) -> Self {
        Inbox { owner, place, senders: Vec::new(), next: 0, kept: None }
    }

    /// Takes in the member of a slot. What an earlier one of the slot has sent and nobody has taken is lost.
    pub(crate) fn admit(&mut self, pair: PairId, slot: usize) {
        self.senders.retain(|sender| sender.slot != slot);
        self.senders.push(Sender { pair, slot, open: None, is_gone: false });
    }

    /// Learns that a member is gone. What it has sent is still taken, until another member has its slot.
    pub(crate) fn gone(&mut self, pair: PairId) {
        for sender in self.senders.iter_mut().filter(|sender| sender.pair == pair) {
            sender.is_gone = true;
        }
    }

    /// Takes the next message, and says how long it is. One that is longer than `into` stays.
    pub(crate) fn take(
        &mut self,
        (space, own): (&Arc<Space>, usize),
        into: &mut [u8],
    ) -> Option<Result<usize, TooSmall>> {
        self.has_message((space, own));
        let kept = self.kept.take()?;
        let Some(into) = into.get_mut(..kept.len()) else {
            let needed = TooSmall(kept.len());
            self.kept = Some(kept);
            return Some(Err(needed));
        };
        into.copy_from_slice(&kept);
        Some(Ok(kept.len()))
    }

    /// Whether there is a message, which is the next one then.
    pub(crate) fn has_message(&mut self, (space, own): (&Arc<Space>, usize)) -> bool {
        if self.kept.is_none() {
            self.kept = self.receive(space, own);
        }
        self.kept.is_some()
    }

    fn receive(&mut self, space: &Space, own: usize) -> Option<Vec<u8>> {
        let count = self.senders.len();
        for turn in 0..count {
            let at = (self.next + turn) % count;
            let message = self.senders[at].receive(space, own, (self.owner, self.place));
            if message.is_some() {
                self.next = at + 1;
                return message;
            }
        }
        self.senders.retain(|sender| !sender.is_gone);
        None
    }
}

impl Sender {
    fn receive(
        &mut self,
        space: &Space,
        own: usize,
        (owner, place): (MemberNumber, Place),
    ) -> Option<Vec<u8>> {
        let pair = (self.slot, own);
        let word = |at| space.window_word(pair, at).load_acquire();
        if self.open.as_ref().is_none_or(|(at, opened, _)| word(*at) != *opened) {
            let found = (0..space.layout.windows()).map(|at| (at, word(at)));
            let found = found.into_iter().find(|(_, word)| is_of(*word, place));
            self.open =
                found.map(|(at, word)| (at, word, Some(Box::new(inlet(space, pair, at, (owner, word))))));
        }
        let (_, _, inlet) = self.open.as_mut()?;
        match receive(inlet.as_mut()?) {
            Ok(message) => message,
            Err(NoMessage) => {
                tracing::warn!(
                    slot = self.slot,
                    "a member has stored what is no message of a data interrupt"
                );
                *inlet = None;
                None
            }
        }
    }
}

/// What no sound member sends.
struct NoMessage;

/// The next message of one member, copied.
fn receive(inlet: &mut Inlet) -> Result<Option<Vec<u8>>, NoMessage> {
    let Some(mut message) = inlet.poll().map_err(|_| NoMessage)? else { return Ok(None) };
    if message.len() > MAX_MESSAGE_BYTES {
        return Err(NoMessage);
    }
    let mut copied = vec![0; message.len()];
    message.copy_out(&mut copied);
    drop(message);
    // At once: the next trigger finds the room.
    inlet.push_credits();
    Ok(Some(copied))
}
