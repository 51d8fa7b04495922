//! What threads of this process do, as the kernel counts it.

use rustix::thread::{Pid, gettid};

/// Processor time of a thread that is taken for one that polls. One that sleeps takes none of it.
const POLLING_TICKS: u64 = 3;

/// A thread of this process.
#[derive(Clone, Copy, Debug)]
pub struct Thread(Pid);

impl Thread {
    pub fn this() -> Self {
        Thread(gettid())
    }

    /// Whether every other thread of this process waits for something, and none is about to run.
    pub fn is_alone() -> bool {
        let own = gettid().to_string();
        let threads = std::fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap());
        threads.filter(|thread| thread.file_name() != *own).all(|thread| {
            // A thread that has ended meanwhile does nothing any more.
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with('S'))
        })
    }

    /// Whether the thread looks over and over for what it waits for: it takes processor time, and sleeps at most twice, for a lock.
    pub fn polls(self) -> bool {
        (0..3).any(|_| {
            let (ticks, sleeps) = (self.ticks(), self.sleeps());
            super::wait_until(|| self.ticks() >= ticks + POLLING_TICKS || self.sleeps() != sleeps);
            self.sleeps() == sleeps
        })
    }

    /// How often it has given its processor away because it had nothing to do. To yield is none.
    fn sleeps(self) -> u64 {
        let status = self.read("status");
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse().unwrap()
    }

    fn ticks(self) -> u64 {
        let stat = self.read("stat");
        let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        // Fields 14 and 15 of proc_pid_stat(5), the first of which here is its third.
        fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum()
    }

    fn read(self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/self/task/{}/{file}", self.0)).unwrap()
    }
}
