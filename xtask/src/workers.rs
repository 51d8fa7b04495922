//! Jobs two at a time: CI has two cores, and the tools use one each.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const WORKERS: usize = 2;

/// What `job` makes of each of `items`, in their order.
pub fn each<T: Sync, R: Send>(items: &[T], job: impl Fn(&T) -> R + Sync) -> Vec<R> {
    // Relaxed: only the number counts; the results are handed over by join.
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((at, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
        {
            done.push((at, job(item)));
        }
        done
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
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
