//! What the thread that serves a client hands to the loop that runs the device, in one queue: whatever a client was told is
//! there, is there before the device hears of it.

use std::os::fd::OwnedFd;
use std::sync::mpsc::SyncSender;

use beeline_mmio::{DmaRegion, LoadWindow};

/// Orders that may wait for the loop. The thread that gives them waits for room: a client's accesses are answered one by one.
pub(crate) const MOST_WAITING: usize = 64;

/// Something for the loop to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// Read a register.
    Read { offset_bytes: u32, answer: SyncSender<u64> },
    /// Write a register.
    Write { offset_bytes: u32, value: u64 },
    /// Memory of the guest, from an address on.
    Map { address: u64, memory: DmaRegion },
    /// Memory that the guest takes back.
    Unmap { address: u64, bytes: u64, done: SyncSender<Former> },
    /// Where vectors lead from now on, the first of them `first`.
    Vectors { first: u32, events: Vec<Option<OwnedFd>>, done: SyncSender<Former> },
    /// Whether memory may be reached and interrupts raised.
    Master { is_master: bool, done: SyncSender<Former> },
    /// Fresh memory for the windows of every queue, in order, each with a blank of its own: those of a client are seen by no other.
    Windows { windows: Vec<(LoadWindow, u64)>, done: SyncSender<Former> },
}

/// What an order made superfluous, given back so that it is dropped where nobody waits.
#[derive(Debug, Default)]
pub(crate) struct Former {
    pub(crate) memory: Vec<DmaRegion>,
    pub(crate) events: Vec<OwnedFd>,
}
