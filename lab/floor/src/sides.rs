//! Two sides on two pinned cores, started together.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use beeline_mmio::thread;

use crate::{Cores, FloorError, pin};

/// The start, given to both sides.
#[derive(Clone, Copy, Debug)]
pub struct Start<'s> {
    barrier: &'s Barrier,
    failed: &'s AtomicBool,
}

impl Start<'_> {
    /// Waits for the other side and gives the time at which both are ready. Each side must call it once.
    pub fn wait(&self) -> Instant {
        self.barrier.wait();
        Instant::now()
    }

    /// Whether the other side has failed, so that nothing more will come from it. Asked where a side waits.
    #[inline]
    pub fn is_over(&self) -> bool {
        // Relaxed: the flag carries no data; the side that set it is joined before its error is read.
        self.failed.load(Ordering::Relaxed)
    }

    fn run<T, E: From<FloorError>>(
        self,
        core: usize,
        side: impl FnOnce(Start<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let guard = FailGuard(self.failed);
        // A side that cannot be pinned still meets the other one, which would wait for ever otherwise.
        let pinned = pin(core);
        let outcome = side(self);
        if outcome.is_ok() {
            core::mem::forget(guard);
        }
        pinned?;
        outcome
    }
}

/// Says on drop that a side has failed, by error or by panic.
struct FailGuard<'s>(&'s AtomicBool);

impl Drop for FailGuard<'_> {
    fn drop(&mut self) {
        // Relaxed: see `Start::is_over`.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Results of both threads.
#[derive(Clone, Copy, Debug)]
pub struct Sides<A, B> {
    /// The first side, on the first core.
    pub first: A,
    /// The second side, on the second core.
    pub second: B,
}

impl<A: Send, B: Send> Sides<A, B> {
    /// Runs both sides, each on its core, and waits for them.
    ///
    /// # Errors
    /// [`FloorError::Pin`]; what a side gives as an error; [`FloorError::Panicked`].
    pub fn run<E: From<FloorError> + Send>(
        cores: Cores,
        first: impl FnOnce(Start<'_>) -> Result<A, E> + Send,
        second: impl FnOnce(Start<'_>) -> Result<B, E> + Send,
    ) -> Result<Self, E> {
        let (barrier, failed) = (Barrier::new(2), AtomicBool::new(false));
        let start = Start { barrier: &barrier, failed: &failed };
        std::thread::scope(|scope| {
            let side = "beeline-floor";
            let second = thread::spawn_in(scope, side, move || start.run(cores.second, second))
                .map_err(FloorError::Thread)?;
            let first = thread::spawn_in(scope, side, move || start.run(cores.first, first));
            let first = first.map_err(|error| {
                // The other side waits for this one.
                failed.store(true, Ordering::Relaxed);
                barrier.wait();
                FloorError::Thread(error)
            })?;
            let first = first.join().map_err(|_| FloorError::Panicked("first"))?;
            let second = second.join().map_err(|_| FloorError::Panicked("second"))?;
            Ok(Sides { first: first?, second: second? })
        })
    }
}

/// Messages a second.
pub fn rate(messages: u64, took: Duration) -> f64 {
    messages as f64 / took.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_run_and_an_error_ends_the_other_one() -> Result<(), FloorError> {
        let Ok(cores) = Cores::pair() else { return Ok(()) };
        let side = |value: u32| {
            move |start: Start<'_>| {
                start.wait();
                Ok(value)
            }
        };
        let both = Sides::run::<FloorError>(cores, side(1), side(2))?;
        assert_eq!((both.first, both.second), (1, 2));
        let waiting = |start: Start<'_>| {
            start.wait();
            while !start.is_over() {
                std::thread::yield_now();
            }
            Ok(())
        };
        let failing = |start: Start<'_>| {
            start.wait();
            Err::<(), _>(FloorError::Panicked("x"))
        };
        assert!(matches!(Sides::run(cores, waiting, failing), Err(FloorError::Panicked("x"))));
        Ok(())
    }
}
