//! The link itself: windows, memory, doorbells and registers of the bus.
//!
//! Register writes travel with the stores; those that start and stop a queue, or set its blank, also tell the scanner
//! of its window, as the rendezvous of a link in shared memory does.

use beeline_contract_device::Device;
use beeline_contract_link::{Doorbell, Evidence, Link, LinkError, LinkKind, RegisterRead};
use beeline_spec::regs;
use beeline_spec::regs::field::queue_control;

use crate::bus::{Bus, Posted};
use crate::{MemoryLink, MemoryReads, MemoryRegion, MemoryWindow};

/// A doorbell is a posted write like any other.
pub struct MemoryDoorbell<D> {
    link: MemoryLink<D>,
    offset_bytes: u32,
}

impl<D: Device> Doorbell for MemoryDoorbell<D> {
    fn ring(&mut self, value: u64) {
        self.link.with_bus(|bus| bus.post_word(self.offset_bytes, value));
    }
}

impl<D: Device> Bus<D> {
    fn post_word(&mut self, offset_bytes: u32, value: u64) {
        let data = value.to_le_bytes().to_vec();
        self.posted.push_back(Posted::Write { offset_bytes: u64::from(offset_bytes), data });
    }

    /// What a register write means for the scanners. What was stored before it is scanned before.
    fn tell_scanner(&mut self, offset_bytes: u32, value: u64) {
        if offset_bytes == regs::CONTROL {
            let is_enabled =
                value >> regs::field::control::ENABLE_LSB & regs::field::control::ENABLE_MASK == 1;
            if !is_enabled {
                self.pump();
                self.cells.iter_mut().for_each(|cells| cells.stop());
            }
        }
        let in_queues =
            offset_bytes.checked_sub(regs::QUEUE).filter(|at| at / regs::QUEUE_STRIDE < self.aperture.queues);
        let Some(at) = in_queues else { return };
        let (queue, register) = ((at / regs::QUEUE_STRIDE) as usize, at % regs::QUEUE_STRIDE);
        match register {
            regs::queue::BLANK => self.blanks[queue] = value,
            regs::queue::CONTROL if value >> queue_control::ENABLE_LSB & queue_control::ENABLE_MASK == 1 => {
                self.cells[queue].start(self.blanks[queue]);
            }
            regs::queue::CONTROL => {
                self.pump();
                self.cells[queue].stop();
            }
            _ => {}
        }
    }
}

impl<D: Device> LinkKind for MemoryLink<D> {
    const EVIDENCE: Evidence = Evidence::OneProcess;
}

impl<D: Device> Link for MemoryLink<D> {
    type Window = MemoryWindow<D>;
    type Memory = MemoryRegion<D>;
    type Doorbell = MemoryDoorbell<D>;
    type Reads = MemoryReads<D>;

    fn window(&mut self, queue: u32) -> Result<MemoryWindow<D>, LinkError> {
        let link = self.clone();
        self.with_bus(|bus| {
            let queues = bus.aperture.queues;
            let taken =
                bus.windows_taken.get_mut(queue as usize).ok_or(LinkError::NoSuchQueue(queue, queues))?;
            if std::mem::replace(taken, true) {
                return Err(LinkError::WindowTaken(queue));
            }
            Ok(MemoryWindow::new(link, queue, bus.aperture.window_lines))
        })
    }

    fn window_reads(&mut self, queue: u32) -> Result<MemoryReads<D>, LinkError> {
        let link = self.clone();
        self.with_bus(|bus| {
            let queues = bus.aperture.queues;
            let taken =
                bus.readers_taken.get_mut(queue as usize).ok_or(LinkError::NoSuchQueue(queue, queues))?;
            match std::mem::replace(taken, true) {
                true => Err(LinkError::ReadsTaken(queue)),
                false => Ok(MemoryReads::new(link, queue)),
            }
        })
    }

    fn memory(&mut self, bytes: usize) -> Result<MemoryRegion<D>, LinkError> {
        let (region, address) = self.with_bus(|bus| bus.regions.add(bytes));
        Ok(MemoryRegion::new(self.clone(), region, address, bytes))
    }

    fn doorbell(&mut self, offset_bytes: u32) -> Result<MemoryDoorbell<D>, LinkError> {
        Ok(MemoryDoorbell { link: self.clone(), offset_bytes })
    }

    fn write_register(&mut self, offset_bytes: u32, value: u64) -> Result<bool, LinkError> {
        self.with_bus(|bus| {
            bus.tell_scanner(offset_bytes, value);
            bus.post_word(offset_bytes, value);
        });
        Ok(true)
    }

    fn start_read(&mut self, offset_bytes: u32) -> Result<Option<RegisterRead>, LinkError> {
        Ok(Some(RegisterRead(self.with_bus(|bus| bus.post_read(offset_bytes.into())))))
    }

    fn poll_read(&mut self, read: RegisterRead) -> Result<Option<u64>, LinkError> {
        if self.is_device_gone() {
            return Err(LinkError::DeviceGone);
        }
        Ok(self.with_bus(|bus| bus.answers.remove(&read.0)))
    }

    fn is_device_gone(&self) -> bool {
        self.bus.borrow().is_gone
    }
}
