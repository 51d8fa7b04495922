//! What has become of segments and connections, taken into the index.

use alloc::vec::Vec;

use beeline_contract_adapter::Adapter;

use crate::ids::{LocalSegment, RemoteSegment};
use crate::member::Member;
use crate::segment::remote::Stage;

impl<A: Adapter> Member<A> {
    /// Takes in what has become of a segment: after it is made, waited for, told of or removed.
    pub(crate) fn note_local(&mut self, handle: LocalSegment) {
        let local = self.locals.get(&handle);
        let is_waited_for = local.is_some_and(|local| !local.waiters.is_empty());
        self.index.set_local(handle, is_waited_for, local.is_some_and(|local| local.has_callback));
    }

    /// Takes in what has become of a connection, as [`Member::note_local`] does, and after it is made or refused.
    pub(crate) fn note_remote(&mut self, handle: RemoteSegment) {
        let remote = self.remotes.get(&handle);
        let is_connecting = remote.is_some_and(|remote| matches!(remote.stage, Stage::Connecting(_)));
        let is_waited_for = remote.is_some_and(|remote| !remote.waiters.is_empty());
        let has_callback = remote.is_some_and(|remote| remote.has_callback);
        self.index.set_remote(handle, is_connecting, (is_waited_for, has_callback));
    }

    /// Whether everything that has become of segments and connections was taken in.
    pub(crate) fn has_noted_all(&mut self) -> bool {
        let noted = core::mem::take(&mut self.index);
        let locals: Vec<_> = self.locals.keys().copied().collect();
        let remotes: Vec<_> = self.remotes.keys().copied().collect();
        locals.into_iter().for_each(|handle| self.note_local(handle));
        remotes.into_iter().for_each(|handle| self.note_remote(handle));
        core::mem::replace(&mut self.index, noted) == self.index
    }
}
