//! Makes the host halves of `enso` pipes.

use beeline_contract_link::Link;
use beeline_spec::formats::feature;
use beeline_spec::{Interface, LINE_BYTES, pipe, regs};

use crate::enso::receive::{self, RxEnso};
use crate::enso::receiver::{EnsoReceiver, RxEnsoMember};
use crate::enso::settings::{EnsoConfig, RxEnsoConfig, RxEnsoMemberConfig};
use crate::enso::transmit::{self, TxEnso};
use crate::error::{Must, PortError};
use crate::port::Port;
use crate::port::half::Stopped;
use crate::port::queues::{MAX_ENTRIES, doorbell_offset};

/// Longest pipe that is asked of a device, in lines.
const MAX_PIPE_LINES: u64 = 1 << 22;

impl<L: Link> Port<L> {
    /// The host half of an `enso` queue.
    ///
    /// # Errors
    /// The port is not ready, it has no such queue or interface, or a setting is out of range.
    pub fn enso(
        &mut self,
        queue: u32,
        config: EnsoConfig,
    ) -> Result<Stopped<TxEnso<L::Memory, L::Doorbell>>, PortError> {
        let identity = self.transmit(queue, Interface::Enso, config.queue)?;
        self.check_pipe("lines of the transmit pipe", config.lines)?;
        Must::Between(1, u64::from(config.lines / 2))
            .check("frames between completions", u64::from(config.completion_frames))?;
        let memory = self.link.memory(transmit::memory_bytes(config.lines))?;
        let doorbell = self.link.doorbell(doorbell_offset(queue) + regs::doorbell::TX_TAIL)?;
        Ok(Stopped(TxEnso::new(memory, doorbell, identity, config, self.max_frame_bytes())))
    }

    /// The host half of a receive pipe.
    ///
    /// # Errors
    /// The port is not ready, it has no such queue, or a setting is out of range.
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
        let memory = self.link.memory(receive::Layout::new(&config).bytes)?;
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

    fn check_pipe(&self, what: &'static str, lines: u32) -> Result<(), PortError> {
        let longest = u64::from(pipe::lines_of(self.max_frame_bytes() as u32));
        Must::PowerOfTwo(2 * longest, MAX_PIPE_LINES).check(what, u64::from(lines))
    }
}
