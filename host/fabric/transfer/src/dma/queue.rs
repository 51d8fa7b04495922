//! A queue, as its program has it.

use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use beeline_fabric::{DmaDirection, DmaEntry, DmaSides, DmaState, LocalSegment, Refusal, RemoteSegment};

use super::engine::Engine;
use super::job::{DmaLocal, DmaTransfer, Job};
use super::turns::{Aborted, Ending, Queue, State};

/// A job of no more bytes and entries is copied by the thread that starts it, which would take longer to wake the thread that copies;
/// and the job has ended some twenty microseconds sooner (`docs/decisions/0052`).
pub const COPIED_AT_ONCE_BYTES: u64 = 64 << 10;
const COPIED_AT_ONCE_ENTRIES: usize = 16;

/// A queue of DMA jobs, of which one is under way at a time. All threads of the process may use it. A job that is under way when it is
/// dropped is aborted.
#[derive(Debug)]
pub struct DmaQueue {
    queue: Arc<Queue>,
    engine: Arc<Engine>,
}

/// A job that was started. It goes on when this is dropped.
#[derive(Clone, Debug)]
pub struct DmaJob {
    queue: Arc<Queue>,
    engine: Arc<Engine>,
    ending: Arc<OnceLock<Ending>>,
}

impl DmaJob {
    /// Waits until the job has ended, and copies pieces of it meanwhile: how it ended, or [`DmaState::Posted`] when the time is over first.
    /// What it copies at once is up to 16 microseconds' worth, by which it may be late.
    ///
    /// # Errors
    /// [`Refusal::System`] in a child of fork.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<DmaState, Refusal> {
        if !self.engine.is_ours() {
            return Err(Refusal::System);
        }
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Ok(self.queue.wait(&self.ending, until).map_or(DmaState::Posted, |ending| ending.state))
    }

    /// Why the job failed; nothing if it did not, or has not yet.
    pub fn failure(&self) -> Option<Refusal> {
        self.ending.get()?.failure
    }
}

impl DmaQueue {
    /// A queue that gathers so many entries at most for a job.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: none, or more than [`MAX_DMA_ENTRIES`](beeline_fabric::MAX_DMA_ENTRIES).
    pub fn new(engine: &Arc<Engine>, max_entries: usize) -> Result<Self, Refusal> {
        let queue = Arc::new(Queue::new(beeline_fabric::DmaQueue::new(max_entries)?));
        Ok(DmaQueue { queue, engine: Arc::clone(engine) })
    }

    /// Starts a job, which is copied by who waits for it.
    ///
    /// # Errors
    /// As [`DmaQueue::start`].
    pub fn begin(&self, transfer: DmaTransfer<'_>) -> Result<DmaJob, Refusal> {
        let can_start = |state: &State| state.check_ended().and_then(|()| state.queue.can_start());
        can_start(&self.check()?.lock())?;
        let job = self.engine.job(&transfer)?;
        let mut state = self.queue.lock();
        can_start(&state)?;
        state.queue.start(transfer.entries.to_vec())?;
        Ok(self.begun(state, job))
    }

    /// Starts a job, which another thread copies, too. A small one has ended when this returns.
    ///
    /// # Errors
    /// A job is under way ([`Refusal::Busy`]); there are no entries, or too many; one is outside its segment ([`Refusal::OutOfRange`]);
    /// a segment is not there, not connected any more ([`Refusal::NotConnected`]), or cannot be mapped. Then nothing is copied.
    pub fn start(&self, transfer: DmaTransfer<'_>) -> Result<DmaJob, Refusal> {
        let is_small = is_small(transfer.entries);
        let job = self.begin(transfer)?;
        self.go_on(is_small)?;
        Ok(job)
    }

    /// Copies a job on this thread, and says how it ended.
    ///
    /// # Errors
    /// As [`DmaQueue::start`]. A job that failed is no error here ([`DmaQueue::failure`]).
    pub fn copy(&self, transfer: DmaTransfer<'_>) -> Result<DmaState, Refusal> {
        self.begin(transfer)?.wait(None)
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
        let sides = DmaSides { local, remote, direction };
        // Whether both segments have it.
        drop(self.job(sides, &[entry])?);
        let mut state = self.queue.lock();
        state.check_ended().map_err(|_| Refusal::IllegalOperation)?;
        state.queue.gather(sides, entry)
    }

    /// Starts a job with the entries that were gathered, as [`DmaQueue::start`] does.
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`]: there are none. A segment is not there any more, or not connected.
    pub fn post(&self) -> Result<DmaJob, Refusal> {
        let gathered = {
            let state = self.check()?.lock();
            state.queue.gathered().map(|(sides, entries)| (sides, entries.to_vec()))
        };
        let (sides, entries) = gathered.ok_or(Refusal::IllegalOperation)?;
        let job = self.job(sides, &entries)?;
        let mut state = self.queue.lock();
        if state.queue.gathered() != Some((sides, &entries)) {
            // Another thread has gathered others meanwhile, of which the job is none.
            return Err(Refusal::IllegalOperation);
        }
        state.queue.post()?;
        let started = self.begun(state, job);
        self.go_on(is_small(&entries))?;
        Ok(started)
    }

    /// Forgets the entries that were gathered, and the end of the last job.
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`] while a job is under way.
    pub fn reset(&self) -> Result<(), Refusal> {
        let mut state = self.check()?.lock();
        state.check_ended().map_err(|_| Refusal::IllegalOperation)?;
        state.queue.reset()
    }

    fn job(&self, sides: DmaSides, entries: &[DmaEntry]) -> Result<Job, Refusal> {
        let DmaSides { local, remote, direction } = sides;
        self.check()?;
        self.engine.job(&DmaTransfer { local: DmaLocal::Segment(local), remote, direction, entries })
    }

    /// The queue, of which a child of fork has none.
    fn check(&self) -> Result<&Queue, Refusal> {
        if self.engine.is_ours() { Ok(&self.queue) } else { Err(Refusal::System) }
    }

    fn begun(&self, mut state: MutexGuard<'_, State>, job: Job) -> DmaJob {
        let started = self.started(state.begin(job));
        // It may be of no bytes.
        self.queue.settle(state);
        started
    }

    fn started(&self, ending: Arc<OnceLock<Ending>>) -> DmaJob {
        DmaJob { queue: Arc::clone(&self.queue), engine: Arc::clone(&self.engine), ending }
    }

    /// Copies a job that is small, or has it copied.
    fn go_on(&self, is_small: bool) -> Result<(), Refusal> {
        if is_small {
            self.queue.copy_all();
            return Ok(());
        }
        self.engine.turns.take(&self.queue).inspect_err(|_| {
            let _ = self.queue.abort();
        })
    }

    /// How the queue stands. A child of fork has no jobs.
    pub fn state(&self) -> DmaState {
        if self.engine.is_ours() { self.queue.lock().state() } else { DmaState::Idle }
    }

    /// Why the last job failed; nothing if it did not.
    pub fn failure(&self) -> Option<Refusal> {
        if self.engine.is_ours() { self.queue.lock().queue.failure() } else { None }
    }

    /// Waits until the job that is under way has ended, as [`DmaJob::wait`] does. One that has ended already is not waited for.
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`]: nothing was started.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<DmaState, Refusal> {
        let ending = {
            let state = self.check()?.lock();
            match state.state() {
                DmaState::Idle | DmaState::Gather => return Err(Refusal::IllegalOperation),
                DmaState::Posted => Arc::clone(&state.ending),
                ended => return Ok(ended),
            }
        };
        self.started(ending).wait(timeout)
    }

    /// Ends the job that is under way, and waits until nobody copies any of it any more: [`DmaState::Aborted`], or how it had ended before.
    /// Forgets entries that were gathered: [`DmaState::Idle`].
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`]: nothing was started.
    pub fn abort(&self) -> Result<DmaState, Refusal> {
        match self.check()?.abort()? {
            Aborted::Ends(ending) => self.started(ending).wait(None),
            Aborted::Ended(state) => Ok(state),
        }
    }
}

fn is_small(entries: &[DmaEntry]) -> bool {
    let bytes = entries.iter().fold(0u64, |bytes, entry| bytes.saturating_add(entry.bytes));
    bytes <= COPIED_AT_ONCE_BYTES && entries.len() <= COPIED_AT_ONCE_ENTRIES
}

impl Drop for DmaQueue {
    fn drop(&mut self) {
        // In a child of fork nobody copies, and the lock may be one that nobody gives back.
        if self.engine.is_ours() {
            let _ = self.queue.abort();
        }
    }
}
