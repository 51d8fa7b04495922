//! Waiting for a device: look, then offer the core to others, then sleep; as windows wait for a peer.

use std::time::Instant;

use beeline_domain::MemorySleeper;
use beeline_wait::{Awake, Wait, WaitPolicy, Waiter};

use crate::error::NicGone;

/// How a port waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub policy: WaitPolicy,
    /// `None` where the device cannot wake: then it yields where it would sleep.
    pub sleeper: Option<MemorySleeper>,
}

impl Waiting {
    /// Calls `look` until it finds what is waited for, or the deadline is past: `false`. `is_gone` ends the wait with
    /// [`NicGone`].
    pub(crate) fn wait<S, E: From<NicGone>>(
        &mut self,
        state: &mut S,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut S) -> Result<bool, E>,
        is_gone: impl Fn(&mut S) -> bool,
    ) -> Result<bool, E> {
        let look = |_: bool| -> Result<Option<()>, E> {
            if look(state)? {
                return Ok(Some(()));
            }
            if is_gone(state) { Err(NicGone.into()) } else { Ok(None) }
        };
        let found = match &mut self.sleeper {
            Some(sleeper) => Waiter::new(&self.policy, sleeper, deadline).wait(look)?,
            None => {
                let policy = self.policy.sleep(None);
                Waiter::new(&policy, &mut Awake, deadline).wait(look)?
            }
        };
        Ok(found.is_some())
    }
}
