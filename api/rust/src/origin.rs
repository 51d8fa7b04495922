//! Where the windows of a receiver come from.

use std::time::Duration;

use beeline_domain::{Event, ReceiverParts, WindowListener};

/// Where the windows of a receiver come from.
#[derive(Debug)]
pub(crate) enum Origin {
    /// A name to which one sender comes after the other.
    Name(WindowListener),
    /// An arena, of which the receiver has one window and gets no other.
    Arena,
}

impl Origin {
    /// Whether another sender may come when one has ended.
    pub(crate) fn has_next(&self) -> bool {
        matches!(self, Origin::Name(_))
    }

    pub(crate) fn try_accept(&self) -> Option<ReceiverParts> {
        match self {
            Origin::Name(listener) => listener.try_accept(),
            Origin::Arena => None,
        }
    }

    pub(crate) fn accept(&self, timeout: Duration) -> Option<ReceiverParts> {
        match self {
            Origin::Name(listener) => listener.accept(timeout),
            Origin::Arena => None,
        }
    }

    pub(crate) fn signal(&self, event: Option<&Event>) {
        if let Origin::Name(listener) = self {
            listener.signal(event);
        }
    }
}
