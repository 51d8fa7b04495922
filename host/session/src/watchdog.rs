//! How long a wait may take, and who looks, in a loop whose time is measured.

use std::time::Duration;

use crate::patience::Patience;
use crate::{NicError, Session};

/// How long nothing may happen before a measurement gives up.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Counts polls that found nothing, and now and then looks whether the NIC is still there: cheap enough for a loop whose
/// time is measured.
#[derive(Debug, Default)]
pub struct Watchdog(Patience);

impl Watchdog {
    /// Starts without an event.
    pub const fn new() -> Self {
        Watchdog(Patience::new())
    }

    /// Something happened.
    #[inline]
    pub fn pat(&mut self) {
        self.0.pat();
    }

    /// Counts a poll that found nothing.
    ///
    /// # Errors
    /// For longer than [`PATIENCE`], or the NIC is gone.
    #[inline]
    pub fn idle(&mut self, session: &mut Session, what: &str) -> Result<(), NicError> {
        self.0.idle(|waited| still_makes_sense(session, waited, what))
    }
}

/// Whether what has been waited for so long can still come.
///
/// # Errors
/// [`NicError::Gone`], [`NicError::Patience`].
pub(super) fn still_makes_sense(session: &mut Session, waited: Duration, what: &str) -> Result<(), NicError> {
    if session.is_nic_gone() {
        return Err(NicError::Gone { what: what.to_owned() });
    }
    if waited > PATIENCE {
        return Err(NicError::Patience { seconds: PATIENCE.as_secs(), what: what.to_owned() });
    }
    Ok(())
}
