//! Jobs that use one core each, as many at a time as there are cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::cores::{self, Core};

/// What `job` makes of each of `items`, in their order.
pub fn each<T: Sync, R: Send>(items: &[T], job: impl Fn(&T) -> R + Sync) -> Vec<R> {
    // Relaxed: only the number counts; the results are handed over by join.
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let core = Core::take();
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return done };
            done.push((at, job(item)));
            drop(core);
        }
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores::COUNT).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a job does not panic")).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::each;

    #[test]
    fn every_item_is_done_once_and_in_order() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(each(&items, |item| item * 2), (0..100).map(|item| item * 2).collect::<Vec<_>>());
        assert_eq!(each(&[], |item: &u32| *item), Vec::<u32>::new());
    }
}
