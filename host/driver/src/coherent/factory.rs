//! Makes the host halves of `coherent` queues.
//!
//! A half takes memory from the link and nothing else: there is no window and no doorbell.

use beeline_contract_link::Link;
use beeline_spec::Interface;
use beeline_spec::coherent::MAX_ENTRY_LINES;

use crate::coherent::receive::{self, RxCoherent};
use crate::coherent::settings::{CoherentConfig, RxCoherentConfig};
use crate::coherent::transmit::{self, TxCoherent};
use crate::error::{Must, PortError};
use crate::port::Port;
use crate::port::half::Stopped;
use crate::port::queues::MAX_ENTRIES;

impl<L: Link> Port<L> {
    /// The host half of a `coherent` queue.
    ///
    /// # Errors
    /// The port is not ready, it has no such queue or interface, or a setting is out of range.
    pub fn coherent(
        &mut self,
        queue: u32,
        config: CoherentConfig,
    ) -> Result<Stopped<TxCoherent<L::Memory>>, PortError> {
        let identity = self.transmit(queue, Interface::Coherent, config.queue)?;
        check_entries("entries of the transmit ring", config.entries, config.entry_lines_log2)?;
        Must::Between(0, MAX_ENTRIES).check("short buffers", u64::from(config.short_buffers))?;
        // Without one, a long frame could never be sent.
        Must::Between(1, MAX_ENTRIES).check("long buffers", u64::from(config.long_buffers))?;
        let max_frame_bytes = self.max_frame_bytes();
        let memory = self.link.memory(transmit::Layout::new(&config, max_frame_bytes).bytes)?;
        Ok(Stopped(TxCoherent::new(memory, identity, config, max_frame_bytes)))
    }

    /// The host half of coherent lines that are received.
    ///
    /// # Errors
    /// As [`Port::rx_ring`]; the device must have `coherent` queues.
    pub fn rx_coherent(
        &mut self,
        queue: u32,
        config: RxCoherentConfig,
    ) -> Result<Stopped<RxCoherent<L::Memory>>, PortError> {
        self.check_interface(queue, Interface::Coherent)?;
        check_entries("entries of the receive ring", config.entries, config.entry_lines_log2)?;
        Must::Between(1, MAX_ENTRIES).check("receive buffers", u64::from(config.buffers))?;
        let max_frame_bytes = self.max_frame_bytes();
        let memory = self.link.memory(receive::Layout::new(&config, max_frame_bytes).bytes)?;
        Ok(Stopped(RxCoherent::new(memory, queue, config, max_frame_bytes as u32)))
    }
}

fn check_entries(what: &'static str, entries: u32, lines_log2: u32) -> Result<(), PortError> {
    let most = u64::from(MAX_ENTRY_LINES.ilog2());
    Must::Between(0, most).check("power of two of an entry's lines", u64::from(lines_log2))?;
    Must::PowerOfTwo(2, MAX_ENTRIES).check(what, u64::from(entries))
}
