//! DMA queues of a member: the engine of an adapter copies between segments of this host and of others, and the core is free meanwhile.
//!
//! States, gathered entries, pieces and ends are those of `host/fabric/src/dma.rs`, as of queues whose jobs threads copy
//! (`host/fabric/transfer`). A piece is done when the engine has read a word of the other host behind it, and that says, with the sequence that
//! began before the first byte, that no link has lost anything meanwhile. Not here: groups, which are mapped by their number; memory of
//! the program, since a host has segments only. Record 0070.

use beeline_fabric::{Call, DmaEntry, DmaQueue, DmaSides, DmaState, Part, Refusal, SequenceStatus};
use beeline_link_sim::des::Picoseconds;

use crate::dma_job::{DmaQueueId, Job, Queue};
use crate::member::HostMember;
use crate::wiring::{DMA_QUEUES, LINE_BYTES, PIECES};

impl HostMember {
    /// Makes a queue whose jobs go by the engine of an adapter, and which gathers so many entries at most.
    ///
    /// # Errors
    /// [`Refusal::NotSupported`]: adapters have no engines. [`Refusal::NoSuchAdapterno`]. [`Refusal::Nospc`]: there are as many queues as can be.
    /// [`Refusal::IllegalParameter`]: entries are none, or too many.
    pub fn create_dma_queue(&mut self, adapter: u16, max_entries: usize) -> Result<DmaQueueId, Refusal> {
        if !self.core().has_engines() {
            return Err(Refusal::NotSupported);
        }
        if adapter >= self.core().adapters() {
            return Err(Refusal::NoSuchAdapterno);
        }
        let free = (0..DMA_QUEUES).find(|at| !self.dma.queues.contains_key(&DmaQueueId::new(*at)));
        let id = DmaQueueId::new(free.ok_or(Refusal::Nospc)?);
        let statuses = self.sessions.wiring.of(self.core().host()).statuses;
        let queue = Queue {
            queue: DmaQueue::new(max_entries)?,
            adapter,
            statuses: (statuses, id.number() * PIECES * LINE_BYTES),
            job: None,
            is_told: false,
        };
        self.dma.queues.insert(id, queue);
        Ok(id)
    }

    /// Removes a queue; a job that is under way is aborted, and waited for.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: there is no such queue.
    pub fn remove_dma_queue(&mut self, id: DmaQueueId) -> Result<(), Refusal> {
        if self.dma_state(id)? == DmaState::Posted {
            self.abort_dma(id)?;
        }
        self.dma.queues.remove(&id);
        Ok(())
    }

    /// Starts a job. Its segments are in use until it has ended.
    ///
    /// # Errors
    /// A job is under way ([`Refusal::Busy`]), or entries are gathered ([`Refusal::IllegalOperation`]); there are no entries, or too many; one is
    /// outside its segment; a segment is not there, or not connected any more ([`Refusal::NotConnected`]); a link is down, or what it lost is
    /// still to be pushed anew ([`Refusal::TransferFailed`]). Then nothing is copied.
    pub fn start_dma(
        &mut self,
        id: DmaQueueId,
        sides: DmaSides,
        entries: &[DmaEntry],
    ) -> Result<(), Refusal> {
        self.queue(id)?.queue.can_start()?;
        let job = self.job(id, sides, entries)?;
        let queue = self.queue(id)?;
        let started = queue.queue.start(entries.to_vec());
        self.started(id, job, started)
    }

    /// Puts an entry to those that are gathered for the next job, all of which are between the same segments and in the same direction.
    ///
    /// # Errors
    /// As [`HostMember::start_dma`]; [`Refusal::MaxEntries`]; [`Refusal::IllegalOperation`] while a job is under way or until the last one's
    /// end is [reset](HostMember::reset_dma), and for other segments than those of the entries before.
    pub fn gather_dma(&mut self, id: DmaQueueId, sides: DmaSides, entry: DmaEntry) -> Result<(), Refusal> {
        // Whether both segments have it.
        let job = self.job(id, sides, &[entry])?;
        self.give_back(job);
        self.queue(id)?.queue.gather(sides, entry)
    }

    /// Starts a job with the entries that were gathered, as [`HostMember::start_dma`] does.
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`]: there are none. Others as of that.
    pub fn post_dma(&mut self, id: DmaQueueId) -> Result<(), Refusal> {
        let gathered = self.queue(id)?.queue.gathered().map(|(sides, entries)| (sides, entries.to_vec()));
        let (sides, entries) = gathered.ok_or(Refusal::IllegalOperation)?;
        let job = self.job(id, sides, &entries)?;
        let posted = self.queue(id)?.queue.post();
        self.started(id, job, posted)
    }

    /// Forgets the entries that were gathered, and the end of the last job.
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`] while a job is under way.
    pub fn reset_dma(&mut self, id: DmaQueueId) -> Result<(), Refusal> {
        self.queue(id)?.queue.reset()
    }

    /// Looks once: how a queue stands now.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: there is no such queue.
    pub fn dma_state(&mut self, id: DmaQueueId) -> Result<DmaState, Refusal> {
        self.tend_dma();
        Ok(self.queue(id)?.queue.state())
    }

    /// Why the last job of a queue failed; nothing if it did not.
    pub fn dma_failure(&self, id: DmaQueueId) -> Option<Refusal> {
        self.dma.queues.get(&id)?.queue.failure()
    }

    /// Waits until the job of a queue has ended, and serves other members meanwhile: how it ended, or [`DmaState::Posted`] when the time is over
    /// first.
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`]: nothing was started.
    pub fn wait_for_dma(&mut self, id: DmaQueueId, until: Picoseconds) -> Result<DmaState, Refusal> {
        loop {
            match self.dma_state(id)? {
                DmaState::Idle | DmaState::Gather => return Err(Refusal::IllegalOperation),
                DmaState::Posted if self.now() < until => self.step(until),
                state => return Ok(state),
            }
        }
    }

    /// Ends the job that is under way, and waits until nothing of it is on its way any more: [`DmaState::Aborted`], or how it had ended before.
    /// Forgets entries that were gathered: [`DmaState::Idle`].
    ///
    /// # Errors
    /// [`Refusal::IllegalOperation`]: nothing was started.
    pub fn abort_dma(&mut self, id: DmaQueueId) -> Result<DmaState, Refusal> {
        let core = self.core().clone();
        self.queue(id)?.abort(&core)?;
        while self.dma_state(id)? == DmaState::Posted {
            self.step(Picoseconds::NEVER);
        }
        self.dma_state(id)
    }

    /// Has the ends of a queue's jobs told by [`HostMember::next_dma_end`] from here on, or not. At first they are not.
    ///
    /// # Errors
    /// [`Refusal::IllegalParameter`]: there is no such queue.
    pub fn tell_dma_ends(&mut self, id: DmaQueueId, are_told: bool) -> Result<(), Refusal> {
        self.queue(id)?.is_told = are_told;
        Ok(())
    }

    /// The next job that has ended of those whose end is told, oldest first, and how it ended.
    pub fn next_dma_end(&mut self) -> Option<(DmaQueueId, DmaState)> {
        self.dma.ends.pop_front()
    }

    fn queue(&mut self, id: DmaQueueId) -> Result<&mut Queue, Refusal> {
        self.dma.queues.get_mut(&id).ok_or(Refusal::IllegalParameter)
    }

    /// Maps what a job uses, and checks that it is there.
    fn job(&mut self, id: DmaQueueId, sides: DmaSides, entries: &[DmaEntry]) -> Result<Job, Refusal> {
        let adapter = self.queue(id)?.adapter;
        let (local_end, remote_end) = Queue::ends(entries)?;
        let local = self.map_local(sides.local, Part { offset: 0, bytes: local_end })?;
        let mapped = match self.map(sides.remote, Part { offset: 0, bytes: remote_end }) {
            Ok(mapped) => mapped.by(adapter),
            Err(refusal) => {
                let _ = self.call(Call::UnmapLocal(sides.local));
                return Err(refusal);
            }
        };
        let is_up = self.core().is_up_at_both_ends(adapter);
        let (status, start) = mapped.start();
        match start.filter(|_| is_up) {
            Some(start) => Ok(Job::new(sides, local, mapped, start)),
            None => {
                self.unmap(sides);
                let is_gone = status == SequenceStatus::NotRetriable;
                Err(if is_gone { Refusal::NotConnected } else { Refusal::TransferFailed })
            }
        }
    }

    fn started(&mut self, id: DmaQueueId, job: Job, started: Result<(), Refusal>) -> Result<(), Refusal> {
        if let Err(refusal) = started {
            self.give_back(job);
            return Err(refusal);
        }
        self.queue(id)?.job = Some(job);
        self.tend_dma();
        Ok(())
    }

    fn give_back(&mut self, job: Job) {
        self.unmap(job.sides);
    }

    fn unmap(&mut self, sides: DmaSides) {
        // What is gone is not mapped any more.
        let _ = self.call(Call::UnmapLocal(sides.local));
        let _ = self.call(Call::UnmapRemote(sides.remote));
    }

    /// Looks at what engines have done, has them go on, and gives back what jobs used that have ended.
    pub(crate) fn tend_dma(&mut self) {
        let core = self.core().clone();
        let mut ended = Vec::new();
        for (id, queue) in &mut self.dma.queues {
            queue.look(&core);
            queue.begin_pieces(&core, &mut self.dma.next_number);
            if let Some(job) = queue.take_ended() {
                ended.push((*id, queue.is_told, queue.queue.state(), job));
            }
        }
        for (id, is_told, state, job) in ended {
            self.give_back(job);
            if is_told {
                self.dma.ends.push_back((id, state));
            }
        }
    }
}
