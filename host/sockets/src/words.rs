//! Words of a connection's memory, as the ledger and windows want them.

use std::sync::atomic::{Ordering, fence};

use beeline_contract_adapter::{PublishPort, Unconfirmed, ViewPort};
use beeline_contract_memory::{CreditSink, CreditSource};
use beeline_mmio::{Word, Words};

/// Words that one end publishes and the other one loads.
#[derive(Clone, Debug)]
pub(crate) struct Shared(pub Words);

impl PublishPort for Shared {
    #[inline]
    fn publish(&mut self, word: u32, value: u64) {
        // Pairs with the load below.
        self.0.store_release(word as usize, value);
    }

    fn barrier(&mut self) -> Result<(), Unconfirmed> {
        // Pairs with the barrier of the other end's words.
        fence(Ordering::SeqCst);
        Ok(())
    }
}

impl ViewPort for Shared {
    #[inline]
    fn load(&self, word: u32) -> u64 {
        self.0.load_acquire(word as usize)
    }
}

/// The count of lines that a window's receiver has freed.
#[derive(Debug)]
pub(crate) struct Credits(pub Word);

impl CreditSource for Credits {
    #[inline]
    fn freed_lines(&mut self) -> u64 {
        self.0.load_acquire()
    }
}

impl CreditSink for Credits {
    #[inline]
    fn publish(&mut self, freed_lines: u64) {
        self.0.store_release(freed_lines);
    }
}
