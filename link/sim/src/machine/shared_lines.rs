//! A device that keeps lines of host memory in a cache of its own: an interconnect moves them, no packet does.
//!
//! A line that one side has stored to is loaded by the other side in one transfer: it is asked for and handed over. Several
//! may be under way; they begin one interval after the other. What a device wants to be told of lines ([`Want::WatchLine`]
//! of `contract/device`) is told one transfer after the host's store.

use beeline_contract_device::{Device, HostMemory, SimTime, Want};

use super::memory::Memory;
use super::state::Around;
use super::{CoreId, DeviceId, Event, Interconnect, Machine};
use crate::des::Picoseconds;

const LINE_BYTES: u64 = 64;

impl HostMemory for Memory {
    fn word(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.peek(address, &mut bytes).then(|| u64::from_le_bytes(bytes))
    }

    fn read(&mut self, address: u64, data: &mut [u8]) -> bool {
        Memory::read(self, address, data)
    }
}

impl<D: Device> Machine<D> {
    /// The device looks at the lines that it wants to be told of.
    pub(super) fn device_looks(&mut self) {
        let Around { calendar, watches, memory, host_stores, blocks, .. } = &mut self.around;
        let now = calendar.now();
        while host_stores.is_due(now) {
            let Some(((region, offset, block), next)) = host_stores.pop() else { break };
            memory.show(region, offset, blocks.of(block));
            blocks.remove(block);
            if let Some(at) = next.filter(|at| *at > now) {
                calendar.schedule(at, Event::DeviceLooks);
            }
        }
        // A machine with lines that change owner has one device.
        let Some(device) = self.devices.first_mut() else { return };
        device.time_passed(SimTime(now.0));
        watches.look(device, memory);
        self.serve(DeviceId(0), true);
    }
}

impl Around {
    /// A want about lines that the device watches; a line may differ already.
    pub(super) fn watch(&mut self, want: &Want<'_>) {
        self.watches.take(want);
        if let Some(Interconnect { line, .. }) = self.settings.interconnect {
            self.calendar.schedule_in(line, Event::DeviceLooks);
        }
    }

    /// A program has stored to memory: a device with a cache sees it a transfer after its core has done so.
    pub(super) fn host_stored(&mut self, core: CoreId, region: usize, offset: usize, bytes: usize) {
        let Some(Interconnect { line, .. }) = self.settings.interconnect else { return };
        let block = self.blocks.add();
        let stored = &self.memory.bytes(region)[offset..offset + bytes];
        self.blocks.of(block).extend_from_slice(stored);
        let at = self.core_states[usize::from(core.0)].core.clock().max(self.calendar.now()) + line;
        if let Some(at) = self.host_stores.push(at, (region, offset, block)) {
            self.calendar.schedule(at, Event::DeviceLooks);
        }
    }

    /// When `bytes` at an address have been moved, transfers beginning now.
    pub(super) fn moved_at(&mut self, address: u64, bytes: u64, interconnect: Interconnect) -> Picoseconds {
        let lines = (address % LINE_BYTES + bytes).div_ceil(LINE_BYTES).max(1);
        let span = interconnect.interval * lines;
        let start = self.transfers.begin(self.calendar.now(), span);
        start + interconnect.line + interconnect.interval * (lines - 1)
    }

    /// The device stores to lines of its cache, which the host gets when it loads them.
    pub(super) fn store_lines(&mut self, address: u64, data: &[u8], interconnect: Interconnect) {
        let block = self.blocks.add();
        self.blocks.of(block).extend_from_slice(data);
        // The store itself is in the device's own cache; the transfer is paid by the core that loads (`loaded`).
        let at = self.transfers.begin(self.calendar.now(), interconnect.interval);
        if let Some(at) = self.stored_lines.push(at, (address, block)) {
            self.calendar.schedule(at, Event::HostGets);
        }
    }

    /// What the device stored to its lines can be loaded.
    pub(super) fn host_gets(&mut self) {
        let Some(((address, block), next)) = self.stored_lines.pop() else { return };
        if let Some(at) = next {
            self.calendar.schedule(at, Event::HostGets);
        }
        if !self.memory.write(address, self.blocks.of(block)) {
            self.ends[0].totals.faults += 1;
        }
        self.blocks.remove(block);
        self.host_changed();
    }
}
