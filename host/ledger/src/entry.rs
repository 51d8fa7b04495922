//! Entries of the ledger.

use beeline_contract_adapter::{PublishPort, ViewPort};

use crate::broken::Broken;
use crate::words;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// From here on by the window.
    Up,
    /// From here on by the socket.
    Down,
    /// By the socket, from a byte on that the receiver has come to: it has asked for it, or the sender leaves the window for ever.
    Resume,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub kind: Kind,
    /// The byte of the stream at which it counts.
    pub offset: u64,
    /// Bytes that the socket had been given before.
    pub given: u64,
}

/// The kind stands in the low bits, above it the number of the entry, so that what a slot had before is told from what it has now.
const KIND_BITS: u32 = 2;

fn word_of(kind: Kind, index: u64) -> u64 {
    let kind = match kind {
        Kind::Up => 1,
        Kind::Down => 2,
        Kind::Resume => 3,
    };
    index << KIND_BITS | kind
}

impl Entry {
    /// Publishes it; `index` counts from 1 on.
    pub fn publish(self, port: &mut impl PublishPort, index: u64) {
        port.publish(words::offset(index), self.offset);
        port.publish(words::given(index), self.given);
        // Behind both, so whoever finds the number finds them.
        port.publish(words::head(index), word_of(self.kind, index));
    }

    /// Loads the entry of a number, if it is there: each word once.
    pub fn load(view: &impl ViewPort, index: u64) -> Result<Option<Self>, Broken> {
        let word = view.load(words::head(index));
        if word >> KIND_BITS != index << KIND_BITS >> KIND_BITS {
            return Ok(None);
        }
        let kind =
            [Kind::Up, Kind::Down, Kind::Resume].into_iter().find(|kind| word_of(*kind, index) == word);
        let kind = kind.ok_or(Broken::Kind { index, word })?;
        let (offset, given) = (view.load(words::offset(index)), view.load(words::given(index)));
        Ok(Some(Entry { kind, offset, given }))
    }
}
