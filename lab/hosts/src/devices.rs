//! Segments of memory of devices, which are attached by address and size, and requests of devices.
//!
//! What is stored there passes no host's memory; the host whose segment it is says where it is, and has no part in what is stored.

use beeline_fabric::{Call, LocalSegment, Memory, Part, Refusal, Value};
use beeline_link_sim::machine::hosts::HostId;

use crate::device::Device;
use crate::member::HostMember;

impl HostMember {
    /// Puts memory of a device behind an empty segment, by its address and size.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: no device has these addresses. [`Refusal::MaxEntries`]: too many are attached. Others as the member
    /// refuses it.
    pub fn attach_physical_memory(
        &mut self,
        local: LocalSegment,
        address: u64,
        bytes: u64,
    ) -> Result<(), Refusal> {
        self.device_of(address, bytes).ok_or(Refusal::IllegalParameter)?;
        // First: what is registered cannot be taken back.
        let free = self.attached.free_entry().ok_or(Refusal::MaxEntries)?;
        self.call(Call::Register { local, bytes, is_shareable: true })?;
        let mapped = self.call(Call::MapLocal(local, Part { offset: 0, bytes }))?;
        self.call(Call::UnmapLocal(local))?;
        let Value::MapLocal(Memory::Own { slot }, _) = mapped else { return Err(Refusal::System) };
        self.attached.put(free, slot, address);
        self.devices.insert(local, slot);
        Ok(())
    }

    /// Lets a device store into and read memory of all hosts: its packets are taken from here on.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: there is no such device.
    pub fn register_requester(&mut self, device: HostId) -> Result<(), Refusal> {
        self.set_requester(device, true)
    }

    /// Ends what [`HostMember::register_requester`] began.
    ///
    /// # Errors
    /// As that.
    pub fn unregister_requester(&mut self, device: HostId) -> Result<(), Refusal> {
        self.set_requester(device, false)
    }

    fn set_requester(&mut self, device: HostId, is_taken: bool) -> Result<(), Refusal> {
        let wiring = self.sessions.wiring.clone();
        if !wiring.devices().iter().any(|it| it.at == device) {
            return Err(Refusal::IllegalParameter);
        }
        let own = self.core().host();
        for host in wiring.others(own).chain([own]) {
            self.core().set_requester(host, device, is_taken);
        }
        Ok(())
    }

    /// The device whose memory these addresses are.
    pub(crate) fn device_of(&self, address: u64, bytes: u64) -> Option<Device> {
        let end = address.checked_add(bytes)?;
        let has = |it: &&Device| it.addresses().contains(&address) && end <= it.addresses().end;
        self.sessions.wiring.devices().iter().find(has).copied()
    }

    pub(crate) fn detach(&mut self, local: LocalSegment) {
        if let Some(slot) = self.devices.remove(&local) {
            self.attached.remove(slot);
        }
    }
}
