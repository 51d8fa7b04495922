//! Makes the host halves of `niq` queues.

use beeline_contract_link::{Link, ReadPort};
use beeline_contract_memory::{StorePort, Tolerance};
use beeline_spec::{Interface, regs};

use crate::error::{Must, PortError};
use crate::niq::long_frames::LongFrames;
use crate::niq::receive::RxNiq;
use crate::niq::settings::{LongFrameConfig, NiqConfig, RxNiqConfig};
use crate::niq::transmit::{self, TxNiq};
use crate::port::Port;
use crate::port::half::Stopped;
use crate::port::queues::{check_window, doorbell_offset};

impl<L: Link> Port<L> {
    /// The host half of a `niq` queue.
    ///
    /// # Errors
    /// The port is not ready, it has no such queue or interface, its window is taken, or a setting is out of range.
    pub fn niq(
        &mut self,
        queue: u32,
        config: NiqConfig,
    ) -> Result<Stopped<TxNiq<L::Window, L::Memory>>, PortError> {
        self.niq_behind(queue, config, |window, _| window)
    }

    /// As [`Port::niq`], with `wrap` between the interface and the window.
    ///
    /// # Errors
    /// The port is not ready, it has no such queue or interface, its window is taken, or a setting is out of range.
    pub fn niq_behind<P: StorePort>(
        &mut self,
        queue: u32,
        config: NiqConfig,
        wrap: impl FnOnce(L::Window, Tolerance) -> P,
    ) -> Result<Stopped<TxNiq<P, L::Memory>>, PortError> {
        let identity = self.transmit(queue, Interface::Niq, config.queue)?;
        Must::Between(0, 2).check("power of two of an entry's lines", u64::from(config.entry_lines_log2))?;
        self.check_buffer(config.buffer_bytes)?;
        let entry_lines = 1 << config.entry_lines_log2;
        let window = self.window_of(queue, 2 * entry_lines)?;
        let entries = u64::from(window.lines() / entry_lines);
        Must::Between(1, entries / 2)
            .check("frames between completions", u64::from(config.completion_frames))?;
        let memory = self.link.memory(transmit::memory_bytes(config.buffer_bytes))?;
        let (blank, max_frame_bytes) = (self.blank(config.random), self.max_frame_bytes());
        let port = wrap(window, transmit::tolerance(entry_lines, blank != 0));
        Ok(Stopped(TxNiq::new((port, blank), memory, identity, config, max_frame_bytes)))
    }

    /// The host half of receiving by reads of the queue's window.
    ///
    /// # Errors
    /// As [`Port::rx_ring`], and [`beeline_contract_link::LinkError::NotExpressible`] on a link that cannot read
    /// windows.
    pub fn rx_niq(
        &mut self,
        queue: u32,
        config: RxNiqConfig,
    ) -> Result<Stopped<RxNiq<L::Reads, L::Memory, L::Doorbell>>, PortError> {
        self.check_interface(queue, Interface::Niq)?;
        Must::Between(0, 2).check("power of two of an entry's lines", u64::from(config.entry_lines_log2))?;
        let reads = self.link.window_reads(queue)?;
        check_window(queue, reads.lines(), 2 << config.entry_lines_log2)?;
        let entries = u64::from(reads.lines() >> config.entry_lines_log2);
        Must::Between(0, entries / 2)
            .check("entries between receive credits", u64::from(config.freed_coalesce))?;
        let long = match config.long {
            LongFrameConfig::Dropped => LongFrames::Dropped,
            LongFrameConfig::Ring(ring) => LongFrames::Ring(self.rx_ring(queue, ring)?.0),
            LongFrameConfig::Descriptors(lent) => LongFrames::Descriptors(self.rx_descriptor(queue, lent)?.0),
            LongFrameConfig::Pipe(pipe) => LongFrames::Pipe(self.rx_enso(queue, pipe)?.0),
        };
        let freed = self.link.doorbell(doorbell_offset(queue) + regs::doorbell::ENTRIES_FREED)?;
        Ok(Stopped(RxNiq::new((reads, freed), long, queue, config, self.max_frame_bytes())))
    }
}
