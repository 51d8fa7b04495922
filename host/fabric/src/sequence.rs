//! Sequences: whether anything happened to a connection while a program stored.

use crate::link::LinkWord;

/// What a sequence finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceStatus {
    /// Nothing happened.
    Ok,
    /// A link was down and is up again: what was stored may be stored again, in a new sequence.
    Retriable,
    /// The segment or its member is gone.
    NotRetriable,
    /// A link is down.
    Pending,
}

/// How a connection stood when a sequence began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceStart {
    own: u64,
    theirs: u64,
}

/// How a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Both links are as they say.
    There { own: LinkWord, theirs: LinkWord },
    /// The segment or its member is gone.
    Gone,
}

impl Standing {
    pub(crate) fn is_up(self) -> bool {
        matches!(self, Standing::There { own, theirs } if own.is_up && theirs.is_up)
    }

    pub(crate) fn start(self) -> (SequenceStatus, Option<SequenceStart>) {
        match self {
            Standing::Gone => (SequenceStatus::NotRetriable, None),
            Standing::There { own, theirs } if self.is_up() => {
                (SequenceStatus::Ok, Some(SequenceStart { own: own.word(), theirs: theirs.word() }))
            }
            Standing::There { .. } => (SequenceStatus::Pending, None),
        }
    }

    pub(crate) fn check(self, start: SequenceStart) -> SequenceStatus {
        match self {
            Standing::Gone => SequenceStatus::NotRetriable,
            Standing::There { own, theirs } if (own.word(), theirs.word()) == (start.own, start.theirs) => {
                SequenceStatus::Ok
            }
            _ if self.is_up() => SequenceStatus::Retriable,
            Standing::There { .. } => SequenceStatus::Pending,
        }
    }
}
