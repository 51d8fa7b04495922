//! A queue, as its program has it.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use beeline_fabric::{DmaEntry, DmaState, LocalSegment, Refusal, RemoteSegment};

use super::engine::Engine;
use super::job::{DmaDirection, DmaLocal, DmaTransfer, Job};
use super::turns::{Gathered, Queue, State, Step};

/// A queue of DMA jobs, of which one is under way at a time. All threads of the process may use it. A job that is under way when it is
/// dropped is aborted.
#[derive(Debug)]
pub struct DmaQueue {
    queue: Arc<Queue>,
    engine: Arc<Engine>,
}

impl DmaQueue {
    pub(crate) fn new(engine: &Arc<Engine>, max_entries: usize) -> Result<Self, Refusal> {
        let queue = Arc::new(Queue::new(beeline_fabric::DmaQueue::new(max_entries)?));
        Ok(DmaQueue { queue, engine: Arc::clone(engine) })
    }

    /// Starts a job, which another thread copies.
    ///
    /// # Errors
    /// A job is under way ([`Refusal::Busy`]); there are no entries, or too many; one is outside its segment ([`Refusal::OutOfRange`]);
    /// a segment is not there, not connected any more ([`Refusal::NotConnected`]), or cannot be mapped. Then nothing is copied.
    pub fn start(&self, transfer: DmaTransfer<'_>) -> Result<(), Refusal> {
        self.begin(transfer)?;
        self.take_turns()
    }

    /// Copies a job on this thread, and says how it ended.
    ///
    /// # Errors
    /// As [`DmaQueue::start`]. A job that failed is no error here ([`DmaQueue::failure`]).
    pub fn copy(&self, transfer: DmaTransfer<'_>) -> Result<DmaState, Refusal> {
        self.begin(transfer)?;
        self.wait(None)
    }

    /// Puts an entry to those that are gathered for the next job, all of which are between the same segments and in the same direction.
    ///
    /// # Errors
    /// As [`DmaQueue::start`]; [`Refusal::MaxEntries`]; [`Refusal::IllegalOperation`] while a job is under way or until the last one's
    /// end is [reset](DmaQueue::reset), and for other segments than those of the entries before.
    pub fn gather(
        &self,
        (local, remote): (LocalSegment, RemoteSegment),
        direction: DmaDirection,
        entry: DmaEntry,
    ) -> Result<(), Refusal> {
        let gathered = Gathered { local, remote, direction };
        // Whether both segments have it.
        drop(self.job(gathered, &[entry])?);
        let mut state = self.queue.lock();
        if !state.queue.gathered().is_empty() && state.gathered != Some(gathered) {
            return Err(Refusal::IllegalOperation);
        }
        state.queue.gather(entry)?;
        state.gathered = Some(gathered);
        Ok(())
    }

    /// Starts a job with the entries that were gathered, as [`DmaQueue::start`] does.
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`]: there are none. A segment is not there any more, or not connected.
    pub fn post(&self) -> Result<(), Refusal> {
        let (gathered, entries) = {
            let state = self.check()?.lock();
            (state.gathered, state.queue.gathered().to_vec())
        };
        let gathered = gathered.filter(|_| !entries.is_empty()).ok_or(Refusal::IllegalOperation)?;
        let job = self.job(gathered, &entries)?;
        let mut state = self.queue.lock();
        state.queue.post()?;
        Self::put(&mut state, job);
        drop(state);
        self.take_turns()
    }

    /// Forgets the entries that were gathered, and the end of the last job.
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`] while a job is under way.
    pub fn reset(&self) -> Result<(), Refusal> {
        self.check()?.lock().queue.reset()
    }

    fn job(&self, gathered: Gathered, entries: &[DmaEntry]) -> Result<Job, Refusal> {
        let Gathered { local, remote, direction } = gathered;
        self.check()?;
        self.engine.job(&DmaTransfer { local: DmaLocal::Segment(local), remote, direction, entries })
    }

    /// The queue, of which a child of fork has none.
    fn check(&self) -> Result<&Queue, Refusal> {
        if self.engine.is_ours() { Ok(&self.queue) } else { Err(Refusal::System) }
    }

    /// Keeps what a job uses that was started just now, unless it has ended already.
    fn put(state: &mut State, job: Job) {
        if state.queue.state() == DmaState::Posted {
            state.job = Some(Arc::new(job));
        }
    }

    fn take_turns(&self) -> Result<(), Refusal> {
        self.engine.turns.take(&self.queue).inspect_err(|_| {
            let _ = self.queue.abort();
        })
    }

    /// How the queue stands. A child of fork has no jobs.
    pub fn state(&self) -> DmaState {
        if self.engine.is_ours() { self.queue.lock().queue.state() } else { DmaState::Idle }
    }

    /// Why the last job failed; nothing if it did not.
    pub fn failure(&self) -> Option<Refusal> {
        if self.engine.is_ours() { self.queue.lock().queue.failure() } else { None }
    }

    /// Waits until the job has ended, and copies pieces of it meanwhile: how it ended, or [`DmaState::Posted`] when the time is over first.
    /// What it copies at once is some ten microseconds' worth, by which it may be late.
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`]: nothing was started.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<DmaState, Refusal> {
        self.check()?;
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let is_over = || until.is_some_and(|until| Instant::now() >= until);
        while !is_over() && self.queue.step() == Step::Copied {}
        let mut state = self.queue.lock();
        loop {
            match state.queue.state() {
                DmaState::Idle | DmaState::Gather => return Err(Refusal::IllegalOperation),
                DmaState::Posted if !is_over() => {}
                ended => return Ok(ended),
            }
            let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            let woken = self.queue.ended.wait_timeout(state, left.min(Duration::from_secs(3600)));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the job that is under way, and waits until nobody copies any of it any more: [`DmaState::Aborted`], or how it had ended before.
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`]: nothing was started.
    pub fn abort(&self) -> Result<DmaState, Refusal> {
        self.check()?.abort()?;
        self.wait(None)
    }

    fn begin(&self, transfer: DmaTransfer<'_>) -> Result<(), Refusal> {
        self.check()?.lock().queue.can_start()?;
        let job = self.engine.job(&transfer)?;
        let mut state = self.queue.lock();
        state.queue.start(transfer.entries.to_vec())?;
        Self::put(&mut state, job);
        Ok(())
    }
}

impl Drop for DmaQueue {
    fn drop(&mut self) {
        // In a child of fork nobody copies, and the lock may be one that nobody gives back.
        if self.engine.is_ours() {
            let _ = self.queue.abort();
        }
    }
}
