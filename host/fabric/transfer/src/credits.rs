//! How lines of a window are given back to who sends into it: a word that counts them.

use beeline_contract_memory::{CreditSink, CreditSource};
use beeline_mmio::{LoadWindow, StoreWindow, Word};
use beeline_window::{Receiver, Writer};

/// The end of a window that messages are sent into.
pub type Sender = Writer<StoreWindow, Credits>;
/// The end of a window that messages come out of.
pub type Inlet = Receiver<LoadWindow, Credits>;

/// The word in which freed lines are counted. Nobody waits for lines, so nobody is woken.
#[derive(Debug)]
pub struct Credits(Word);

impl Credits {
    /// Those of a word that the receiver stores and the sender loads.
    pub fn new(word: Word) -> Self {
        Credits(word)
    }
}

impl CreditSource for Credits {
    #[inline]
    fn freed_lines(&mut self) -> u64 {
        // Acquire: pairs with `publish`, in the receiver's process.
        self.0.load_acquire()
    }
}

impl CreditSink for Credits {
    #[inline]
    fn publish(&mut self, freed_lines: u64) {
        // Release: pairs with `freed_lines`, in the sender's process.
        self.0.store_release(freed_lines);
    }
}
