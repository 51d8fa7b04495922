//! Makes the host half of an `inline` queue.

use beeline_contract_link::Link;
use beeline_contract_memory::{StorePort, Tolerance};
use beeline_spec::entry::PUSH_HALF_LINES;
use beeline_spec::formats::RING_ENTRY_MAX_BYTES;
use beeline_spec::{Interface, LINE_BYTES, regs};

use crate::error::{Must, PortError};
use crate::inline::settings::InlineConfig;
use crate::inline::transmit::{self, TxInline};
use crate::port::Port;
use crate::port::half::Stopped;
use crate::port::queues::{MAX_ENTRIES, doorbell_offset, resolve};

impl<L: Link> Port<L> {
    /// The host half of an `inline` queue.
    ///
    /// # Errors
    /// The port is not ready, it has no such queue or interface, its window is taken, or a setting is out of range.
    pub fn inline(
        &mut self,
        queue: u32,
        config: InlineConfig,
    ) -> Result<Stopped<TxInline<L::Window, L::Memory, L::Doorbell>>, PortError> {
        self.inline_behind(queue, config, |window, _| window)
    }

    /// As [`Port::inline`], with `wrap` between the interface and the window.
    ///
    /// # Errors
    /// The port is not ready, it has no such queue or interface, its window is taken, or a setting is out of range.
    pub fn inline_behind<P: StorePort>(
        &mut self,
        queue: u32,
        config: InlineConfig,
        wrap: impl FnOnce(L::Window, Tolerance) -> P,
    ) -> Result<Stopped<TxInline<P, L::Memory, L::Doorbell>>, PortError> {
        let identity = self.transmit(queue, Interface::Inline, config.queue)?;
        let least_lines = (RING_ENTRY_MAX_BYTES / LINE_BYTES) as u64;
        Must::PowerOfTwo(least_lines, MAX_ENTRIES)
            .check("lines of the ring of entries", u64::from(config.ring_lines))?;
        self.check_buffer(config.buffer_bytes)?;
        Must::Between(1, u64::from(config.ring_lines / 2))
            .check("frames between completions", u64::from(config.completion_frames))?;
        let window = self.window_of(queue, 2 * PUSH_HALF_LINES)?;
        let config = InlineConfig { credits: resolve(config.credits, window.lines()), ..config };
        let memory = self.link.memory(transmit::Layout::new(&config).bytes)?;
        let doorbell = self.link.doorbell(doorbell_offset(queue) + regs::doorbell::TX_TAIL)?;
        let (blank, max_frame_bytes) = (self.blank(config.random), self.max_frame_bytes());
        let bears = if blank == 0 { transmit::TOLERANCE } else { transmit::TOLERANCE_IN_MEMORY };
        let port = wrap(window, bears);
        Ok(Stopped(TxInline::new((port, blank), memory, doorbell, identity, config, max_frame_bytes)))
    }
}
