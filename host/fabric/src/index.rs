//! Which segments and connections anything is to be done for, so that a look costs as many as these, and not as many as there are.

use alloc::collections::BTreeSet;
use core::ops::Bound::{Excluded, Unbounded};

use crate::ids::{LocalSegment, RemoteSegment};

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    /// Segments that calls wait for an event of.
    waiting_locals: BTreeSet<LocalSegment>,
    /// Connections that calls wait for an event of.
    waiting_remotes: BTreeSet<RemoteSegment>,
    connecting: BTreeSet<RemoteSegment>,
    callback_locals: BTreeSet<LocalSegment>,
    callback_remotes: BTreeSet<RemoteSegment>,
}

impl Index {
    pub(crate) fn set_local(&mut self, handle: LocalSegment, is_waited_for: bool, has_callback: bool) {
        put(&mut self.waiting_locals, handle, is_waited_for);
        put(&mut self.callback_locals, handle, has_callback);
    }

    pub(crate) fn set_remote(
        &mut self,
        handle: RemoteSegment,
        is_connecting: bool,
        (is_waited_for, has_callback): (bool, bool),
    ) {
        put(&mut self.connecting, handle, is_connecting);
        put(&mut self.waiting_remotes, handle, is_waited_for);
        put(&mut self.callback_remotes, handle, has_callback);
    }

    pub(crate) fn waiting_locals(&self) -> impl Iterator<Item = LocalSegment> {
        self.waiting_locals.iter().copied()
    }

    pub(crate) fn waiting_remotes(&self) -> impl Iterator<Item = RemoteSegment> {
        self.waiting_remotes.iter().copied()
    }

    pub(crate) fn connecting(&self) -> impl Iterator<Item = RemoteSegment> {
        self.connecting.iter().copied()
    }

    /// Whether anybody here hears of connections to a segment of this member.
    pub(crate) fn is_listening(&self) -> bool {
        !(self.callback_locals.is_empty() && self.waiting_locals.is_empty())
    }

    /// The next number above `last` of something that has a callback.
    pub(crate) fn next_callback(&self, last: u64) -> Option<u64> {
        let local = self.callback_locals.range((Excluded(LocalSegment(last)), Unbounded)).next();
        let remote = self.callback_remotes.range((Excluded(RemoteSegment(last)), Unbounded)).next();
        local.map(|it| it.0).into_iter().chain(remote.map(|it| it.0)).min()
    }
}

fn put<T: Ord>(set: &mut BTreeSet<T>, item: T, is_in: bool) {
    if is_in {
        set.insert(item);
    } else {
        set.remove(&item);
    }
}
