//! The messages of one data interrupt, of whoever sends them.

use std::sync::Arc;

use beeline_fabric::{MAX_MESSAGE_BYTES, MemberNumber, PairId, Place, has_begun};
use beeline_window::ReceiveError;

use crate::words::View;
use crate::yard::{Inlet, Yard};

/// What a member that triggers interrupts of this one has in common with it.
#[derive(Debug)]
pub(crate) struct User {
    /// What it says that it uses, and its counts.
    pub(crate) uses: View,
    pub(crate) yard: Yard,
}

/// What has come of a data interrupt and was not taken. Each member's messages come in their order; members take turns.
#[derive(Debug)]
pub(crate) struct Inbox {
    owner: MemberNumber,
    place: Place,
    senders: Vec<Sender>,
    /// Whose turn it is.
    next: usize,
    /// A message for which the caller's buffer was too small.
    kept: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Sender {
    pair: PairId,
    user: Arc<User>,
    state: State,
    is_gone: bool,
}

#[derive(Debug)]
enum State {
    /// It has not said yet that messages may come.
    Silent,
    Open(Box<Inlet>),
    /// What it sent was no message: nothing of it is believed any more.
    Struck,
}

/// A buffer that is smaller than the message: the bytes that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooSmall(pub(crate) usize);

impl Inbox {
    pub(crate) fn new(owner: MemberNumber, place: Place) -> Self {
        Inbox { owner, place, senders: Vec::new(), next: 0, kept: None }
    }

    pub(crate) fn admit(&mut self, pair: PairId, user: Arc<User>) {
        self.senders.push(Sender { pair, user, state: State::Silent, is_gone: false });
    }

    /// Learns that a member is gone. What it has sent is still taken.
    pub(crate) fn gone(&mut self, pair: PairId) {
        for sender in self.senders.iter_mut().filter(|sender| sender.pair == pair) {
            sender.is_gone = true;
            if let State::Open(inlet) = &mut sender.state {
                inlet.sender_gone();
            }
        }
    }

    /// Whether there is a message. It is kept for the next that takes one.
    pub(crate) fn has_message(&mut self) -> bool {
        if self.kept.is_none() {
            let mut message = vec![0; MAX_MESSAGE_BYTES];
            if let Some(Ok(bytes)) = self.take(&mut message) {
                message.truncate(bytes);
                self.kept = Some(message);
            }
        }
        self.kept.is_some()
    }

    /// Takes the next message, and says how long it is. One that is longer than `into` stays.
    pub(crate) fn take(&mut self, into: &mut [u8]) -> Option<Result<usize, TooSmall>> {
        if let Some(kept) = self.kept.take() {
            let Some(into) = into.get_mut(..kept.len()) else {
                let needed = TooSmall(kept.len());
                self.kept = Some(kept);
                return Some(Err(needed));
            };
            into.copy_from_slice(&kept);
            return Some(Ok(kept.len()));
        }
        for turn in 0..self.senders.len() {
            let index = (self.next + turn) % self.senders.len();
            let taken = self.senders[index].take((self.owner, self.place), into);
            let Some(taken) = taken else { continue };
            self.next = index + 1;
            return Some(match taken {
                Taken::Whole(bytes) => Ok(bytes),
                Taken::Kept(message) => {
                    let needed = TooSmall(message.len());
                    self.kept = Some(message);
                    Err(needed)
                }
            });
        }
        self.senders.retain(|sender| !sender.is_over());
        None
    }
}

enum Taken {
    Whole(usize),
    Kept(Vec<u8>),
}

impl Sender {
    fn take(&mut self, (owner, place): (MemberNumber, Place), into: &mut [u8]) -> Option<Taken> {
        let is_silent = matches!(self.state, State::Silent) && self.user.yard.has(place.slot);
        if is_silent && has_begun(&self.user.uses, place) {
            let mut inlet = self.user.yard.inlet(owner, place);
            if self.is_gone {
                inlet.sender_gone();
            }
            self.state = State::Open(Box::new(inlet));
        }
        let State::Open(inlet) = &mut self.state else { return None };
        match receive(inlet, into) {
            Ok(taken) => taken,
            Err(error) => {
                if !matches!(error, ReceiveError::Gone | ReceiveError::Torn(_)) {
                    tracing::warn!(%error, "a member has stored what is no message of a data interrupt");
                }
                self.state = State::Struck;
                None
            }
        }
    }

    /// Whether it is gone and nothing of it is left.
    fn is_over(&self) -> bool {
        self.is_gone && !matches!(self.state, State::Open(_))
    }
}

/// The next message of one member, copied.
#[inline]
fn receive(inlet: &mut Inlet, into: &mut [u8]) -> Result<Option<Taken>, ReceiveError> {
    let Some(mut message) = inlet.poll()? else { return Ok(None) };
    let bytes = message.len();
    let taken = match into.get_mut(..bytes) {
        Some(into) => {
            message.copy_out(into);
            Taken::Whole(bytes)
        }
        None => {
            let mut kept = vec![0; bytes];
            message.copy_out(&mut kept);
            Taken::Kept(kept)
        }
    };
    drop(message);
    // At once: the next trigger finds the room.
    inlet.push_credits();
    Ok(Some(taken))
}
