//! What happens to segments and connections that have a callback, and waiting for any of it.

use std::time::{Duration, Instant};

use beeline_contract_memory::WaitPolicy;
use beeline_fabric::{LocalEvent, LocalSegment, Refusal, RemoteEvent, RemoteSegment, Told};

use crate::member::BarMember;
use crate::waiting::wait_with;

impl BarMember {
    /// Waits until `look` finds something. It looks over and over, some 200 µs apart after a while, so whatever happens is found.
    ///
    /// # Errors
    /// [`Refusal::Timeout`]: it has found nothing in the time.
    pub fn wait_until<T>(
        &self,
        timeout: Option<Duration>,
        mut look: impl FnMut() -> Option<T>,
    ) -> Result<T, Refusal> {
        self.shared.check_process()?;
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let policy = self.shared.policy(WaitPolicy::new().spins(100));
        let found = wait_with(policy, until, |_| {
            self.shared.tend();
            Ok::<_, Refusal>(look())
        })?;
        found.ok_or(Refusal::Timeout)
    }

    /// Gives a segment a callback after it was made: its events are told, and not waited for by calls.
    pub fn tell_segment(&self, local: LocalSegment) {
        if self.shared.check_process().is_ok() {
            self.shared.enter(|state, _| state.member.tell_segment(local));
        }
    }

    /// Gives a connection a callback, as [`BarMember::tell_segment`] does.
    pub fn tell_connection(&self, remote: RemoteSegment) {
        if self.shared.check_process().is_ok() {
            self.shared.enter(|state, _| state.member.tell_connection(remote));
        }
    }

    /// The next event of any segment or connection that has a callback.
    pub fn next_event(&self) -> Option<Told> {
        self.shared.check_process().ok()?;
        self.shared.tend();
        self.shared.enter(|state, _| state.member.next_callback())
    }

    /// The next event of a segment that has a callback, if something has happened to it.
    pub fn next_event_of_segment(&self, local: LocalSegment) -> Option<LocalEvent> {
        self.shared.check_process().ok()?;
        self.shared.lock().member.next_of_local(local)
    }

    /// The next event of a connection that has a callback, if something has happened to it.
    pub fn next_event_of_connection(&self, remote: RemoteSegment) -> Option<RemoteEvent> {
        self.shared.check_process().ok()?;
        self.shared.lock().member.next_of_remote(remote)
    }

    /// Ends the calls of other threads that wait until they are connected to a segment or an interrupt: they are refused with
    /// [`Refusal::Cancelled`]. Calls that begin later wait as before.
    pub fn cancel_attempts(&self) {
        if self.shared.check_process().is_ok() {
            self.shared.enter(|state, _| state.member.cancel_attempts());
        }
    }
}
