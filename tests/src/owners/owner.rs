//! What an owner can do, and what it needs for it.

use beeline_spec::Interface;

use super::store::Store;
use crate::Random;

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

/// What an owner needs of its surroundings.
pub trait Bench {
    /// Stores bytes in the host's memory.
    fn store(&mut self, address: u64, data: &[u8]);

    /// Loads a word of the host's memory.
    fn load(&self, address: u64) -> u64;

    /// Writes a register of a queue.
    fn set_of(&mut self, queue: u16, register: u32, value: u64);
}
