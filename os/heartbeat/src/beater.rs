//! The thread that beats for all links of this process, and looks at all of their peers.
//!
//! It wakes at the multiples of each link's half period, so that links of one kind cost one wake-up together, and sleeps
//! until the earliest of them. It starts with the first link and ends with the last. A forked child has none of its own until it
//! opens a link: what its parent opened does not beat there.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use beeline_mmio::{PerProcess, thread};

/// A link, as the thread sees it.
pub(crate) trait Beats: Send + Sync {
    /// Looks and pushes; `false` once that is over.
    fn beat(&self) -> bool;
}

#[derive(Default)]
struct Beater {
    links: Mutex<Links>,
    changed: Condvar,
}

#[derive(Default)]
struct Links {
    links: Vec<Entry>,
    is_running: bool,
}

struct Entry {
    link: Arc<dyn Beats>,
    every: Duration,
    due_at: Instant,
}

static BEATER: PerProcess<Arc<Beater>> = PerProcess::new();

/// Has a link beat in each `every` from now on. The first beat is the caller's.
///
/// # Errors
/// The process is out of threads.
pub(crate) fn add(link: Arc<dyn Beats>, every: Duration) -> io::Result<()> {
    let beater = BEATER.get_or_init(Arc::default);
    let mut links = beater.lock();
    if !links.is_running {
        let beater = Arc::clone(beater);
        drop(thread::start("beeline-beat", move || beater.run())?);
        links.is_running = true;
    }
    links.links.push(Entry { link, every, due_at: Instant::now() });
    drop(links);
    beater.changed.notify_one();
    Ok(())
}

impl Beater {
    fn lock(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let begun = Instant::now();
        let mut links = self.lock();
        loop {
            let now = Instant::now();
            links.links.retain_mut(|entry| {
                if entry.due_at > now {
                    return true;
                }
                entry.due_at = next_multiple(begun, now, entry.every);
                entry.link.beat()
            });
            let Some(due_at) = links.links.iter().map(|entry| entry.due_at).min() else {
                links.is_running = false;
                return;
            };
            let left = due_at.saturating_duration_since(Instant::now());
            let waited = self.changed.wait_timeout(links, left);
            links = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The first multiple of `every` since `begun` that is later than `now`. A thread that was late does not catch up.
fn next_multiple(begun: Instant, now: Instant, every: Duration) -> Instant {
    let every_ns = every.as_nanos().max(1);
    let multiples = now.saturating_duration_since(begun).as_nanos() / every_ns + 1;
    begun + Duration::from_nanos(u64::try_from(multiples * every_ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn beats_are_due_at_multiples_and_late_ones_are_not_made_up_for() {
        let begun = Instant::now();
        let every = Duration::from_millis(10);
        for (now_ms, due_ms) in [(0, 10), (9, 10), (10, 20), (10_005, 10_010)] {
            let now = begun + Duration::from_millis(now_ms);
            assert_eq!(next_multiple(begun, now, every), begun + Duration::from_millis(due_ms));
        }
    }

    /// Beats so often.
    struct Counted(AtomicU32);

    impl Beats for Counted {
        fn beat(&self) -> bool {
            self.0.fetch_sub(1, Ordering::Relaxed) > 1
        }
    }

    #[test]
    fn thread_beats_for_each_until_all_are_over_and_starts_again() {
        for _ in 0..3 {
            let links = [3, 1, 40].map(|beats| Arc::new(Counted(AtomicU32::new(beats))));
            for link in &links {
                add(Arc::clone(link) as Arc<dyn Beats>, Duration::from_millis(1)).unwrap();
            }
            let begun = Instant::now();
            while links.iter().any(|link| Arc::strong_count(link) > 1) {
                assert!(begun.elapsed() < Duration::from_secs(60), "a link that is over is kept");
                std::thread::yield_now();
            }
            assert!(links.iter().all(|link| link.0.load(Ordering::Relaxed) == 0));
        }
    }
}
