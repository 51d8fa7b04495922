//! How long a wait may take, and who looks, in a loop whose time is measured.

use crate::idle_watch::IdleWatch;
use crate::session::still_makes_sense;
use crate::{NicError, Session};

/// Counts polls that found nothing, and now and then looks whether the NIC is still there: cheap enough for a loop whose
/// time is measured.
#[derive(Debug, Default)]
pub struct Watchdog(IdleWatch);

impl Watchdog {
    /// Starts without an event.
    pub const fn new() -> Self {
        Watchdog(IdleWatch::new())
    }

    /// Something happened.
    #[inline]
    pub fn pat(&mut self) {
        self.0.pat();
    }

    /// Counts a poll that found nothing.
    ///
    /// # Errors
    /// For longer than [`crate::TIMEOUT`], or the NIC is gone.
    #[inline]
    pub fn idle(&mut self, session: &mut Session, what: &str) -> Result<(), NicError> {
        self.0.idle(|waited| still_makes_sense(session, waited, what))
    }
}
