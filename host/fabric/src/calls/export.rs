//! Saying who may connect to a segment.

use beeline_contract_adapter::Adapter;

use crate::access::Access;
use crate::call::Value;
use crate::ids::{LocalSegment, RemoteSegment};
use crate::member::Member;
use crate::refusal::Refusal;
use crate::segment::local::LocalMemory;
use crate::segment::memory::Memory;
use crate::want::Want;

impl<A: Adapter> Member<A> {
    /// Whether it can be said now who may connect to a segment, and of how many bytes the memory has to be that it will have alone; `None`
    /// if it has one, or will be given one.
    ///
    /// # Errors
    /// Those of [`Member::export`].
    pub fn can_export(&self, local: LocalSegment) -> Result<Option<u64>, Refusal> {
        let local = self.locals.get(&local).ok_or(Refusal::IllegalParameter)?;
        if local.is_private || local.group != 0 || local.has_prepared_any() || local.maps != 0 {
            return Err(Refusal::IllegalOperation);
        }
        Ok(match local.memory {
            LocalMemory::There { memory: Memory::Bank { .. }, bytes, .. } => Some(bytes),
            LocalMemory::There { .. } | LocalMemory::Nothing => None,
        })
    }

    /// Says who may connect to a segment, instead of everybody of its user. What others claim of it counts for nothing and is told to
    /// nobody. From here on it has a memory of its own, which is passed only to who may connect.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: there is no such segment. [`Refusal::IllegalOperation`]: it is private, held by several, prepared, or
    /// mapped.
    pub fn export(&mut self, handle: LocalSegment, access: Access) -> Result<Value, Refusal> {
        let moves = self.can_export(handle)?.is_some();
        let local = self.locals.get_mut(&handle).ok_or(Refusal::IllegalParameter)?;
        local.access = access.into();
        let (slot, name) = (local.slot, local.name);
        if moves && let LocalMemory::There { memory, bytes, .. } = &mut local.memory {
            if let Memory::Bank { offset } = *memory {
                self.wants.push_back(Want::Punch { offset, bytes: *bytes });
            }
            *memory = Memory::Own { slot };
            // Nobody can connect yet, so nobody believes what the entry says.
            self.board.describe(slot, name, *bytes, Memory::Own { slot });
        }
        self.board.set_listed(slot);
        Ok(Value::Nothing)
    }

    /// Whether who may connect to what a connection is to is said by a list, which its member keeps. `None` without a connection.
    pub fn is_listed(&self, remote: RemoteSegment) -> Option<bool> {
        self.remotes.get(&remote)?.connection().ok().map(|connection| connection.is_listed)
    }
}
