//! Segments to which not everybody may connect.

use std::sync::{Arc, PoisonError};

use beeline_fabric::{Access, Call, LocalSegment, Part, Refusal, RemoteSegment, Value};
use beeline_mmio::{MemoryOptions, SharedMemory};

use super::{Of, Shared};
use crate::error::NotCreated;
use crate::fetch::Own;
use crate::pair::Pair;
use crate::users::Exports;

impl Shared {
    pub(crate) fn set_exports(&self, exports: Exports) {
        *self.exports.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(exports);
    }

    /// Makes a segment to which those may connect who are on the list of its number, if there is one.
    pub(crate) fn create_exported(&self, call: Call) -> Result<Value, NotCreated> {
        let exports = Arc::clone(&self.exports.read().unwrap_or_else(PoisonError::into_inner));
        let made = self.create(call)?;
        if let Value::Local(local, id) = made
            && let Some(access) = exports.of(id)
        {
            // Others find it already, and it is not available to them before it is returned.
            self.export(local, access.clone()).inspect_err(|_| {
                let _gone = self.call(Call::RemoveSegment { local, is_forced: true });
            })?;
        }
        Ok(made)
    }

    /// Says who may connect to a segment, which gets a memory of its own.
    pub(crate) fn export(&self, local: LocalSegment, access: Access) -> Result<(), Refusal> {
        self.check_process()?;
        let bytes = self.enter(|state, _| state.member.can_export(local))?;
        let create = |bytes| {
            let bytes = usize::try_from(bytes).map_err(|_| Refusal::Nospc)?;
            let memory = SharedMemory::create("beeline-exported", bytes, MemoryOptions::default());
            memory.map(Arc::new).map_err(|_| Refusal::Nospc)
        };
        let memory = bytes.map(create).transpose()?;
        self.enter(|state, _| {
            // Another thread may have given it a memory meanwhile.
            if state.member.can_export(local)?.is_some() != memory.is_some() {
                return Err(Refusal::IllegalOperation);
            }
            state.member.export(local, access)?;
            // In the same hold of the lock: nobody is connected to what has no memory here.
            state.own.extend(memory.map(|memory| (local, Own::whole(memory))));
            Ok(())
        })
    }

    /// Connects, and finds out whether this member may: who may not is not passed the memory. A connection that is made later finds that
    /// out when it is mapped.
    pub(crate) fn connect(&self, call: Call) -> Result<Value, Refusal> {
        let connected = self.call(call)?;
        if let Value::Remote(remote, _) = connected
            && let Err(refusal) = self.check_access(remote)
        {
            let _ended = self.disconnect(remote);
            return Err(if refusal == Refusal::NotConnected { Refusal::ConnectionRefused } else { refusal });
        }
        Ok(connected)
    }

    fn check_access(&self, remote: RemoteSegment) -> Result<(), Refusal> {
        let part = Part { offset: 0, bytes: 1 };
        let state = self.lock();
        let Some(is_listed) = state.member.is_listed(remote) else { return Ok(()) };
        let pair = state.member.borrowed(remote).and_then(|borrowed| state.pairs.get(&borrowed.pair));
        let is_of_other_user = pair.and_then(Pair::other_user).is_some();
        let found = state.find(remote, part);
        drop(state);
        match (is_listed, is_of_other_user) {
            (true, _) => self.have(found, Of::Remote(remote), part).map(drop),
            (false, true) => Err(Refusal::ConnectionRefused),
            (false, false) => Ok(()),
        }
    }
}
