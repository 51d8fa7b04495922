//! Waiting in a loop whose time is measured, without waiting for ever.

use std::time::{Duration, Instant};

/// Polls that find nothing between two looks at the clock.
const POLLS_PER_LOOK: u32 = 1 << 16;

/// Counts polls that found nothing, and now and then lets its owner look whether waiting still makes sense: cheap enough
/// for a loop whose time is measured.
#[derive(Debug, Default)]
pub struct IdleWatch {
    idle_polls: u32,
    since: Option<Instant>,
}

impl IdleWatch {
    /// Starts without an event.
    pub const fn new() -> Self {
        IdleWatch { idle_polls: 0, since: None }
    }

    /// Something happened.
    #[inline]
    pub fn pat(&mut self) {
        self.idle_polls = 0;
        self.since = None;
    }

    /// Nothing happened. Every `POLLS_PER_LOOK` times `look` is asked, and told how long nothing has: since its first
    /// look.
    ///
    /// # Errors
    /// Those of `look`.
    #[inline]
    pub fn idle<E>(&mut self, look: impl FnOnce(Duration) -> Result<(), E>) -> Result<(), E> {
        self.idle_polls += 1;
        if self.idle_polls < POLLS_PER_LOOK {
            return Ok(());
        }
        self.look(look)
    }

    #[cold]
    fn look<E>(&mut self, look: impl FnOnce(Duration) -> Result<(), E>) -> Result<(), E> {
        self.idle_polls = 0;
        look(self.since.get_or_insert_with(Instant::now).elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls until `look` was asked `looks` times; how many that were.
    fn polls_until(idle: &mut IdleWatch, looks: u32) -> u32 {
        let (mut seen, mut polls) = (0, 0);
        while seen < looks {
            polls += 1;
            let _ = idle.idle(|_| {
                seen += 1;
                Ok::<(), ()>(())
            });
        }
        polls
    }

    #[test]
    fn idle_polls_read_the_clock_once_an_interval_and_events_restart_it() {
        let mut idle = IdleWatch::new();
        assert_eq!(polls_until(&mut idle, 2), 2 * POLLS_PER_LOOK);
        let _ = idle.idle(|_| Ok::<(), ()>(()));
        idle.pat();
        assert_eq!(polls_until(&mut idle, 1), POLLS_PER_LOOK);
    }

    #[test]
    fn look_is_told_the_time_since_the_last_event_and_its_error_is_returned() {
        let mut idle = IdleWatch::new();
        let waited = loop {
            // Each look sleeps, so the second one is told of the first one's sleep.
            let end = idle.idle(|waited| {
                std::thread::sleep(Duration::from_millis(2));
                if waited.is_zero() || waited < Duration::from_millis(2) { Ok(()) } else { Err(waited) }
            });
            if let Err(waited) = end {
                break waited;
            }
        };
        assert!(waited >= Duration::from_millis(2));
        idle.pat();
        let mut first = None;
        while first.is_none() {
            let _ = idle.idle(|waited| {
                first = Some(waited);
                Ok::<(), ()>(())
            });
        }
        assert!(first < Some(waited), "what happened before is forgotten");
    }
}
