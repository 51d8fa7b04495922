//! Cores, and threads that are pinned to them.

use beeline_mmio::{cpu, thread};

use crate::FloorError;

/// Two cores: one for each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// Sender, or the side that holds the clock.
    pub first: usize,
    /// Receiver, or the side that answers.
    pub second: usize,
}

impl Cores {
    /// The first two cores that this process may run on.
    ///
    /// # Errors
    /// [`FloorError::Cores`] when there is one only: two spinning sides on it would measure the scheduler.
    pub fn pair() -> Result<Self, FloorError> {
        match *cpu::allowed_cores() {
            [first, second, ..] => Ok(Cores { first, second }),
            ref cores => Err(FloorError::Cores { allowed: cores.len() }),
        }
    }
}

/// Pins the calling thread.
///
/// # Errors
/// [`FloorError::Pin`].
pub fn pin(core: usize) -> Result<(), FloorError> {
    cpu::pin_current_thread(core).map_err(|error| FloorError::Pin { core, reason: error.to_string() })
}

/// Runs something on a thread of its own that is pinned to `core`, so that what this thread starts later is not.
///
/// # Errors
/// [`FloorError::Pin`]; what the work gives as an error; [`FloorError::Panicked`].
pub fn on_core<T: Send, E: From<FloorError> + Send>(
    core: usize,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    std::thread::scope(|scope| {
        let measure = move || {
            pin(core)?;
            work()
        };
        let thread = thread::spawn_in(scope, "beeline-floor", measure).map_err(FloorError::Thread)?;
        thread.join().map_err(|_| FloorError::Panicked("measuring"))?
    })
}
