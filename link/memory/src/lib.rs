//! A link in plain memory: the driver on one side, a device on the other, both in this thread; the wire is looped back, or
//! its frames are kept.
//!
//! Nothing happens by itself: stores, doorbells and register accesses wait until [`MemoryLink::pump`] hands them to the
//! device and does what the device wants. So every run is the same for the same seed, which orders the answers to DMA
//! reads. There are two kinds of window: *observed*, where a store becomes a write at the device, and *blank*, where it
//! changes a cell, a scanner finds it (`cells.rs`), and the cell must be free, which is checked: a sender that over-runs
//! its credits stops the test.
//!
//! From: `host/driver`, through the traits of `contract/link`. To: any [`Device`]. Not here: threads, time that passes
//! by itself, other processes (`link/shm`).

#![forbid(unsafe_code)]

mod bus;
mod cells;
mod forgotten;
mod link;
mod memory;
mod reads;
mod regions;
mod window;

use std::cell::RefCell;
use std::rc::Rc;

use beeline_contract_device::Device;

pub use bus::{Aperture, Bus};
pub use link::MemoryDoorbell;
pub use memory::MemoryRegion;
pub use reads::MemoryReads;
pub use window::MemoryWindow;

/// The host's end; clones share the device.
pub struct MemoryLink<D> {
    bus: Rc<RefCell<Bus<D>>>,
}

impl<D> Clone for MemoryLink<D> {
    fn clone(&self) -> Self {
        MemoryLink { bus: Rc::clone(&self.bus) }
    }
}

impl<D: Device> MemoryLink<D> {
    /// A link to `device`, whose windows lie as `aperture` says.
    pub fn new(device: D, aperture: Aperture, seed: u64) -> Self {
        MemoryLink { bus: Rc::new(RefCell::new(Bus::new(device, aperture, seed))) }
    }

    /// Lets everything happen that can happen at this time.
    ///
    /// # Panics
    /// If the device wants something for ever, or touches memory that nobody gave it.
    pub fn pump(&self) {
        self.bus.borrow_mut().pump();
    }

    /// Lets `ns` nanoseconds pass, then everything happen.
    ///
    /// # Panics
    /// As [`MemoryLink::pump`].
    pub fn pass(&self, ns: u64) {
        self.bus.borrow_mut().pass(ns);
    }

    /// Looks at the device and what is around it, or changes it.
    pub fn with_bus<T>(&self, f: impl FnOnce(&mut Bus<D>) -> T) -> T {
        f(&mut self.bus.borrow_mut())
    }
}
