//! Which cores threads run on.
//!
//! Timings mean something only when both ends stay where they are; everything else leaves placement to the system.

use rustix::io::Errno;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

/// A thread cannot be pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot pin this thread to core {core}: {errno}; `taskset -cp $$` shows the cores it may use")]
pub struct PinError {
    /// The core asked for.
    pub core: usize,
    pub errno: Errno,
}

/// Pins the calling thread to a core.
pub fn pin_current_thread(core: usize) -> Result<(), PinError> {
    if core >= CpuSet::MAX_CPU {
        return Err(PinError { core, errno: Errno::INVAL });
    }
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|errno| PinError { core, errno })
}

/// The cores the calling thread may run on, ascending.
pub fn allowed_cores() -> Vec<usize> {
    cores_of(None)
}

fn cores_of(thread: Option<Pid>) -> Vec<usize> {
    let Ok(set) = sched_getaffinity(thread) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// A core that this process may use, other than the one this thread is on and, if there is a choice, not a sibling
/// of it in the same physical core. A thread that is pinned has the process's cores to choose from.
pub fn another_core() -> Option<usize> {
    let mut cores = allowed_cores();
    cores.extend(cores_of(Pid::from_raw(i32::try_from(std::process::id()).ok()?)));
    let current = current_core(&cores)?;
    let siblings = siblings(current);
    let others = || cores.iter().copied().filter(|core| *core != current);
    others().find(|core| !siblings.contains(core)).or_else(|| others().next())
}

/// The core that this thread is on and [`another_core`]; `None` where there is no other one.
pub fn two_cores() -> Option<[usize; 2]> {
    Some([current_core(&allowed_cores())?, another_core()?])
}

fn current_core(cores: &[usize]) -> Option<usize> {
    if cfg!(miri) {
        return cores.first().copied();
    }
    Some(rustix::thread::sched_getcpu())
}

/// The hardware threads of a core, as sysfs lists them; empty when it does not.
fn siblings(core: usize) -> Vec<usize> {
    if cfg!(miri) {
        return Vec::new();
    }
    let path = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    cpu_list(std::fs::read_to_string(path).unwrap_or_default().trim())
}

/// A list like `0,4-6`; parts that are no numbers are left out.
fn cpu_list(text: &str) -> Vec<usize> {
    let part = |part: &str| -> Option<std::ops::RangeInclusive<usize>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.split(',').filter_map(part).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_has_one_core() {
        std::thread::spawn(|| {
            let before = allowed_cores();
            let core = *before.last().unwrap();
            pin_current_thread(core).unwrap();
            assert_eq!(allowed_cores(), [core]);
            if let Some(other) = another_core() {
                assert!(other != core && before.contains(&other), "{other} of {before:?}");
            } else {
                assert_eq!(before.len(), 1);
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_core_that_is_not_there_is_refused() {
        let error = pin_current_thread(CpuSet::MAX_CPU).unwrap_err();
        assert!(error.to_string().contains("taskset"), "{error}");
        // Its text has the kernel's reason already: a printer of chains must not print that twice.
        assert!(error.to_string().contains(&error.errno.to_string()), "{error}");
        assert!(std::error::Error::source(&error).is_none(), "{error}");
    }

    #[test]
    fn cpu_lists_are_read() {
        assert_eq!(cpu_list("0,4-6"), [0, 4, 5, 6]);
        assert_eq!(cpu_list("3"), [3]);
        assert_eq!(cpu_list("x,,7-"), [0usize; 0]);
    }
}
