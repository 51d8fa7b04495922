//! A host that is a process on this machine: what it shares with a port, seen from the port's loop.

use std::os::fd::BorrowedFd;
use std::sync::mpsc::Receiver;

use beeline_contract_device::HostMemory;
use beeline_domain::{Disposer, Waker};
use beeline_mmio::DmaRegion;

use super::host_side::{Access, Closing, HostSide};
use super::port_parts::{HostWords, Update};
use super::queues::Queues;
use super::regions::{BusMemory, Regions};
use super::registers::RegisterServer;
use crate::error::PortError;
use crate::event::EventReceiver;

/// A process behind a port: register accesses by a small window, memory by regions that it registered, a word for each thing
/// that it is told.
#[derive(Debug)]
pub struct ProcessHost {
    pub(crate) registers: RegisterServer,
    pub(crate) regions: Regions,
    pub(crate) words: HostWords,
    pub(crate) waker: Option<Waker>,
    pub(crate) updates: Receiver<Update>,
    pub(crate) event: EventReceiver,
    /// Takes mappings that are closed; without it they are dropped here.
    pub(crate) disposer: Option<Disposer>,
}

impl ProcessHost {
    /// Drops what was mapped, which takes time in proportion to its size, where nobody waits for it.
    fn dispose(&self, former: Option<impl Send + 'static>) {
        if let (Some(former), Some(disposer)) = (former, &self.disposer) {
            disposer.dispose(former);
        }
    }
}

impl BusMemory for ProcessHost {
    #[inline(always)]
    fn find(&mut self, address: u64, bytes: usize) -> Option<(&mut DmaRegion, usize)> {
        self.regions.find(address, bytes)
    }
}

impl HostMemory for ProcessHost {
    #[inline]
    fn word(&mut self, address: u64) -> Option<u64> {
        self.dma_word(address)
    }

    #[inline]
    fn read(&mut self, address: u64, data: &mut [u8]) -> bool {
        self.dma_read(address, data)
    }
}

impl HostSide for ProcessHost {
    #[inline]
    fn has_request(&mut self) -> bool {
        self.registers.has_request()
    }

    fn next(&mut self) -> Result<Option<Access>, PortError> {
        self.registers.next()
    }

    fn taken(&mut self) {
        self.registers.taken();
    }

    fn answer(&mut self, tag: u16, value: u64) {
        self.registers.answer(tag, value);
    }

    fn interrupt(&mut self, _vector: u16, count: u64) {
        self.words.interrupts.store_release(count);
    }

    #[inline]
    fn wake(&mut self) -> bool {
        self.waker.as_ref().is_some_and(Waker::wake_if_asleep)
    }

    fn announce_sleep(&self, is_asleep: bool) {
        self.words.nic_waiting.store(u32::from(is_asleep));
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        self.event.descriptor()
    }

    fn clear_event(&mut self) {
        self.event.clear();
    }

    fn close(&mut self, why: Closing) {
        // Release: what the device wrote before is seen by a host that sees this. Pairs with `is_device_gone`.
        self.words.closed.store_release(why.value());
        self.wake();
    }

    fn apply_updates(&mut self, queues: &mut Queues) {
        while let Ok(update) = self.updates.try_recv() {
            match update {
                Update::Window { queue, port, charge, blank } => {
                    let former = queues.add_window(queue, port, Some(charge), blank);
                    self.dispose(former);
                }
                Update::Doorbell { offset_bytes, word } => queues.add_doorbell(offset_bytes, word),
                Update::Region { number, memory, charge } => {
                    let former = self.regions.insert(number, memory, charge);
                    self.dispose(former);
                }
                Update::Release { number } => {
                    let former = self.regions.remove(number);
                    self.dispose(former);
                }
            }
        }
    }

    fn dispose_with(&mut self, disposer: Disposer) {
        self.disposer = Some(disposer);
    }
}
