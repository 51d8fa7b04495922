//! Making the halves of the rivals with entries and pipes: `inline`, `enso`, `niq`.
//!
//! As `queues.rs`, which opens, recovers and closes them too: a half takes its window, memory and doorbell from the link
//! and its settings are checked against the device.

use beeline_contract_link::{Link, ReadPort};
use beeline_contract_memory::{StorePort, Tolerance};
use beeline_spec::entry::PUSH_HALF_LINES;
use beeline_spec::formats::{RING_ENTRY_MAX_BYTES, feature};
use beeline_spec::{Interface, LINE_BYTES, pipe, regs};

use crate::config::{
    EnsoConfig, InlineConfig, LongFrameConfig, NiqConfig, RxEnsoConfig, RxEnsoMemberConfig, RxNiqConfig,
};
use crate::enso_receiver::{EnsoReceiver, RxEnsoMember};
use crate::error::{Must, PortError};
use crate::half::Stopped;
use crate::long_frames::LongFrames;
use crate::port::Port;
use crate::queues::{MAX_ENTRIES, doorbell_offset, resolve};
use crate::rx_enso::{self, RxEnso};
use crate::rx_niq::RxNiq;
use crate::tx_enso::{self, TxEnso};
use crate::tx_inline::{self, TxInline};
use crate::tx_niq::{self, TxNiq};

/// Longest pipe that is asked of a device, in lines.
const MAX_PIPE_LINES: u64 = 1 << 22;

impl<L: Link> Port<L> {
    /// The host half of an `inline` queue.
    ///
    /// # Errors
    /// As [`Port::mmio`].
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
    /// As [`Port::mmio`].
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
        let memory = self.link.memory(tx_inline::Layout::new(&config).bytes)?;
        let doorbell = self.link.doorbell(doorbell_offset(queue) + regs::doorbell::TX_TAIL)?;
        let (blank, max_frame_bytes) = (self.blank(config.random), self.max_frame_bytes());
        let bears = if blank == 0 { tx_inline::TOLERANCE } else { tx_inline::TOLERANCE_IN_MEMORY };
        let port = wrap(window, bears);
        Ok(Stopped(TxInline::new((port, blank), memory, doorbell, identity, config, max_frame_bytes)))
    }

    /// The host half of an `enso` queue.
    ///
    /// # Errors
    /// As [`Port::mmio`].
    pub fn enso(
        &mut self,
        queue: u32,
        config: EnsoConfig,
    ) -> Result<Stopped<TxEnso<L::Memory, L::Doorbell>>, PortError> {
        let identity = self.transmit(queue, Interface::Enso, config.queue)?;
        self.check_pipe("lines of the transmit pipe", config.lines)?;
        Must::Between(1, u64::from(config.lines / 2))
            .check("frames between completions", u64::from(config.completion_frames))?;
        let memory = self.link.memory(tx_enso::memory_bytes(config.lines))?;
        let doorbell = self.link.doorbell(doorbell_offset(queue) + regs::doorbell::TX_TAIL)?;
        Ok(Stopped(TxEnso::new(memory, doorbell, identity, config, self.max_frame_bytes())))
    }

    /// The host half of a receive pipe.
    ///
    /// # Errors
    /// As [`Port::rx_ring`].
    pub fn rx_enso(
        &mut self,
        queue: u32,
        config: RxEnsoConfig,
    ) -> Result<Stopped<RxEnso<L::Memory, L::Doorbell>>, PortError> {
        self.check_queue(queue)?;
        self.check_pipe("lines of the receive pipe", config.lines)?;
        Must::PowerOfTwo(1, MAX_ENTRIES).check("notifications", u64::from(config.notifications))?;
        Must::Between(0, u64::from(config.lines) / 2)
            .check("lines between receive credits", u64::from(config.freed_coalesce))?;
        let memory = self.link.memory(rx_enso::Layout::new(&config).bytes)?;
        let freed = self.link.doorbell(doorbell_offset(queue) + regs::doorbell::RX_FREED)?;
        let can_share = self.has_feature(feature::SHARED_NOTIFICATIONS);
        let max_frame_bytes = self.max_frame_bytes() as u32;
        Ok(Stopped(RxEnso::new((memory, freed), queue, config, can_share, max_frame_bytes)))
    }

    /// The host half of a receive pipe that is told of in the ring of queue `owner`, which runs while this one does.
    ///
    /// # Errors
    /// As [`Port::rx_ring`], and where the device has no shared rings.
    pub fn rx_enso_member(
        &mut self,
        queue: u32,
        owner: u32,
        config: RxEnsoMemberConfig,
    ) -> Result<Stopped<RxEnsoMember<L::Memory, L::Doorbell>>, PortError> {
        self.check_queue(queue)?;
        self.check_queue(owner)?;
        if !self.has_feature(feature::SHARED_NOTIFICATIONS) {
            return Err(PortError::NoFeature { feature: "tell of several pipes in one ring" });
        }
        self.check_pipe("lines of the receive pipe", config.lines)?;
        Must::Between(0, u64::from(config.lines) / 2)
            .check("lines between receive credits", u64::from(config.freed_coalesce))?;
        let memory = self.link.memory(config.lines as usize * LINE_BYTES)?;
        let freed = self.link.doorbell(doorbell_offset(queue) + regs::doorbell::RX_FREED)?;
        let max_frame_bytes = self.max_frame_bytes() as u32;
        Ok(Stopped(RxEnsoMember::new((memory, freed), (queue, owner), config, max_frame_bytes)))
    }

    /// A receiver around an open pipe, whose ring then tells of those that join.
    pub fn enso_receiver(
        &self,
        owner: RxEnso<L::Memory, L::Doorbell>,
    ) -> EnsoReceiver<L::Memory, L::Doorbell> {
        EnsoReceiver::new(owner, self.queues())
    }

    /// The host half of a `niq` queue.
    ///
    /// # Errors
    /// As [`Port::mmio`].
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
    /// As [`Port::mmio`].
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
        let memory = self.link.memory(tx_niq::memory_bytes(config.buffer_bytes))?;
        let (blank, max_frame_bytes) = (self.blank(config.random), self.max_frame_bytes());
        let port = wrap(window, tx_niq::tolerance(entry_lines, blank != 0));
        Ok(Stopped(TxNiq::new((port, blank), memory, identity, config, max_frame_bytes)))
    }

    /// The host half of receiving by reads of the queue's window.
    ///
    /// # Errors
    /// As [`Port::rx_ring`], and [`beeline_contract_link::LinkError::NotExpressible`] on a link that cannot read windows.
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

    /// A window of at least so many lines.
    fn window_of(&mut self, queue: u32, least_lines: u32) -> Result<L::Window, PortError> {
        let window = self.link.window(queue)?;
        check_window(queue, window.lines(), least_lines)?;
        Ok(window)
    }

    fn check_buffer(&self, bytes: usize) -> Result<(), PortError> {
        let longest = self.max_frame_bytes().next_multiple_of(LINE_BYTES) as u64;
        Must::PowerOfTwo(2 * longest, 1 << 32).check("bytes of the frame buffer", bytes as u64)
    }

    fn check_pipe(&self, what: &'static str, lines: u32) -> Result<(), PortError> {
        let longest = u64::from(pipe::lines_of(self.max_frame_bytes() as u32));
        Must::PowerOfTwo(2 * longest, MAX_PIPE_LINES).check(what, u64::from(lines))
    }
}

fn check_window(queue: u32, lines: u32, least_lines: u32) -> Result<(), PortError> {
    if !lines.is_power_of_two() || lines < least_lines {
        return Err(PortError::WindowSize { queue, register: 0, window: lines });
    }
    Ok(())
}
