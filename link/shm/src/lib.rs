//! The link of a NIC that is another process: sealed shared memory, and a core that plays the device's pins.
//!
//! Two halves. [`ShmLink`] is what a driver sees: windows, doorbells, registers and device-visible memory, all plain
//! stores and loads on memory that both processes map. [`DevicePort`] is what the NIC process runs: it turns words that
//! appear in that memory into "a write arrived" for a [`beeline_contract_device::Device`], and carries out what the device
//! wants. [`PortControl`] is the slow path between them: memory is made and passed when a port, a window or a region is
//! opened, never later.
//!
//! It names no interface: which queue is `mmio`, `kpio` or `descriptor` only the driver and the device know. It does
//! not reorder, un-escape, or count credits; the device does (HotOS'25 §3.1). What real memory cannot express (byte
//! enables finer than words, a read held until there is an answer, back-pressure of the link) is in
//! `docs/interfaces.md`.
//!
//! Frames come from `host/driver` as stores and go to `nic/model` as writes; received ones come as DMA writes of the
//! device into memory the host registered.
#![forbid(unsafe_code)]

mod device;
mod error;
mod event;
mod host;
mod layout;
mod messages;

pub use device::{
    Access, BusMemory, Closing, DeviceLayout, DevicePort, HostSide, MemoryAccount, PortConfig, PortControl,
    PortCounters, ProcessHost, Queues, Wire, Wired, Work,
};
pub use error::{ConnectError, ControlError, PortError};
pub use host::{ShmDoorbell, ShmLink, ShmMemory, ShmOptions, ShmWindow};
pub use messages::VERSION;
