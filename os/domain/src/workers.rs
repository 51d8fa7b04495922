//! The threads on which the work behind an [`crate::Answer`] is done.
//!
//! One work of each process is under way at a time and the processes take turns, so one that asks for much delays itself.
//! Processes of other users than the owner's have half of the threads, together. Work on memory takes turns by the piece
//! (`fair_lock.rs`), so threads are only many where works wait for something else.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use beeline_mmio::{Pace, thread};

use crate::fair_lock::FairLock;
use crate::shares::Process;

/// Works under way at the same time.
const MOST_THREADS: usize = 16;
/// Of those, works for processes of users who are not the owner.
const MOST_FOREIGN: usize = MOST_THREADS / 2;
/// How long a thread that is not the only one waits for work before it ends.
const IDLE_LIMIT: Duration = Duration::from_secs(1);

/// Something to do, and then to tell.
pub(crate) type Job = Box<dyn FnOnce(&dyn Pace) + Send>;

/// Another thread's handle on the workers. Dropping the last one ends them, once what is under way is done.
pub(crate) struct Workers(Arc<Pool>);

struct Pool {
    own_uid: u32,
    state: Mutex<State>,
    more: Condvar,
    turns: FairLock,
}

#[derive(Default)]
struct State {
    /// One for each process that has work, the next first.
    lines: VecDeque<Line>,
    threads: usize,
    idle: usize,
    is_over: bool,
}

/// What a process has asked for.
struct Line {
    process: Process,
    jobs: VecDeque<Job>,
    is_under_way: bool,
}

impl Workers {
    pub(crate) fn new(own_uid: u32) -> Self {
        let pool =
            Pool { own_uid, state: Mutex::default(), more: Condvar::new(), turns: FairLock::default() };
        Workers(Arc::new(pool))
    }

    /// Another handle for whoever starts the first thread.
    pub(crate) fn starter(&self) -> Starter {
        Starter(Arc::clone(&self.0))
    }

    /// Has `job` done, after the earlier ones of this process.
    pub(crate) fn submit(&self, process: Process, job: Job) {
        let mut state = self.0.lock();
        match state.lines.iter_mut().find(|line| line.process == process) {
            Some(line) => line.jobs.push_back(job),
            None => {
                let jobs = VecDeque::from([job]);
                state.lines.push_back(Line { process, jobs, is_under_way: false });
            }
        }
        drop(state);
        self.0.more.notify_one();
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let lines = {
            let mut state = self.0.lock();
            state.is_over = true;
            std::mem::take(&mut state.lines)
        };
        self.0.more.notify_all();
        drop(lines);
    }
}

/// Starts the first thread of the workers, on whatever thread it is called.
pub(crate) struct Starter(Arc<Pool>);

impl Starter {
    /// Makes sure that there is a thread; workers start more as they are needed.
    ///
    /// # Errors
    /// The process is out of threads.
    pub(crate) fn start(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        if state.threads == 0 {
            spawn(&self.0)?;
            state.threads = 1;
        }
        Ok(())
    }
}

fn spawn(pool: &Arc<Pool>) -> io::Result<()> {
    let pool = Arc::clone(pool);
    thread::start("beeline-worker", move || pool.run()).map(|_detached| ())
}

impl State {
    /// The next work that may begin.
    fn take(&mut self, own_uid: u32) -> Option<(Process, Job)> {
        let is_foreign = |line: &Line| line.process.uid != own_uid;
        let foreign = self.lines.iter().filter(|line| line.is_under_way && is_foreign(line)).count();
        let may_begin = |line: &Line| {
            !line.is_under_way && !line.jobs.is_empty() && (foreign < MOST_FOREIGN || !is_foreign(line))
        };
        let place = self.lines.iter().position(may_begin)?;
        let line = &mut self.lines[place];
        line.is_under_way = true;
        Some((line.process, line.jobs.pop_front()?))
    }

    fn finish(&mut self, process: Process) {
        let place = self.lines.iter().position(|line| line.process == process);
        if let Some(mut line) = place.and_then(|place| self.lines.remove(place))
            && !line.jobs.is_empty()
        {
            line.is_under_way = false;
            // At the end: the others come first now.
            self.lines.push_back(line);
        }
    }

    /// Whether no work waits that a thread which is about to end could have been woken for.
    fn has_nothing(&self) -> bool {
        self.lines.iter().all(|line| line.is_under_way || line.jobs.is_empty())
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Whatever a job does, it does without the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(self: Arc<Self>) {
        while let Some((process, job, needs_spare)) = self.next() {
            // Before the job, which may wait: the next one finds a thread.
            if needs_spare && let Err(error) = spawn(&self) {
                tracing::warn!(%error, "no thread for more work at a time");
                self.lock().threads -= 1;
            }
            job(&self.turns);
            if self.finish(process) {
                self.more.notify_one();
            }
        }
    }

    /// A work of this process is done; whether there are others, which may begin now.
    fn finish(&self, process: Process) -> bool {
        let mut state = self.lock();
        state.finish(process);
        !state.has_nothing()
    }

    /// Waits for a work; `None` when this thread is to end. A spare thread is counted before it is started.
    fn next(&self) -> Option<(Process, Job, bool)> {
        let mut state = self.lock();
        loop {
            if state.is_over {
                state.threads -= 1;
                return None;
            }
            if let Some((process, job)) = state.take(self.own_uid) {
                let needs_spare = state.idle == 0 && state.threads < MOST_THREADS;
                state.threads += usize::from(needs_spare);
                return Some((process, job, needs_spare));
            }
            let is_spare = state.threads > 1;
            state.idle += 1;
            let mut timed_out = false;
            if is_spare {
                let waited = self.more.wait_timeout(state, IDLE_LIMIT);
                let (after, how) = waited.unwrap_or_else(PoisonError::into_inner);
                (state, timed_out) = (after, how.timed_out());
            } else {
                state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.idle -= 1;
            if timed_out && state.idle > 0 && state.has_nothing() {
                state.threads -= 1;
                return None;
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const OWN: u32 = 1000;

    fn workers() -> Workers {
        let workers = Workers::new(OWN);
        workers.starter().start().unwrap();
        workers
    }

    fn process(pid: u32, uid: u32) -> Process {
        Process { pid, uid }
    }

    /// Submits a work that says when it begins and goes on when it is told to.
    fn slow(workers: &Workers, process: Process, begun: &Sender<u32>) -> Sender<()> {
        let (go, may) = channel();
        let begun = begun.clone();
        let job = move |_: &dyn Pace| {
            begun.send(process.pid).unwrap();
            // The test may have ended.
            let _: Result<(), _> = may.recv();
        };
        workers.submit(process, Box::new(job));
        go
    }

    fn nothing_begins(begun: &Receiver<u32>) {
        // A work that may begin does so in microseconds; one that may not never does, however long we look.
        assert!(begun.recv_timeout(Duration::from_millis(50)).is_err());
    }

    #[test]
    fn works_of_one_process_follow_each_other_and_those_of_others_do_not_wait() {
        let workers = workers();
        let (begun, heard) = channel();
        let first = slow(&workers, process(1, OWN), &begun);
        let _second = slow(&workers, process(1, OWN), &begun);
        assert_eq!(heard.recv().unwrap(), 1);
        nothing_begins(&heard);
        let others: Vec<_> = (2..6)
            .map(|pid| {
                let go = slow(&workers, process(pid, OWN), &begun);
                assert_eq!(heard.recv().unwrap(), pid, "although those before it are under way");
                go
            })
            .collect();
        drop(others);
        first.send(()).unwrap();
        assert_eq!(heard.recv().unwrap(), 1, "the second of the first process");
    }

    #[test]
    fn processes_of_other_users_leave_threads_to_the_owners() {
        let workers = workers();
        let (begun, heard) = channel();
        let foreign: Vec<_> =
            (0..40).map(|pid| slow(&workers, process(pid, OWN + 1 + pid % 3), &begun)).collect();
        for _ in 0..MOST_FOREIGN {
            heard.recv().unwrap();
        }
        nothing_begins(&heard);
        let _own = slow(&workers, process(77, OWN), &begun);
        assert_eq!(heard.recv().unwrap(), 77);
        foreign[0].send(()).unwrap();
        heard.recv().unwrap();
        nothing_begins(&heard);
    }

    #[test]
    fn a_process_with_many_works_lets_another_in_between() {
        let workers = workers();
        let (begun, heard) = channel();
        // Every thread is taken by a process that has one more work waiting.
        let pairs = MOST_THREADS as u32;
        let mut all: Vec<_> = (0..pairs).map(|pid| slow(&workers, process(pid, OWN), &begun)).collect();
        all.extend((0..pairs).map(|pid| slow(&workers, process(pid, OWN), &begun)));
        for _ in 0..pairs {
            heard.recv().unwrap();
        }
        let _honest = slow(&workers, process(999, OWN), &begun);
        nothing_begins(&heard);
        all[0].send(()).unwrap();
        assert_eq!(heard.recv().unwrap(), 999, "before the second works of those that had their turn");
    }

    #[test]
    fn works_that_wait_are_dropped_with_the_workers() {
        let workers = workers();
        let (begun, heard) = channel();
        let go = slow(&workers, process(1, OWN), &begun);
        heard.recv().unwrap();
        let waits = slow(&workers, process(1, OWN), &begun);
        drop(workers);
        assert!(waits.send(()).is_err(), "nobody will ever listen");
        drop(go);
        drop(begun);
        assert!(heard.recv().is_err());
    }
}
