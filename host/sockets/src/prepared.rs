//! What the kernel does at once for a process with one thread, and for one with several only when none of their cores can be in the middle of
//! something (`synchronize_rcu`): 10 ms and more, for which its first connection would stay with the kernel.

use std::os::fd::AsFd;
use std::sync::OnceLock;

use beeline_domain::{HighCopy, place_descriptors_above};
use beeline_mmio::membarrier;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::stat;
use rustix::process::{Resource, getrlimit};

/// A number makes the kernel's table of the process as long as it is.
const HIGHEST: u64 = 8192;

/// Has descriptors of ours take high numbers: a program that closes or writes to a number that is none, or counts on the lowest
/// one, does not meet them.
pub(crate) fn place_descriptors_high() {
    static LOWEST: OnceLock<u64> = OnceLock::new();
    let limit = || getrlimit(Resource::Nofile).current.unwrap_or(HIGHEST);
    // As it was when the table was lengthened, whatever the program's limit has become.
    let lowest = *LOWEST.get_or_init(|| (limit() / 4 * 3).min(HIGHEST));
    if let Err(error) = place_descriptors_above(lowest as i32) {
        tracing::debug!(%error, "descriptors of the library have the lowest numbers");
    }
}

/// Has the kernel lengthen the table of descriptors for such numbers, and register the process for barriers, if it has one thread. What is not done
/// here the thread in the background waits for, and no thread of the program's. A child of fork has a table as long as the numbers in use.
pub(crate) fn prepare() {
    // A folder has two links, and each thread is a folder in it.
    let is_alone = stat("/proc/self/task").is_ok_and(|folder| folder.st_nlink == 2 + 1);
    if !is_alone {
        return;
    }
    place_descriptors_high();
    // Both are closed at once; the table stays as long as it is.
    if let Ok(any) = eventfd(0, EventfdFlags::CLOEXEC) {
        let _ = HighCopy::of(any.as_fd());
    }
    if !membarrier::is_registered() {
        // Where the kernel has none, the domain says so.
        let _ = membarrier::register();
    }
}
