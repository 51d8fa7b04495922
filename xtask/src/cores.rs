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
}
