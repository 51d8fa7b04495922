//! The `mmio` transmit engine: frames from plain, unfenced, unordered stores (HotOS'25 §3).
//!
//! A write is cut into pieces of a line ([`bar_ingress`]); pieces that do not make a whole line at the queue's frontier
//! wait in a context with a valid bit for each byte ([`reorder_unit`]); whole lines in order go to the pool
//! ([`buffer_pool`], [`tx_queue`]); a message whose last line is there moves the next start on and shows its frames to
//! the arbiter ([`message`]); the lines it frees become credits ([`credit_return`]). What goes wrong fails its own queue
//! and nothing else: every cause is counted.
//!
//! Back-pressure ([`Accept::Refused`]) is only ever for complete messages that wait for the wire: these leave whatever
//! else happens, so it cannot lock up. Missing space for incomplete data is a failure of the queue that asked
//! (docs/design.md, decision 4). Not here: register decoding and byte counts of writes ([`crate::bar`]), order between
//! queues ([`crate::egress`]).

mod arrival;
mod bar_ingress;
mod buffer_pool;
pub(crate) mod credit_return;
mod hole_timeout;
mod message;
mod reorder_unit;
mod tx_queue;

use beeline_contract_device::{Accept, DmaError, Enables, QueueId, SimTime};

use crate::NicConfig;
use crate::engine::{Cause, Engine, FrameSource, Left, QueueSettings, Shared, WindowEngine};

use bar_ingress::Pieces;
use buffer_pool::{Account, BufferPool};
use credit_return::CreditReturn;
use hole_timeout::HoleTimeout;
use reorder_unit::ReorderUnit;
use tx_queue::TxQueue;

/// The engine with the reorder unit.
#[derive(Debug)]
pub(crate) struct MmioEngine {
    queues: Box<[TxQueue]>,
    reorder: ReorderUnit,
    pool: BufferPool,
    credits: CreditReturn,
    holes: HoleTimeout,
    /// Lines in the pool of complete messages of queues on the shared account; what back-pressure waits for.
    complete_shared_lines: u32,
    /// Lines taken by the fast path.
    next_lines: u64,
    max_frame_bytes: u32,
    /// Where a frame of several lines is put together.
    gather: Box<[u8]>,
    /// Lines of one message, while escapes are put back.
    scratch: Vec<u32>,
}

impl MmioEngine {
    /// An engine with nothing started. Takes all its memory here.
    pub(crate) fn new(config: &NicConfig) -> Self {
        MmioEngine {
            queues: (0..config.queues).map(|_| TxQueue::new()).collect(),
            reorder: ReorderUnit::new(config.contexts, config.span_lines),
            pool: BufferPool::new(config.pool_lines),
            credits: CreditReturn::new(config.queues),
            holes: HoleTimeout::new(config.contexts),
            complete_shared_lines: 0,
            next_lines: 0,
            max_frame_bytes: config.max_frame_bytes,
            gather: vec![0; config.max_frame_bytes as usize].into_boxed_slice(),
            scratch: Vec::with_capacity(config.window_lines as usize),
        }
    }

    /// The next start of a queue in lines since it was started: all data below has been received.
    pub(crate) fn next_start(&self, queue: QueueId) -> u64 {
        self.queues[usize::from(queue.0)].next_start
    }

    pub(crate) fn free_pool_lines(&self) -> u32 {
        self.pool.free_lines()
    }

    /// Free reorder contexts.
    pub(crate) fn free_contexts(&self) -> u32 {
        self.reorder.free_contexts()
    }

    /// Lines from the queue's next line on, if it is this one, that the earliest incomplete message lacks; 0 where its frame may
    /// begin without them.
    #[inline]
    pub(crate) fn awaited_lines(&self, queue: QueueId, line: u32) -> u32 {
        self.queues.get(usize::from(queue.0)).map_or(0, |state| state.awaited_lines(line))
    }

    /// Pushes the credits that are due; called when the device has nothing else to do, so that a burst shares a push.
    #[inline]
    pub(crate) fn push_due_credits(&mut self, shared: &mut Shared) {
        self.credits.push_due(shared);
    }

    /// Whether the frame that the queue has next is one of an incomplete message.
    #[inline]
    pub(crate) fn begins_early(&self, queue: QueueId) -> bool {
        self.queues[usize::from(queue.0)].frame().bytes == 0
    }

    /// The frame of a queue's incomplete message begins.
    pub(crate) fn begin(&mut self, queue: QueueId) {
        self.queues[usize::from(queue.0)].begin();
    }

    /// It was ended with an abort mark.
    pub(crate) fn abort(&mut self, queue: QueueId) {
        self.queues[usize::from(queue.0)].close();
    }

    /// What is there of it, and whether that is all; `None` when its message is gone.
    pub(crate) fn open_frame(&mut self, queue: QueueId) -> Option<(&[u8], bool)> {
        let state = &self.queues[usize::from(queue.0)];
        let frame = state.open_frame()?;
        Some((frame.gather(&self.pool, &mut self.gather), state.frame().bytes != 0))
    }

    /// Lines of complete messages of a queue were given back to the pool.
    #[inline(always)]
    fn given_back(&mut self, queue: QueueId, lines: u32, shared: &mut Shared) {
        if lines == 0 {
            return;
        }
        let state = &mut self.queues[usize::from(queue.0)];
        match state.account {
            Account::Shared => self.complete_shared_lines -= lines,
            Account::Reserved => {
                state.freed += u64::from(lines);
                self.credits.freed(queue, state.freed, shared);
            }
        }
    }

    fn release_context(&mut self, queue: QueueId) {
        let state = &mut self.queues[usize::from(queue.0)];
        if let Some(context) = state.context.take() {
            self.holes.forget(context);
            self.reorder.release(context, state.account);
        }
    }

    /// Fails a queue: takes nothing more, forgets what is incomplete, keeps what is complete.
    #[cold]
    fn fail(&mut self, queue: QueueId, cause: Cause, shared: &mut Shared) {
        self.quarantine(queue, shared);
        shared.fail(queue, cause);
    }
}

impl WindowEngine for MmioEngine {
    #[inline]
    fn write_arrived(
        &mut self,
        queue: QueueId,
        offset_bytes: u64,
        data: &[u8],
        enables: Enables,
        shared: &mut Shared,
    ) -> Accept {
        self.write_in_pieces(queue, Pieces::new(offset_bytes as usize, data, enables), shared)
    }
}

impl FrameSource for MmioEngine {
    #[inline]
    fn head(&mut self, queue: QueueId) -> Option<&[u8]> {
        let frame = self.queues[usize::from(queue.0)].frame();
        (frame.bytes != 0).then(|| frame.gather(&self.pool, &mut self.gather))
    }

    #[inline]
    fn head_bytes(&self, queue: QueueId) -> Option<u32> {
        let state = &self.queues[usize::from(queue.0)];
        match state.frame().bytes {
            0 => state.can_begin().then(|| state.incoming_bytes()),
            bytes => Some(bytes),
        }
    }

    #[inline]
    fn pop(&mut self, queue: QueueId, shared: &mut Shared) {
        let lines = self.queues[usize::from(queue.0)].pop(&mut self.pool);
        self.given_back(queue, lines, shared);
    }

    #[inline(always)]
    fn leave(
        &mut self,
        queue: QueueId,
        most: u32,
        shared: &mut Shared,
        mut wire: impl FnMut(&[u8]) -> bool,
    ) -> Left {
        let (mut left, mut goes_on) = (Left::default(), true);
        while goes_on && left.frames < most {
            let state = &mut self.queues[usize::from(queue.0)];
            let mut to_wire = |frame: &[u8]| {
                left.count(frame);
                goes_on = wire(frame);
                goes_on && left.frames < most
            };
            let lines = if state.has_run_of_frames() {
                state.leave_from_batch(&mut self.pool, to_wire)
            } else if state.frame().bytes != 0 {
                to_wire(state.frame().gather(&self.pool, &mut self.gather));
                state.pop(&mut self.pool)
            } else {
                break;
            };
            self.given_back(queue, lines, shared);
            // Credits are written before the next frame leaves.
            goes_on &= shared.dma.is_empty();
        }
        left
    }
}

impl Engine for MmioEngine {
    fn start(&mut self, queue: QueueId, settings: &QueueSettings, shared: &mut Shared) -> Result<(), Cause> {
        if !settings.backpressure {
            // What is granted by credits must be there: the whole window, and a context for its disorder.
            if !self.reorder.reserve() {
                shared.counters.no_context += 1;
                return Err(Cause::NoContext);
            }
            if !self.pool.reserve(settings.window_lines) {
                self.reorder.unreserve();
                shared.counters.no_pool += 1;
                return Err(Cause::NoPool);
            }
        }
        let state = &mut self.queues[usize::from(queue.0)];
        state.start(settings, self.max_frame_bytes);
        self.credits.start(queue, settings);
        Ok(())
    }

    fn stop(&mut self, queue: QueueId, shared: &mut Shared) {
        if !self.queues[usize::from(queue.0)].started {
            return;
        }
        self.quarantine(queue, shared);
        self.credits.stop(queue);
        let state = &mut self.queues[usize::from(queue.0)];
        let complete = state.drop_complete(&mut self.pool);
        match state.account {
            Account::Shared => self.complete_shared_lines -= complete,
            Account::Reserved => {
                self.pool.unreserve(state.window_lines());
                self.reorder.unreserve();
            }
        }
        *state = TxQueue::new();
    }

    fn quarantine(&mut self, queue: QueueId, _shared: &mut Shared) {
        self.release_context(queue);
        let state = &mut self.queues[usize::from(queue.0)];
        state.active = false;
        state.drop_incomplete(&mut self.pool);
    }

    #[inline]
    fn progress(&mut self, _shared: &mut Shared) {}

    fn time_passed(&mut self, shared: &mut Shared) {
        self.credits.push_due(shared);
        while let Some(context) = self.holes.take_expired(shared.now) {
            let queue = self.reorder.owner(context);
            shared.counters.hole_timeouts += 1;
            self.fail(queue, Cause::HoleTimeout, shared);
        }
    }

    #[inline]
    fn wake_at(&self) -> SimTime {
        self.credits.wake_at().min(self.holes.wake_at())
    }

    fn dma_completed(&mut self, _tag: u16, _data: Result<&[u8], DmaError>, _shared: &mut Shared) {}
}
