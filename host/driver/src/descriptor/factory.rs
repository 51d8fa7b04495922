//! Makes the host halves of `descriptor` queues: the transmit ring, and lent receive buffers.

use beeline_contract_link::Link;
use beeline_spec::formats::MIN_FRAME_BYTES;
use beeline_spec::{Interface, LINE_BYTES, regs};

use crate::descriptor::receive::{self, RxDescriptor};
use crate::descriptor::settings::{DescriptorConfig, RxDescriptorConfig};
use crate::descriptor::transmit::{self, TxDescriptor};
use crate::error::{Must, PortError};
use crate::port::Port;
use crate::port::half::Stopped;
use crate::port::queues::{MAX_ENTRIES, doorbell_offset};

impl<L: Link> Port<L> {
    /// The host half of a `descriptor` queue.
    ///
    /// # Errors
    /// The port is not ready, it has no such queue or interface, or a setting is out of range.
    pub fn descriptor(
        &mut self,
        queue: u32,
        config: DescriptorConfig,
    ) -> Result<Stopped<TxDescriptor<L::Memory, L::Doorbell>>, PortError> {
        let identity = self.transmit(queue, Interface::Descriptor, config.queue)?;
        let longest = self.max_frame_bytes().next_multiple_of(LINE_BYTES) as u64;
        let entries = u64::from(config.entries);
        Must::PowerOfTwo(2, MAX_ENTRIES).check("entries of the descriptor ring", entries)?;
        Must::PowerOfTwo(2 * longest, 1 << 32)
            .check("bytes of the frame buffer", config.buffer_bytes as u64)?;
        let completion_frames = u64::from(config.completion_frames);
        Must::Between(1, entries / 2).check("frames between completions", completion_frames)?;
        let layout = transmit::Layout::new(config.entries, config.buffer_bytes);
        let memory = self.link.memory(layout.bytes)?;
        let doorbell = self.link.doorbell(doorbell_offset(queue) + regs::doorbell::TX_TAIL)?;
        Ok(Stopped(TxDescriptor::new(memory, doorbell, identity, layout, config, self.max_frame_bytes())))
    }

    /// The host half of receive descriptors.
    ///
    /// # Errors
    /// The port is not ready, it has no such queue, or a setting is out of range.
    pub fn rx_descriptor(
        &mut self,
        queue: u32,
        config: RxDescriptorConfig,
    ) -> Result<Stopped<RxDescriptor<L::Memory, L::Doorbell>>, PortError> {
        self.check_queue(queue)?;
        let longest = self.max_frame_bytes().next_multiple_of(LINE_BYTES);
        let buffer_bytes = if config.buffer_bytes == 0 { longest } else { config.buffer_bytes };
        let entries = u64::from(config.entries);
        Must::PowerOfTwo(2, MAX_ENTRIES).check("receive buffers", entries)?;
        let shortest = MIN_FRAME_BYTES.next_multiple_of(LINE_BYTES) as u64;
        Must::MultipleOf(LINE_BYTES as u64, shortest, longest as u64)
            .check("bytes of a receive buffer", buffer_bytes as u64)?;
        Must::Between(0, entries / 2)
            .check("buffers between receive credits", u64::from(config.freed_coalesce))?;
        let layout = receive::Layout::new(config.entries, buffer_bytes);
        let memory = self.link.memory(layout.bytes)?;
        let freed = self.link.doorbell(doorbell_offset(queue) + regs::doorbell::RX_FREED)?;
        Ok(Stopped(RxDescriptor::new(memory, freed, queue, layout, config)))
    }
}
