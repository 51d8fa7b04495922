//! Opening a device across a link: windows, registers, doorbells, memory.

use alloc::string::String;

use beeline_contract_memory::StorePort;

use crate::{DmaMemory, LinkKind, ReadPort};

/// Why a link cannot do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The device's process has died or the device was removed.
    DeviceGone,
    /// The queue does not exist: index asked, queues there are.
    NoSuchQueue(u32, u32),
    /// The queue's window is in use by another sender.
    WindowTaken(u32),
    /// The queue's window is being read by somebody else.
    ReadsTaken(u32),
    /// This many bytes of device-visible memory cannot be had.
    NoMemory(usize),
    /// The link cannot express the operation (`docs/interfaces.md`).
    NotExpressible,
    /// The device's process refused. The link goes on.
    Refused {
        what: &'static str,
        /// Why, in the words of the device's process.
        reason: String,
    },
    /// The device's process answered what no sound one does; nothing of it was used.
    Unsound {
        what: &'static str,
        /// What is wrong with the device's answer.
        found: String,
    },
}

impl core::fmt::Display for LinkError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            LinkError::DeviceGone => {
                out.write_str("the NIC is gone: its process ended or the device was removed")
            }
            LinkError::NoSuchQueue(index, queues) => write!(out, "queue {index} of a port that has {queues}"),
            LinkError::WindowTaken(index) => write!(out, "the window of queue {index} already has a sender"),
            LinkError::ReadsTaken(index) => write!(out, "the window of queue {index} already has a reader"),
            LinkError::NoMemory(bytes) => write!(out, "no {bytes} bytes of device-visible memory"),
            LinkError::NotExpressible => out.write_str("this link cannot do that; see docs/interfaces.md"),
            LinkError::Refused { what, reason } => write!(out, "the NIC refused {what}: {reason}"),
            LinkError::Unsound { what, found } => {
                write!(
                    out,
                    "the NIC was asked for {what} and answered {found}; is it another version of Beeline?"
                )
            }
        }
    }
}

impl core::error::Error for LinkError {}

/// An outstanding register read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegisterRead(pub u16);

/// A register that is written for every message or burst.
pub trait Doorbell {
    /// Posts `value`, ordered after every earlier store to the link's [`DmaMemory`] (what Linux calls `dma_wmb` and a
    /// posted write). Never reads.
    fn ring(&mut self, value: u64);
}

/// A link as a host half sees it. Nothing here blocks.
pub trait Link: LinkKind {
    /// Stores into a queue's transmit window.
    type Window: StorePort;
    /// Device-visible host memory.
    type Memory: DmaMemory;
    /// A doorbell register.
    type Doorbell: Doorbell;
    /// Loads from a queue's window; [`crate::NoReads`] where the link cannot express them.
    type Reads: ReadPort;

    /// The transmit window of a queue; at most one at a time may exist for each queue.
    fn window(&mut self, queue: u32) -> Result<Self::Window, LinkError>;

    /// Reads of the window of a queue; at most one at a time may exist for each queue.
    ///
    /// # Errors
    /// [`LinkError::NotExpressible`], unless the link can: a load of memory returns at once and is no read of a device.
    fn window_reads(&mut self, _queue: u32) -> Result<Self::Reads, LinkError> {
        Err(LinkError::NotExpressible)
    }

    /// A new region of at least `bytes` of device-visible memory, zeroed.
    fn memory(&mut self, bytes: usize) -> Result<Self::Memory, LinkError>;

    /// The doorbell at a register offset inside the doorbell blocks.
    fn doorbell(&mut self, offset_bytes: u32) -> Result<Self::Doorbell, LinkError>;

    /// Posts a register write; `false` when the link cannot take it yet (try again later).
    fn write_register(&mut self, offset_bytes: u32, value: u64) -> Result<bool, LinkError>;

    /// Starts a register read; `None` when the link cannot take it yet.
    fn start_read(&mut self, offset_bytes: u32) -> Result<Option<RegisterRead>, LinkError>;

    /// The value of a read once it is there.
    fn poll_read(&mut self, read: RegisterRead) -> Result<Option<u64>, LinkError>;

    /// Whether the device is known to be gone. Cheap enough for every poll.
    fn is_device_gone(&self) -> bool;
}
