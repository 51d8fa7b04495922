//! Receiving from a pipe: frames back to back, and notifications that tell how far it is filled.
//!
//! The host polls one word of the notification ring; each notification tells of all frames since the last, which are
//! then read one behind the other without looking at anything else. What is freed is told to the device when the batch
//! is used up, and earlier when it was long; that is also what asks for the next notification. Nothing is cleared in the
//! pipe: only notifications say what is new. The ring may tell of pipes of other queues too ([`crate::EnsoReceiver`]).
//!
//! From: the device's DMA writes. To: the caller, in place ([`RxFrame`]). Sadok et al., OSDI'23 (Ensō).

use beeline_contract_link::{DmaMemory, Doorbell};
use beeline_spec::regs::field::rx_mode::mode;
use beeline_spec::regs::queue as r;
use beeline_spec::{LINE_BYTES, WORD_BYTES};

use crate::enso::pipe::{NotifyRing, RxPipe};
use crate::enso::settings::RxEnsoConfig;
use crate::error::RxError;
use crate::port::half::{Epoch, QueueHalf, moderation};
use crate::receive::{FrameSpan, Receive, RxFrame};

/// Where the parts of the memory lie, in bytes: the notifications, then the pipe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub pipe_at: usize,
    pub bytes: usize,
}

impl Layout {
    pub(crate) const fn new(config: &RxEnsoConfig) -> Self {
        let pipe_at = (config.notifications as usize * WORD_BYTES).next_multiple_of(LINE_BYTES);
        Layout { pipe_at, bytes: pipe_at + config.lines as usize * LINE_BYTES }
    }
}

/// A receive pipe and its ring in memory `M`, freed lines told through doorbell `D`.
#[derive(Debug)]
pub struct RxEnso<M, D> {
    pub(crate) pipe: RxPipe<M, D>,
    pub(crate) ring: NotifyRing,
    queue: u32,
    epoch: Epoch,
    config: RxEnsoConfig,
    /// Whether the device has the register by which a queue names another's ring.
    can_share: bool,
    broken: Option<RxError>,
}

impl<M: DmaMemory, D: Doorbell> RxEnso<M, D> {
    /// A pipe over `memory`, which is zero and has the layout's size.
    ///
    /// # Panics
    /// If the memory is too small for the layout: the port sizes it.
    pub(crate) fn new(
        memory_and_freed: (M, D),
        queue: u32,
        config: RxEnsoConfig,
        can_share: bool,
        max_frame_bytes: u32,
    ) -> Self {
        assert!(config.notifications.is_power_of_two(), "{config:?}");
        let at = Layout::new(&config).pipe_at;
        let pipe = RxPipe::new(memory_and_freed, at, (config.lines, config.freed_coalesce), max_frame_bytes);
        let ring = NotifyRing::new(config.notifications);
        let epoch = Epoch::Counted(config.epoch);
        RxEnso { pipe, ring, queue, epoch, config, can_share, broken: None }
    }

    /// Frames received so far.
    pub fn frames(&self) -> u64 {
        self.pipe.frames
    }

    #[inline]
    fn step(&mut self) -> Result<Option<FrameSpan>, RxError> {
        if let Some(span) = self.pipe.frame()? {
            return Ok(Some(span));
        }
        let Some((found, word)) = self.ring.take(&mut self.pipe.memory) else { return Ok(None) };
        let is_ours = (u32::from(found.queue), found.epoch) == (self.queue, 0);
        if !is_ours || !self.pipe.fill_to(found.tail_lines) {
            return Err(self.ring.bad(word));
        }
        self.pipe.frame()
    }

    /// Where the next frame lies, if it is there; tells the device what was freed if it is not.
    #[inline]
    pub(crate) fn look(&mut self) -> Result<Option<FrameSpan>, RxError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        let found = self.step().inspect_err(|error| self.broken = Some(*error))?;
        if found.is_none() {
            self.pipe.tell();
        }
        Ok(found)
    }
}

impl<M: DmaMemory, D: Doorbell> QueueHalf for RxEnso<M, D> {
    fn queue(&self) -> u32 {
        self.queue
    }

    fn registers(&self, set: &mut dyn FnMut(u32, u64)) {
        set(r::RX_MODE, mode::PIPE);
        set(r::RX_RING_ADDRESS, self.pipe.address());
        set(r::RX_RING_ENTRIES, self.pipe.lines);
        set(r::RX_COMPLETION_ADDRESS, self.pipe.memory.address());
        set(r::RX_NOTIFY_ENTRIES, u64::from(self.config.notifications));
        set(r::RX_MODERATION, moderation(self.config.interrupts));
        if self.can_share {
            // Not what a former life of the queue shared.
            set(r::RX_NOTIFY_SHARE, 0);
        }
    }

    fn control(&self) -> u64 {
        0
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn restarted(mut self) -> Self {
        let ring = self.ring.restarted(&mut self.pipe.memory);
        let epoch = self.epoch.next();
        RxEnso { pipe: self.pipe.restarted(), ring, epoch, broken: None, ..self }
    }
}

impl<M: DmaMemory, D: Doorbell> Receive for RxEnso<M, D> {
    #[inline]
    fn poll(&mut self) -> Result<Option<RxFrame<'_>>, RxError> {
        let span = self.look()?;
        Ok(span.map(|span| self.pipe.hand_out(span)))
    }

    fn wants_interrupt(&mut self) -> Result<bool, RxError> {
        Ok(self.look()?.is_none())
    }
}
