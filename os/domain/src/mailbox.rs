//! Where the domain's thread leaves what a peer answered, for the thread that waits for it.

use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Instant;

use crate::notices::Notices;
use crate::protocol::Departure;
use crate::wire::WireError;
use crate::{Peer, Reply};

/// Where the domain's thread leaves the answer for the thread that waits.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    state: Mutex<MailState>,
    arrived: Condvar,
    /// What the owner says unasked.
    pub(crate) notices: Notices,
    /// Takes that on the domain's thread, if somebody of this crate does.
    taker: Mutex<Option<Weak<dyn TakesNotices>>>,
}

/// Takes what an owner says unasked, on the domain's thread: in a bounded time, and without waiting for anybody.
pub(crate) trait TakesNotices: Send + Sync {
    /// There is something to take.
    fn notified(&self);
}

#[derive(Debug, Default)]
struct MailState {
    /// Serial of the request that waits, if one does.
    awaited: Option<u32>,
    mail: Option<Mail>,
    gone: Option<Mail>,
}

/// What the domain's thread has to say.
#[derive(Debug)]
pub(crate) enum Mail {
    /// The answer, and the peer that gave it.
    Answer(Result<Reply, String>, Peer),
    /// The peer went.
    Gone(Departure),
    /// The peer sent something that is not an answer.
    Broken(WireError),
}

impl Mailbox {
    /// Has what comes from now on taken by `taker`. What came before it takes itself.
    pub(crate) fn taken_by(&self, taker: Weak<dyn TakesNotices>) {
        *self.taker.lock().unwrap_or_else(PoisonError::into_inner) = Some(taker);
    }

    /// Who takes what the owner says unasked, if it is not the program.
    pub(crate) fn taker(&self) -> Option<Arc<dyn TakesNotices>> {
        self.taker.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(Weak::upgrade)
    }

    /// Begins to wait for the answer to the request of this serial.
    pub(crate) fn expect(&self, serial: u32) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.awaited = Some(serial);
        state.mail = None;
    }

    /// Leaves an answer. One that came too late, for a request that nobody waits for any more, is given back.
    pub(crate) fn deliver(&self, serial: u32, answer: Result<Reply, String>, peer: Peer) -> Option<Mail> {
        self.notices.count_answer();
        let mail = Mail::Answer(answer, peer);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.awaited != Some(serial) {
            return Some(mail);
        }
        state.awaited = None;
        state.mail = Some(mail);
        self.arrived.notify_all();
        None
    }

    /// Says that no answer will ever come.
    pub(crate) fn close(&self, why: Mail) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.gone.get_or_insert(why);
        self.arrived.notify_all();
    }

    /// Waits for the answer; `None` when the deadline passed.
    pub(crate) fn wait(&self, deadline: Instant) -> Option<Mail> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(mail) = state.mail.take() {
                return Some(mail);
            }
            match &state.gone {
                Some(Mail::Broken(error)) => return Some(Mail::Broken(*error)),
                Some(Mail::Gone(how)) => return Some(Mail::Gone(*how)),
                Some(Mail::Answer(..)) | None => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.awaited = None;
                return None;
            }
            state = self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
