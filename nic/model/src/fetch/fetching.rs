//! What transmit engines that read host memory have in common: queues that take turns for tags.
//!
//! A queue is a state machine of one interface ([`FetchQueue`]); this is the engine around it: which queues may be able
//! to do something, whose read an answer belongs to, and when a queue wants to be told of the time. It is the same for
//! descriptors, rings of entries, pipes and entries in the BAR, which differ in what they read and why.
//!
//! From: doorbells, and the answers to reads. To: the egress arbiter, by [`FrameSource`]. Not here: what is read.

use std::collections::VecDeque;

use beeline_contract_device::{Accept, DmaError, Enables, QueueId, SimTime, WatchEnd};

use super::reads::{Read, Reads};
use crate::NicConfig;
use crate::deadlines::Deadlines;
use crate::engine::{Cause, Engine, FetchEngine, FrameSource, QueueSettings, Shared, WindowEngine};

/// How a queue's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It can do nothing until something happens to it.
    Done,
    /// It has used up its turn and has more to ask for.
    More,
    /// There is no tag or no room in the DMA port.
    Blocked,
}

/// One started queue that reads host memory.
pub(crate) trait FetchQueue: Sized {
    /// A queue that begins empty; `life` tells its reads from those of the queue's other lives.
    fn start(
        id: QueueId,
        life: u32,
        settings: &QueueSettings,
        longest_frame_bytes: u32,
    ) -> Result<Self, Cause>;

    fn life(&self) -> u32;

    /// When [`FetchQueue::time_passed`] is due.
    fn deadline(&self) -> Option<SimTime>;

    /// The doorbell rang; `false` when its value makes no sense.
    fn post(&mut self, posted: u64) -> bool;

    /// Does what is possible now.
    fn turn(&mut self, reads: &mut Reads, shared: &mut Shared) -> Turn;

    /// The answer to a read of this life of the queue. Gives whether the queue wants a turn.
    fn answered(&mut self, read: Read, data: Result<&[u8], DmaError>, shared: &mut Shared) -> bool;

    /// The deadline has come. Gives whether the queue wants a turn.
    fn time_passed(&mut self, shared: &mut Shared) -> bool;

    /// The frame at the head, once it is whole.
    fn head(&mut self) -> Option<&[u8]>;

    /// Bytes of the first frame, once they are known.
    fn head_bytes(&self) -> Option<u32>;

    /// The frame at the head is on the wire. Gives whether the queue wants a turn.
    fn pop(&mut self, shared: &mut Shared) -> bool;
}

/// A queue that also takes writes to its window: entries that are pushed.
pub(crate) trait PushQueue: FetchQueue {
    /// A write that lies wholly inside the queue's window; see [`WindowEngine::write_arrived`]. Gives whether the queue
    /// wants a turn, too: most writes bring a part of an entry, and then there is nothing to do yet.
    fn write_arrived(
        &mut self,
        offset_bytes: u64,
        data: &[u8],
        enables: Enables,
        shared: &mut Shared,
    ) -> (Accept, bool);
}

/// A queue that watches a line of host memory for its next entry.
pub(crate) trait WatchQueue: FetchQueue {
    /// The answer to the queue's watch. Gives whether the queue wants a turn.
    fn line_changed(&mut self, data: Result<&[u8], WatchEnd>, shared: &mut Shared) -> bool;
}

/// The engine.
#[derive(Debug)]
pub(crate) struct Fetching<Q> {
    queues: Box<[Option<Box<Q>>]>,
    longest_frame_bytes: u32,
    reads: Reads,
    /// Queues that may be able to do something, each at most once.
    work: VecDeque<QueueId>,
    is_at_work: Box<[bool]>,
    /// Starts of queues so far: tells the lives of a queue apart.
    lives: u32,
    deadlines: Deadlines,
}

impl<Q: FetchQueue> Fetching<Q> {
    /// An engine with no queue started.
    pub(crate) fn new(config: &NicConfig) -> Self {
        Fetching {
            queues: (0..config.queues).map(|_| None).collect(),
            longest_frame_bytes: config.max_frame_bytes,
            reads: Reads::new(),
            work: VecDeque::with_capacity(config.queues as usize),
            is_at_work: vec![false; config.queues as usize].into_boxed_slice(),
            lives: 0,
            deadlines: Deadlines::new(config.queues as usize),
        }
    }

    #[inline]
    fn queue(&self, queue: QueueId) -> Option<&Q> {
        self.queues.get(usize::from(queue.0))?.as_deref()
    }

    #[inline]
    fn queue_mut(&mut self, queue: QueueId) -> Option<&mut Q> {
        self.queues.get_mut(usize::from(queue.0))?.as_deref_mut()
    }

    /// Whether a queue waits for its turn.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        !self.work.is_empty()
    }

    #[inline]
    fn put_to_work(&mut self, queue: QueueId) {
        let is_at_work = &mut self.is_at_work[usize::from(queue.0)];
        if !*is_at_work {
            *is_at_work = true;
            self.work.push_back(queue);
        }
    }

    #[inline]
    fn set_deadline(&mut self, queue: QueueId) {
        match self.queue(queue).and_then(Q::deadline) {
            Some(at) => self.deadlines.arm(usize::from(queue.0), at),
            None => self.deadlines.disarm(usize::from(queue.0)),
        }
    }
}

impl<Q: FetchQueue> Engine for Fetching<Q> {
    fn start(&mut self, queue: QueueId, settings: &QueueSettings, shared: &mut Shared) -> Result<(), Cause> {
        self.lives = self.lives.wrapping_add(1);
        let started = Q::start(queue, self.lives, settings, self.longest_frame_bytes)
            .inspect_err(|cause| shared.counters.bad_lengths += u64::from(*cause == Cause::BadLength))?;
        self.queues[usize::from(queue.0)] = Some(Box::new(started));
        // One that is not told when it has something to do begins to look for it.
        self.put_to_work(queue);
        Ok(())
    }

    fn stop(&mut self, queue: QueueId, _shared: &mut Shared) {
        // Reads under way stay in the table, under the number of this life, until they are answered.
        self.queues[usize::from(queue.0)] = None;
        self.deadlines.disarm(usize::from(queue.0));
    }

    #[inline]
    fn progress(&mut self, shared: &mut Shared) {
        let mut turns = self.work.len();
        while turns > 0 {
            turns -= 1;
            let Some(id) = self.work.pop_front() else { return };
            let started = self.queues[usize::from(id.0)].as_deref_mut();
            let turn = started.map_or(Turn::Done, |queue| queue.turn(&mut self.reads, shared));
            match turn {
                Turn::Done => self.is_at_work[usize::from(id.0)] = false,
                Turn::More => {
                    self.work.push_back(id);
                    turns += 1;
                }
                Turn::Blocked => self.work.push_back(id),
            }
            self.set_deadline(id);
        }
    }

    fn time_passed(&mut self, shared: &mut Shared) {
        while let Some(index) = self.deadlines.take_due(shared.now) {
            let id = QueueId(index as u16);
            if self.queue_mut(id).is_some_and(|queue| queue.time_passed(shared)) {
                self.put_to_work(id);
            }
        }
    }

    #[inline]
    fn wake_at(&self) -> SimTime {
        self.deadlines.earliest()
    }

    #[inline]
    fn dma_completed(&mut self, tag: u16, data: Result<&[u8], DmaError>, shared: &mut Shared) {
        let Some(read) = self.reads.finish(tag) else { return };
        let Some(queue) = self.queue_mut(read.queue).filter(|queue| queue.life() == read.life) else {
            return;
        };
        if queue.answered(read, data, shared) {
            self.put_to_work(read.queue);
        }
    }
}

impl<Q: PushQueue> WindowEngine for Fetching<Q> {
    #[inline]
    fn write_arrived(
        &mut self,
        queue: QueueId,
        offset_bytes: u64,
        data: &[u8],
        enables: Enables,
        shared: &mut Shared,
    ) -> Accept {
        let Some(started) = self.queue_mut(queue) else { return Accept::Taken };
        let (accept, wants_turn) = started.write_arrived(offset_bytes, data, enables, shared);
        // One that is not needed any more is left standing: it costs a look at the queue.
        if let Some(at) = started.deadline() {
            self.deadlines.arm(usize::from(queue.0), at);
        }
        if wants_turn {
            self.put_to_work(queue);
        }
        accept
    }
}

impl<Q: WatchQueue> Fetching<Q> {
    /// The answer to the watch of a queue that is started.
    pub(crate) fn line_changed(
        &mut self,
        queue: QueueId,
        data: Result<&[u8], WatchEnd>,
        shared: &mut Shared,
    ) {
        if self.queue_mut(queue).is_some_and(|started| started.line_changed(data, shared)) {
            self.put_to_work(queue);
        }
    }
}

impl<Q: FetchQueue> FetchEngine for Fetching<Q> {
    /// A value that runs backwards or past the ring is counted as a bad access and otherwise ignored.
    #[inline]
    fn doorbell(&mut self, queue: QueueId, tail: u64, shared: &mut Shared) {
        if self.queue_mut(queue).is_some_and(|started| started.post(tail)) {
            self.put_to_work(queue);
        } else {
            shared.counters.bad_accesses += 1;
        }
    }
}

impl<Q: FetchQueue> FrameSource for Fetching<Q> {
    #[inline]
    fn head(&mut self, queue: QueueId) -> Option<&[u8]> {
        self.queue_mut(queue)?.head()
    }

    #[inline]
    fn head_bytes(&self, queue: QueueId) -> Option<u32> {
        self.queue(queue)?.head_bytes()
    }

    #[inline]
    fn pop(&mut self, queue: QueueId, shared: &mut Shared) {
        let Some(started) = self.queue_mut(queue) else { return };
        let wants_turn = started.pop(shared);
        // One that is not needed any more is left standing: it costs a look at the queue.
        if let Some(at) = started.deadline() {
            self.deadlines.arm(usize::from(queue.0), at);
        }
        if wants_turn {
            self.put_to_work(queue);
        }
    }
}
