//! Segments whose memory is made for them, or is a device's.

use std::sync::{Arc, PoisonError};

use beeline_fabric::{Call, Done, LocalSegment, Part, Refusal, RemoteSegment, Value};
use beeline_mmio::{MapError, SharedMemory};

use super::{Of, Shared};
use crate::backing::{Backing, find};
use crate::error::{NotCreated, NotRegistered};
use crate::fetch::Own;
use crate::terms::Terms;

impl Shared {
    pub(crate) fn terms(&self) -> Arc<Terms> {
        Arc::clone(&self.terms.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_terms(&self, terms: Terms) {
        *self.terms.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(terms);
    }

    /// Makes a segment in memory of its own.
    pub(crate) fn create(&self, call: Call) -> Result<Value, NotCreated> {
        self.check_process()?;
        let terms = self.terms();
        match call {
            Call::CreateSegment { is_private: true, is_empty: false, bytes, .. } if bytes != 0 => {
                self.create_private(call, Own::create("beeline-private", in_memory(bytes)?, &terms)?)
            }
            Call::CreateSegment { id, is_auto, bytes, is_private, is_empty: false, has_callback }
                if terms.are_of_own_memory() && bytes != 0 =>
            {
                // First, so that a segment which there is no memory for has no name.
                let own = Own::create("beeline-segment", in_memory(bytes)?, &terms)?;
                let empty =
                    Call::CreateSegment { id, is_auto, bytes, is_private, is_empty: true, has_callback };
                let made = self.call(empty)?;
                let Value::Local(local, _) = made else { return Err(Refusal::System.into()) };
                // Others find it already, and it is not available to them before it is returned.
                self.put_behind(local, bytes, own).inspect_err(|_| {
                    let _gone = self.call(Call::RemoveSegment { local, is_forced: true });
                })?;
                Ok(made)
            }
            call => Ok(self.call(call)?),
        }
    }

    /// Makes a segment that nobody connects to.
    fn create_private(&self, call: Call, own: Own) -> Result<Value, NotCreated> {
        let created = self.enter(|state, now| match state.member.call(call, now)? {
            Done::Now(value @ Value::Local(local, _)) => {
                state.own.insert(local, own);
                Ok(value)
            }
            Done::Now(_) | Done::Wait(_) => Err(Refusal::System),
        });
        Ok(created?)
    }

    /// Puts a memory behind an empty segment.
    pub(crate) fn register(&self, local: LocalSegment, memory: Arc<SharedMemory>) -> Result<(), Refusal> {
        self.check_process()?;
        let bytes = memory.bytes() as u64;
        self.put_behind(local, bytes, Own::whole(memory))
    }

    /// Puts a part of a device's BAR behind an empty segment.
    pub(crate) fn register_device(
        &self,
        local: LocalSegment,
        (bus_address, bytes): (u64, u64),
    ) -> Result<(), NotRegistered> {
        self.check_process()?;
        self.lock().member.can_register(local, bytes)?;
        let device = find(&self.terms().sysfs, bus_address, bytes)?;
        Ok(self.put_behind(local, bytes, Own::of(device, 0))?)
    }

    fn put_behind(&self, local: LocalSegment, bytes: u64, own: Own) -> Result<(), Refusal> {
        self.enter(|state, now| {
            state.member.call(Call::Register { local, bytes, is_shareable: true }, now)?;
            // In the same hold of the lock: nobody is connected to what has no memory here.
            state.own.insert(local, own);
            Ok(())
        })
    }

    /// Where a segment of this member begins on the bus.
    pub(crate) fn bus_address_of_local(&self, local: LocalSegment) -> Option<u64> {
        let device = self.lock().own.get(&local).map(|own| own.memory.clone());
        device.as_ref().and_then(Backing::bus_address)
    }

    /// Where the segment of a connection begins on the bus. Its member is asked for it, once.
    pub(crate) fn bus_address_of_remote(&self, remote: RemoteSegment) -> Result<Option<u64>, Refusal> {
        self.check_process()?;
        let part = Part { offset: 0, bytes: 1 };
        let found = self.enter(|state, _| state.find(remote, part));
        Ok(self.have(found, Of::Remote(remote), part)?.bus_address())
    }
}

fn in_memory(bytes: u64) -> Result<usize, NotCreated> {
    usize::try_from(bytes).map_err(|_| MapError::Size { bytes: usize::MAX }.into())
}
