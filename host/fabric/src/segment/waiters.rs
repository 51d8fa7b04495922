//! Calls that wait for an event of one segment, in the order in which they came.

use alloc::collections::VecDeque;

use crate::ids::{Nanos, Ticket};

#[derive(Debug, Default)]
pub(crate) struct Waiters(VecDeque<(Ticket, Option<Nanos>)>);

impl Waiters {
    pub(crate) fn push(&mut self, ticket: Ticket, until: Option<Nanos>) {
        self.0.push_back((ticket, until));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one that waits longest.
    pub(crate) fn pop(&mut self) -> Option<Ticket> {
        self.0.pop_front().map(|(ticket, _)| ticket)
    }

    /// One whose time is over.
    pub(crate) fn pop_late(&mut self, now: Nanos) -> Option<Ticket> {
        let late = self.0.iter().position(|(_, until)| until.is_some_and(|until| until <= now))?;
        self.0.remove(late).map(|(ticket, _)| ticket)
    }

    pub(crate) fn next_end(&self) -> Option<Nanos> {
        self.0.iter().filter_map(|(_, until)| *until).min()
    }
}
