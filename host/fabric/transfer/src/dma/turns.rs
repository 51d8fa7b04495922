//! Queues whose jobs are under way, and the thread that copies for all of them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use beeline_fabric::{DmaQueue, DmaState, Refusal};
use beeline_mmio::thread;

use super::job::Job;

/// What is waited for at a time where there is no end of it.
const MAX_SLEEP: Duration = Duration::from_secs(3600);

/// A queue, for all that copy its jobs.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// A job has ended.
    ended: Condvar,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) queue: DmaQueue,
    /// What the job uses that is under way.
    job: Option<Arc<Job>>,
    /// A job has copied all, and gives back what it used, without the lock. It is under way until that is done: who finds it ended must
    /// find its segments unused.
    is_ending: bool,
    /// Where the end of that job is put.
    pub(super) ending: Arc<OnceLock<Ending>>,
    /// Threads that sleep until a job has ended. Without any nobody is woken, which would be a system call for each job.
    sleepers: u32,
}

/// How a job ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    pub(super) state: DmaState,
    /// Why it failed, if it did.
    pub(super) failure: Option<Refusal>,
}

/// What an abort finds.
#[derive(Debug)]
pub(super) enum Aborted {
    /// A job, which ends with the pieces that are being copied.
    Ends(Arc<OnceLock<Ending>>),
    /// No job that is under way: how the queue stands.
    Ended(DmaState),
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
    /// The thread sleeps until there is a queue. Otherwise it finds one by itself, and waking it would be a system call for nothing.
    is_asleep: bool,
    is_over: bool,
}

impl State {
    /// How the queue stands.
    pub(super) fn state(&self) -> DmaState {
        if self.is_ending { DmaState::Posted } else { self.queue.state() }
    }

    /// # Errors
    /// A job is under way ([`Refusal::Busy`]).
    pub(super) fn check_ended(&self) -> Result<(), Refusal> {
        if self.is_ending { Err(Refusal::Busy) } else { Ok(()) }
    }

    /// Keeps what a job uses that was started just now, and says where its end will be found.
    pub(super) fn begin(&mut self, job: Job) -> Arc<OnceLock<Ending>> {
        self.job = Some(Arc::new(job));
        self.ending = Arc::default();
        Arc::clone(&self.ending)
    }
}

impl Queue {
    pub(super) fn new(queue: DmaQueue) -> Self {
        Queue {
            state: Mutex::new(State {
                queue,
                job: None,
                is_ending: false,
                ending: Arc::default(),
                sleepers: 0,
            }),
            ended: Condvar::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn abort(&self) -> Result<Aborted, Refusal> {
        let mut state = self.lock();
        let was_posted = state.state() == DmaState::Posted;
        state.queue.abort()?;
        if !was_posted {
            return Ok(Aborted::Ended(state.queue.state()));
        }
        let ending = Arc::clone(&state.ending);
        self.settle(state);
        Ok(Aborted::Ends(ending))
    }

    /// Copies pieces until none is left to be begun, or enough are copied: that is asked after each.
    pub(super) fn copy(&self, is_enough: impl Fn() -> bool) {
        let mut state = self.lock();
        while let Some(piece) = state.queue.next_piece() {
            let job = state.job.clone();
            drop(state);
            let outcome = job.as_ref().ok_or(Refusal::System).and_then(|job| job.copy(piece));
            // Before the job can end: who waits for that may remove the segments.
            drop(job);
            state = self.lock();
            state.queue.copied(outcome);
            if state.queue.state() != DmaState::Posted {
                self.settle(state);
                return;
            }
            if is_enough() {
                return;
            }
        }
    }

    /// Copies all of a job that others do not.
    pub(super) fn copy_all(&self) {
        self.copy(|| false);
    }

    /// Gives back what a job used if it has ended, and wakes who waits for that.
    pub(super) fn settle(&self, mut state: MutexGuard<'_, State>) {
        if state.queue.state() == DmaState::Posted {
            return;
        }
        let Some(job) = state.job.take() else { return };
        state.is_ending = true;
        drop(state);
        // It may be unmapped here, for which the member does whatever it wants then.
        drop(job);
        let mut state = self.lock();
        state.is_ending = false;
        let ending = Ending { state: state.queue.state(), failure: state.queue.failure() };
        // Nobody else sets it.
        let _ = state.ending.set(ending);
        let has_sleepers = state.sleepers > 0;
        drop(state);
        if has_sleepers {
            self.ended.notify_all();
        }
    }

    /// Waits until a job has ended, and copies pieces meanwhile; `None` when the time is over first.
    pub(super) fn wait(&self, ending: &OnceLock<Ending>, until: Option<Instant>) -> Option<Ending> {
        let is_over = || until.is_some_and(|until| Instant::now() >= until);
        if ending.get().is_none() && !is_over() {
            self.copy(|| ending.get().is_some() || is_over());
        }
        let mut state = self.lock();
        while ending.get().is_none() && !is_over() {
            let left = until.map_or(MAX_SLEEP, |until| until.saturating_duration_since(Instant::now()));
            state.sleepers += 1;
            let woken = self.ended.wait_timeout(state, left.min(MAX_SLEEP));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            state.sleepers -= 1;
        }
        ending.get().copied()
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
            match thread::start("beeline-dma", move || turns.copy()) {
                Ok(_detached) => waiting.has_thread = true,
                Err(error) => {
                    drop(waiting);
                    tracing::debug!(%error, "no thread for DMA");
                    queue.copy_all();
                    return Ok(());
                }
            }
        }
        // It may still wait for its turn with a job that others have copied meanwhile.
        if !waiting.queues.iter().any(|other| Arc::ptr_eq(other, queue)) {
            waiting.queues.push_back(Arc::clone(queue));
        }
        let is_asleep = waiting.is_asleep;
        drop(waiting);
        if is_asleep {
            self.arrived.notify_one();
        }
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
                waiting.is_asleep = true;
                waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                waiting.is_asleep = false;
                continue;
            };
            drop(waiting);
            queue.copy(|| true);
            let is_left = queue.has_piece();
            waiting = self.lock();
            if is_left {
                waiting.queues.push_back(queue);
            }
        }
    }
}
