//! The DMA engine of an adapter, as the program on a core has it.

use beeline_link_sim::machine::hosts::Transfer;

use crate::programs::Core;

impl Core {
    /// Whether the adapters of its host have DMA engines.
    pub(crate) fn has_engines(&self) -> bool {
        self.hosts(|hosts, _| hosts.has_engines())
    }

    /// Tells the engine of an adapter of a transfer, when what was stored has left this core. `false` if it takes no more.
    pub(crate) fn start_transfer(&self, adapter: u16, transfer: Transfer) -> bool {
        self.by(adapter).catch_up();
        let mut is_taken = false;
        self.at_port(adapter, |hosts, port| is_taken = hosts.start_transfer(port, transfer));
        is_taken
    }

    /// Tells the engine of an adapter to begin nothing more of a transfer.
    pub(crate) fn abort_transfer(&self, adapter: u16, number: u32) {
        self.at_port(adapter, |hosts, port| hosts.abort_transfer(port, number));
    }
}
