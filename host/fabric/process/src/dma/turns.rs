//! Queues whose jobs are under way, and the thread that copies for all of them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use beeline_fabric::{DmaQueue, DmaState, LocalSegment, Refusal, RemoteSegment};
use beeline_mmio::thread;

use super::job::{DmaDirection, Job};

/// A queue, for all that copy its jobs.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// A job has ended.
    pub(super) ended: Condvar,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) queue: DmaQueue,
    /// What the job uses that is under way.
    pub(super) job: Option<Arc<Job>>,
    /// Between what the entries are that are gathered.
    pub(super) gathered: Option<Gathered>,
}

/// Between what entries are gathered for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gathered {
    pub(super) local: LocalSegment,
    pub(super) remote: RemoteSegment,
    pub(super) direction: DmaDirection,
}

/// What one step of a job was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing is left to be begun.
    Nothing,
    Copied,
}

/// Queues with something to be copied, each of which gets a piece copied before the first gets the next one.
#[derive(Debug, Default)]
pub(super) struct Turns {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    queues: VecDeque<Arc<Queue>>,
    has_thread: bool,
    is_over: bool,
}

impl Queue {
    pub(super) fn new(queue: DmaQueue) -> Self {
        Queue { state: Mutex::new(State { queue, job: None, gathered: None }), ended: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn abort(&self) -> Result<(), Refusal> {
        let mut state = self.lock();
        state.queue.abort()?;
        self.settle(state);
        Ok(())
    }

    /// Copies a piece.
    pub(super) fn step(&self) -> Step {
        let mut state = self.lock();
        let Some(piece) = state.queue.next_piece() else { return Step::Nothing };
        let job = state.job.clone();
        drop(state);
        let outcome = job.as_ref().ok_or(Refusal::System).and_then(|job| job.copy(piece));
        // Before the job can end: who waits for that may remove the segments.
        drop(job);
        let mut state = self.lock();
        state.queue.copied(outcome);
        self.settle(state);
        Step::Copied
    }

    /// Gives what a job used if it has ended, and wakes who waits for that.
    fn settle(&self, mut state: MutexGuard<'_, State>) {
        if state.queue.state() != DmaState::Posted
            && let Some(job) = state.job.take()
        {
            // With the lock held: who finds the job ended must find its segments unused.
            drop(job);
            drop(state);
            self.ended.notify_all();
        }
    }

    fn has_piece(&self) -> bool {
        self.lock().queue.has_piece()
    }
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread copy a job; where there can be none, copies it here.
    pub(super) fn take(self: &Arc<Self>, queue: &Arc<Queue>) -> Result<(), Refusal> {
        let mut waiting = self.lock();
        if waiting.is_over {
            return Err(Refusal::IllegalOperation);
        }
        if !waiting.has_thread {
            let turns = Arc::clone(self);
            match thread::spawn("beeline-dma", move || turns.copy()) {
                Ok(_detached) => waiting.has_thread = true,
                Err(error) => {
                    drop(waiting);
                    tracing::debug!(%error, "no thread for DMA");
                    while queue.step() == Step::Copied {}
                    return Ok(());
                }
            }
        }
        // It may still wait for its turn with a job that others have copied meanwhile.
        if !waiting.queues.iter().any(|other| Arc::ptr_eq(other, queue)) {
            waiting.queues.push_back(Arc::clone(queue));
        }
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    /// The thread ends, and takes nothing more.
    pub(super) fn end(&self) {
        let mut waiting = self.lock();
        waiting.is_over = true;
        let left = std::mem::take(&mut waiting.queues);
        drop(waiting);
        self.arrived.notify_all();
        drop(left);
    }

    /// Copies for all queues until the engine ends.
    fn copy(&self) {
        let mut waiting = self.lock();
        while !waiting.is_over {
            let Some(queue) = waiting.queues.pop_front() else {
                waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(waiting);
            let is_left = queue.step() == Step::Copied && queue.has_piece();
            waiting = self.lock();
            if is_left {
                waiting.queues.push_back(queue);
            }
        }
    }
}
