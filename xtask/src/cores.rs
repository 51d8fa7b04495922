//! Cores as tokens. `ci` runs lanes side by side in processes of their own, and each of their jobs holds a core while it
//! runs. A core is a file with a lock on it: a process that dies gives its cores back.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::failure::{Context, Outcome};

/// Names the folder of the tokens. Without it, in a lane that runs alone, there is always a core.
pub const FOLDER: &str = "BEELINE_XTASK_CORES";

/// How many jobs run at a time: CI has two cores, and most tools use one.
pub const COUNT: usize = 2;

const POLL: Duration = Duration::from_millis(50);

/// A core, until it is dropped.
#[derive(Debug)]
pub struct Core {
    _lock: Option<File>,
}

impl Core {
    /// Waits for a core.
    pub fn take() -> Self {
        loop {
            if let Some(core) = Self::take_idle() {
                return core;
            }
            thread::sleep(POLL);
        }
    }

    /// Returns a core if one is idle.
    pub fn take_idle() -> Option<Self> {
        match std::env::var_os(FOLDER) {
            Some(folder) => take_idle_in(Path::new(&folder)),
            None => Some(Core { _lock: None }),
        }
    }
}

/// A token that cannot be opened is no reason to stop: its core counts as idle.
fn take_idle_in(folder: &Path) -> Option<Core> {
    for at in 0..COUNT {
        let Ok(token) = File::open(token(folder, at)) else { return Some(Core { _lock: None }) };
        if token.try_lock().is_ok() {
            return Some(Core { _lock: Some(token) });
        }
    }
    None
}

/// Makes the tokens in `folder`.
pub fn prepare(folder: &Path) -> Outcome {
    fs::create_dir_all(folder).while_doing(format!("make {}", folder.display()))?;
    for at in 0..COUNT {
        let token = token(folder, at);
        File::create(&token).while_doing(format!("make {}", token.display()))?;
    }
    Ok(())
}

fn token(folder: &Path, at: usize) -> PathBuf {
    folder.join(format!("core{at}"))
}

/// The kernel counts in hundredths of a second, whatever its own clock is.
const TICK: Duration = Duration::from_millis(10);

/// CPU time of this process and of every process that was waited for, theirs included. Zero where `/proc` does not tell.
pub fn used() -> Duration {
    fs::read_to_string("/proc/self/stat").ok().and_then(|stat| used_of(&stat)).unwrap_or_default()
}

/// Fields 14 to 17 of proc_pid_stat(5); the second may hold spaces, and ends with the last bracket.
fn used_of(stat: &str) -> Option<Duration> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: Option<u32> = fields.get(11..15)?.iter().map(|field| field.parse::<u32>().ok()).sum();
    Some(TICK * ticks?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn third_job_waits_until_one_of_two_ends() {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path()).unwrap();
        let take = || take_idle_in(folder.path());
        let (first, second) = (take(), take());
        assert!(first.is_some() && second.is_some() && take().is_none());
        drop(first);
        assert!(take().is_some());
    }

    #[test]
    fn cpu_time_is_that_of_the_process_and_of_its_children() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 1 2 3 4 10 20 300 400 20 0 1 0 5";
        assert_eq!(used_of(stat), Some(Duration::from_millis(7300)));
        assert_eq!(used_of("7 (a"), None);
        assert!(fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(used_of).is_some());
    }
}
