//! Owners of a transmit queue at the pins of a device: one that keeps every rule of its interface, and one that keeps none.
//!
//! What an owner can do is store into its window, ring its doorbell and write its own memory; who sets its queue up and
//! stops it is somebody else. The host halves of `host/driver` keep the rules by their types, so a bench that needs both
//! kinds, and counts writes one by one, has owners of its own: small, slow, and the same for every device.
//!
//! Enter from: `nic/rtl/tests/isolation` (the RTL, cycle by cycle), `fuzz` (the behavioural NIC). Leave to: a [`Bench`].

mod descriptor;
mod enso;
mod entry;
mod inline;
mod kpio;
mod mmio;
mod niq;

use beeline_contract_device::Enables;
use beeline_spec::{Interface, LINE_BYTES, regs};

use crate::Random;

pub use descriptor::Descriptor;
pub use enso::Enso;
pub use inline::Inline;
pub use kpio::Kpio;
pub use mmio::Mmio;
pub use niq::Niq;

/// What an owner needs of its surroundings.
pub trait Bench {
    /// Stores bytes in the host's memory.
    fn store(&mut self, address: u64, data: &[u8]);

    /// Loads a word of the host's memory.
    fn load(&self, address: u64) -> u64;

    /// Writes a register of a queue.
    fn set_of(&mut self, queue: u16, register: u32, value: u64);
}

/// Addresses that belong to a queue.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub queue: u16,
    pub window_lines: u64,
    /// Offset of the queue's window in the BAR.
    pub window: u64,
    /// Bus address of 256 KiB of its own.
    pub memory: u64,
    /// Bus address of its credit word.
    pub credits: u64,
}

impl Place {
    /// Bytes of a queue's memory.
    pub const MEMORY_BYTES: u64 = 0x4_0000;

    /// Where the line of a position lies.
    fn line(&self, position: u64) -> u64 {
        self.window + position % self.window_lines * LINE_BYTES as u64
    }

    /// A doorbell that says how far the host has come.
    fn doorbell(&self, tail: u64) -> Store {
        let offset = regs::DOORBELL + u32::from(self.queue) * regs::DOORBELL_STRIDE + regs::doorbell::TX_TAIL;
        Store::whole(offset.into(), &tail.to_le_bytes())
    }
}

/// A write at the BAR.
#[derive(Clone, Debug)]
pub struct Store {
    /// Offset in the BAR.
    pub offset: u64,
    /// The bytes, those not enabled included.
    pub data: Vec<u8>,
    /// Bytes of the line that are written.
    pub enables: Enables,
}

impl Store {
    /// A write of all these bytes.
    pub fn whole(offset: u64, data: &[u8]) -> Store {
        Store { offset, data: data.to_vec(), enables: Enables::All }
    }
}

/// The owner of a queue of one interface.
pub trait Owner {
    fn interface(&self) -> Interface;

    /// Writes the queue's registers but for the last, and what its memory must hold then.
    fn set_up(&self, bench: &mut dyn Bench);

    /// The queue is started with this epoch, empty.
    fn begin(&mut self, epoch: u8);

    /// The writes that hand a frame over; nothing while there is no room.
    fn send(&mut self, bench: &mut dyn Bench, random: &mut Random, frame: &[u8]) -> Option<Vec<Store>>;

    /// Whether the device has given back everything that it was given.
    fn is_done(&self, bench: &dyn Bench) -> bool;

    /// Returns what leaves for a frame.
    fn on_the_wire(&self, frame: &[u8]) -> Vec<u8> {
        frame.to_vec()
    }

    /// Writes that keep no rule, at least one.
    fn break_rules(&mut self, bench: &mut dyn Bench, random: &mut Random) -> Vec<Store>;
}

/// Interfaces that have an owner here.
pub const INTERFACES: [Interface; 6] = [
    Interface::Mmio,
    Interface::Kpio,
    Interface::Descriptor,
    Interface::Inline,
    Interface::Enso,
    Interface::Niq,
];

/// An owner of a queue.
///
/// # Panics
/// For an interface without one.
pub fn owner(interface: Interface, place: Place) -> Box<dyn Owner> {
    match interface {
        Interface::Mmio => Box::new(Mmio::new(place)),
        Interface::Kpio => Box::new(Kpio::new(place)),
        Interface::Descriptor => Box::new(Descriptor::new(place)),
        Interface::Inline => Box::new(Inline::new(place)),
        Interface::Enso => Box::new(Enso::new(place)),
        Interface::Niq => Box::new(Niq::new(place)),
        Interface::Coherent => panic!("entries of coherent lines are no writes at the pins"),
    }
}
