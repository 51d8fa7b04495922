//! Points on all cores of this machine.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use beeline_mmio::thread::spawn_in;

use super::plan::Plan;
use super::row::Row;
use crate::failure::Failure;
use crate::progress;

/// Runs the points with these places, so many at a time, and shows how far it is. `finished` is told of each as it comes.
///
/// # Errors
/// That of `finished`; then no further point is begun.
pub fn run(
    plan: &Plan,
    points: &[u64],
    jobs: Option<NonZeroUsize>,
    quiet: bool,
    mut finished: impl FnMut(&Row) -> Result<(), Failure>,
) -> Result<Vec<Row>, Failure> {
    let jobs = jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let bar = progress::bar(points.len() as u64, "points", quiet);
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let mut rows = Vec::new();
    let outcome = thread::scope(|scope| {
        for _ in 0..jobs.min(points.len()) {
            let (sender, next, is_over) = (sender.clone(), &next, &is_over);
            let run = move || {
                // Relaxed: each only hands out numbers; rows are handed over by the channel.
                while let Some(index) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if is_over.load(Ordering::Relaxed) || sender.send(plan.run(*index)).is_err() {
                        return;
                    }
                }
            };
            spawn_in(scope, "beeline-sim", run).map_err(|error| {
                is_over.store(true, Ordering::Relaxed);
                Failure::new("cannot start a thread for the points").because(error)
            })?;
        }
        drop(sender);
        for row in receiver {
            bar.set_message(plan.label(row.index));
            bar.inc(1);
            if let Err(failure) = finished(&row) {
                is_over.store(true, Ordering::Relaxed);
                return Err(failure);
            }
            rows.push(row);
        }
        Ok(())
    });
    bar.finish_and_clear();
    outcome.map(|()| rows)
}
