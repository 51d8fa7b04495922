//! How far a transmit queue is, told to the host: a count in its memory, and the interrupt that follows it.
//!
//! One for all interfaces with a ring in host memory; only the unit of the count differs. The same thing tells the
//! credits of a push window in memory. Moderated by count and time
//! ([`super::Moderation`]); an interrupt is raised with the next report after a frame that asked for it.

use beeline_contract_device::{QueueId, SimTime};

use super::moderation::Moderation;
use crate::engine::{Cause, IrqCause, QueueSettings, Shared};

/// What is to be reported, and where.
#[derive(Debug)]
pub(crate) struct HeadReport {
    id: QueueId,
    address: u64,
    completions: Moderation,
    wants_interrupt: bool,
    is_credit: bool,
}

impl HeadReport {
    /// Starts with nothing to report. `Err`: the address is not that of a word. `Err`: the address is not that of a
    /// word.
    pub(crate) fn new(id: QueueId, settings: &QueueSettings) -> Result<Self, Cause> {
        let completions = Moderation::new(settings.tx_moderation_frames, settings.tx_moderation_ns);
        HeadReport::at(id, settings.tx_head_address, completions, false)
    }

    /// Nothing is ever reported: the queue tells what is done by itself.
    pub(crate) fn none(id: QueueId) -> Self {
        let completions = Moderation::new(0, 0);
        HeadReport { id, address: 0, completions, wants_interrupt: false, is_credit: false }
    }

    /// The same for the credits of a window.
    pub(crate) fn credits(id: QueueId, settings: &QueueSettings) -> Result<Self, Cause> {
        let pushes = Moderation::new(settings.credit_lines, settings.credit_time_ns);
        HeadReport::at(id, settings.credit_address, pushes, true)
    }

    fn at(id: QueueId, address: u64, completions: Moderation, is_credit: bool) -> Result<Self, Cause> {
        let report = HeadReport { id, address, completions, wants_interrupt: false, is_credit };
        if address.is_multiple_of(8) { Ok(report) } else { Err(Cause::DmaError) }
    }

    /// A frame is done.
    #[inline]
    pub(crate) fn note(&mut self, wants_interrupt: bool, now: SimTime) {
        self.wants_interrupt |= wants_interrupt;
        self.completions.note(1, now);
    }

    /// Lines are free.
    #[inline]
    pub(crate) fn note_lines(&mut self, lines: u32, now: SimTime) {
        self.completions.note(lines, now);
    }

    /// When the next report is due for its time alone.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<SimTime> {
        self.completions.deadline()
    }

    /// Writes the head count, and interrupts, if that is due. `false`: due, but the DMA port has no room.
    #[inline]
    pub(crate) fn report(&mut self, head: u64, is_idle: bool, shared: &mut Shared) -> bool {
        !self.completions.is_due(shared.now, is_idle) || self.write(head, shared)
    }

    fn write(&mut self, head: u64, shared: &mut Shared) -> bool {
        if self.address != 0 {
            if !shared.dma.write(self.address, &head.to_le_bytes()) {
                return false;
            }
            let counters = &mut shared.counters;
            *(if self.is_credit { &mut counters.credit_pushes } else { &mut counters.completions }) += 1;
        }
        self.completions.clear();
        if self.wants_interrupt {
            self.wants_interrupt = false;
            shared.interrupts.raise(IrqCause::TxCompletion, self.id);
        }
        true
    }
}
