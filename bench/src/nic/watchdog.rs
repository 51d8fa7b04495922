//! How long a wait may take, and who looks, in a loop whose time is measured.

use std::time::{Duration, Instant};

use super::{NicError, Session};

/// How long nothing may happen before a measurement gives up.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Polls that find nothing between two looks at the clock.
const POLLS_PER_LOOK: u32 = 1 << 16;

/// Counts polls that found nothing, and now and then looks whether waiting still makes sense: cheap enough for a loop
/// whose time is measured.
#[derive(Debug, Default)]
pub struct Watchdog {
    idle_polls: u32,
    since: Option<Instant>,
}

impl Watchdog {
    /// Nothing waited for yet.
    pub const fn new() -> Self {
        Watchdog { idle_polls: 0, since: None }
    }

    /// Something happened.
    #[inline]
    pub fn pat(&mut self) {
        self.idle_polls = 0;
        self.since = None;
    }

    /// Nothing happened.
    ///
    /// # Errors
    /// For longer than [`PATIENCE`], or the NIC is gone.
    #[inline]
    pub fn idle(&mut self, session: &mut Session, what: &str) -> Result<(), NicError> {
        self.idle_polls += 1;
        if self.idle_polls < POLLS_PER_LOOK {
            return Ok(());
        }
        self.look(session, what)
    }

    #[cold]
    fn look(&mut self, session: &mut Session, what: &str) -> Result<(), NicError> {
        self.idle_polls = 0;
        still_makes_sense(session, *self.since.get_or_insert_with(Instant::now), what)
    }
}

/// Whether what has been waited for since then can still come.
///
/// # Errors
/// [`NicError::Gone`], [`NicError::Patience`].
pub(super) fn still_makes_sense(session: &mut Session, since: Instant, what: &str) -> Result<(), NicError> {
    if session.is_nic_gone() {
        return Err(NicError::Gone { what: what.to_owned() });
    }
    if since.elapsed() > PATIENCE {
        return Err(NicError::Patience { seconds: PATIENCE.as_secs(), what: what.to_owned() });
    }
    Ok(())
}
