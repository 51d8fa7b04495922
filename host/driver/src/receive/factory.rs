//! Makes the host half of a contiguous receive ring, which any interface can transmit beside.

use beeline_contract_link::Link;
use beeline_spec::header::lines_of;
use beeline_spec::{LINE_BYTES, regs};

use crate::error::{Must, PortError};
use crate::port::Port;
use crate::port::half::Stopped;
use crate::port::queues::doorbell_offset;
use crate::receive::ring::RxRing;
use crate::receive::settings::RxRingConfig;

impl<L: Link> Port<L> {
    /// The host half of a contiguous receive ring.
    ///
    /// # Errors
    /// The port is not ready, there is no such queue, memory is short, or a setting is out of range.
    pub fn rx_ring(
        &mut self,
        queue: u32,
        config: RxRingConfig,
    ) -> Result<Stopped<RxRing<L::Memory, L::Doorbell>>, PortError> {
        self.check_queue(queue)?;
        let longest = u64::from(lines_of(self.max_frame_bytes() as u32));
        Must::PowerOfTwo(2 * longest, 1 << 24).check("lines of the receive ring", u64::from(config.lines))?;
        let coalesce = u64::from(config.freed_coalesce);
        Must::Between(0, u64::from(config.lines) / 2).check("lines between receive credits", coalesce)?;
        let memory = self.link.memory(config.lines as usize * LINE_BYTES)?;
        let freed = self.link.doorbell(doorbell_offset(queue) + regs::doorbell::RX_FREED)?;
        Ok(Stopped(RxRing::new(memory, freed, queue, config, self.max_frame_bytes() as u32)))
    }
}
