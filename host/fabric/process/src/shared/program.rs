//! Memory of the program behind segments of this member.
//!
//! What others can map is put back (`RegisteredMemory`) by the thread that removes the segment, before its call returns: the program frees
//! it then. So nothing but the tables has a share of such a value, and maps are made of what others map, too. A segment that somebody
//! removes from outside keeps its memory until the program removes it.

use std::sync::Arc;

use beeline_fabric::{Call, LocalSegment, Refusal, Value};
use beeline_mmio::{RegisterError, RegisteredMemory};

use super::Shared;
use crate::error::NotRegistered;
use crate::fetch::Own;

impl Shared {
    /// Puts memory of the program behind an empty segment. It is made only if that can be.
    pub(crate) fn register_program(
        &self,
        (local, bytes): (LocalSegment, u64),
        make: impl FnOnce() -> Result<RegisteredMemory, RegisterError>,
    ) -> Result<(), NotRegistered> {
        self.check_process()?;
        self.lock().member.can_register(local, bytes)?;
        let memory = make()?;
        let (bytes, shared) = (memory.bytes() as u64, memory.memory().cloned());
        let mut memory = Some(memory);
        // What is not taken is put back, without the lock.
        let registered = self.enter(|state, now| {
            let is_shareable = shared.is_some();
            state.member.call(Call::Register { local, bytes, is_shareable }, now)?;
            // In the same hold of the lock: nobody is connected to what has no memory here.
            state.own.extend(shared.map(|shared| (local, Own::whole(shared))));
            state.program.extend(memory.take().map(|memory| (local, Arc::new(memory))));
            Ok(())
        });
        registered.map_err(NotRegistered::Refused)
    }

    /// Removes a segment as its program does, which has its memory back then.
    pub(crate) fn remove_for_program(&self, local: LocalSegment, is_forced: bool) -> Result<Value, Refusal> {
        let removed = self.remove(local, is_forced);
        // Somebody else may have removed it.
        if matches!(removed, Ok(_) | Err(Refusal::IllegalParameter)) {
            let memory = self.lock().program.remove(&local);
            drop(memory);
        }
        removed
    }

    pub(super) fn let_go_of_all_programs_memory(&self) {
        let memories = std::mem::take(&mut self.lock().program);
        drop(memories);
    }
}
