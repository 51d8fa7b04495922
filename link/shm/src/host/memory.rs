//! Host memory that the device may read and write.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beeline_contract_link::DmaMemory;
use beeline_mmio::{DmaRegion, ThisProcess};

use super::window::NicWaker;

/// Regions whose owner is gone, to be taken from the device at the next opportunity. A forked child has none and notes none: they
/// are its parent's, and a thread of the parent may have had the lock.
#[derive(Debug)]
pub(crate) struct Dropped {
    made_by: ThisProcess,
    numbers: Mutex<Vec<u32>>,
}

impl Dropped {
    pub(crate) fn new() -> Self {
        Dropped { made_by: ThisProcess::get(), numbers: Mutex::default() }
    }

    pub(crate) fn push(&self, number: u32) {
        if let Some(mut numbers) = self.lock() {
            numbers.push(number);
        }
    }

    pub(crate) fn pop(&self) -> Option<u32> {
        self.lock()?.pop()
    }

    fn lock(&self) -> Option<MutexGuard<'_, Vec<u32>>> {
        self.made_by.is_this().then(|| self.numbers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A region of memory that the host made and the NIC process mapped.
///
/// Dropping it makes it invisible to the device when the link next registers memory: a device that still uses it
/// then gets a bad address, as behind an IOMMU.
#[derive(Debug)]
pub struct ShmMemory {
    pub(crate) region: DmaRegion,
    pub(crate) number: u32,
    pub(crate) dropped: Arc<Dropped>,
    pub(crate) waker: NicWaker,
}

impl Drop for ShmMemory {
    fn drop(&mut self) {
        self.dropped.push(self.number);
    }
}

impl DmaMemory for ShmMemory {
    #[inline]
    fn address(&self) -> u64 {
        self.region.address()
    }

    #[inline]
    fn bytes(&self) -> usize {
        self.region.bytes()
    }

    #[inline]
    fn load(&mut self, offset_bytes: usize) -> u64 {
        self.region.load(offset_bytes)
    }

    #[inline]
    fn load_acquire(&mut self, offset_bytes: usize) -> u64 {
        self.region.load_acquire(offset_bytes)
    }

    #[inline]
    fn store(&mut self, offset_bytes: usize, value: u64) {
        self.region.store(offset_bytes, value);
    }

    #[inline]
    fn store_release(&mut self, offset_bytes: usize, value: u64) {
        self.region.store_release(offset_bytes, value);
    }

    /// The NIC's core looks at watched lines as long as it is awake.
    #[inline]
    fn store_watched(&mut self, offset_bytes: usize, value: u64) {
        self.region.store_release(offset_bytes, value);
        self.waker.stored();
    }

    #[inline]
    fn copy_in(&mut self, offset_bytes: usize, bytes: &[u8]) {
        self.region.copy_in(offset_bytes, bytes);
    }

    #[inline]
    fn copy_out(&mut self, offset_bytes: usize, bytes: &mut [u8]) {
        self.region.copy_out(offset_bytes, bytes);
    }

    #[inline]
    fn prefetch(&mut self, offset_bytes: usize) {
        self.region.prefetch(offset_bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

    use super::*;

    #[test]
    fn forked_child_waits_for_no_thread_of_its_parent_that_drops_memory() {
        let dropped = Dropped::new();
        dropped.push(1);
        let held = dropped.lock().expect("of this process");
        let child = match fork::fork().unwrap() {
            fork::Fork::Child => {
                dropped.push(2);
                std::process::exit(if dropped.pop().is_none() { 0 } else { 1 });
            }
            fork::Fork::Parent(pid) => Pid::from_raw(pid).expect("a process id"),
        };
        let begun = Instant::now();
        let status = loop {
            match waitpid(Some(child), WaitOptions::NOHANG).unwrap() {
                Some((_, status)) => break status,
                None if begun.elapsed() > Duration::from_secs(60) => {
                    kill_process(child, Signal::KILL).unwrap()
                }
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(status.exit_status(), Some(0));
        drop(held);
        assert_eq!((dropped.pop(), dropped.pop()), (Some(1), None));
    }
}
