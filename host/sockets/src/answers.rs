//! The sender's part where bytes go back that nobody has received: it says how many it has sent, and leaves the socket to what comes back (`debts.rs`).

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use beeline_domain::HighCopy;
use rustix::io::Errno;

use crate::debts::{Debt, MOST_BYTES};
use crate::endpoint::{AgreedSlot, Endpoint, Writer};
use crate::forks::{forks, has_just_forked};
use crate::lock::locked;

/// Whether a question waits that is answered a little later.
static POSTPONED: AtomicBool = AtomicBool::new(false);

/// Has endpoints tended a little later.
pub(crate) fn postpone() {
    POSTPONED.store(true, Ordering::Relaxed);
}

/// Whether endpoints are to be tended soon though nobody rings.
pub(crate) fn take_postponed() -> bool {
    POSTPONED.swap(false, Ordering::Relaxed)
}

impl Endpoint {
    /// Answers the other side where it asks to give bytes back: from then on what the program sends waits.
    pub(crate) fn answer_return(&self) {
        // In a child its locks may be locked for ever.
        if self.made_in.load(Ordering::Relaxed) != forks() {
            return;
        }
        let Some((agreed, number)) = self.asked_return() else { return };
        if !self.is_settled() {
            if !self.has_sent_here() {
                return;
            }
            // To claim what the program is about to close would take it from the child.
            if has_just_forked() {
                return postpone();
            }
            // A child that has used it since has sent what is not counted here.
            if !self.claim() {
                return;
            }
        }
        self.answer(&mut self.lock_writer(), agreed, number);
    }

    /// Whether this process has sent by windows, and has its number still. Else it is for a child that nothing is claimed before its first use.
    fn has_sent_here(&self) -> bool {
        self.lock_writer().stream.is_some() && self.duplicate().is_ok()
    }

    /// As [`Endpoint::answer_return`], for who has the reader's lock, and has used the connection since the last fork.
    pub(crate) fn answer_return_meanwhile(&self) {
        if let Some((agreed, number)) = self.asked_return().filter(|_| self.is_settled()) {
            self.answer(&mut self.lock_writer(), agreed, number);
        }
    }

    fn asked_return(&self) -> Option<(AgreedSlot, u64)> {
        let meeting = locked(&self.meeting);
        let agreed = meeting.as_ref()?.agreed.as_ref()?;
        let number = agreed.slot.sent_returns().asked()?;
        Some((agreed.clone(), number))
    }

    fn answer(&self, writer: &mut Writer, agreed: AgreedSlot, number: u64) {
        // It may be another connection's by now.
        let is_it = writer.slot.as_ref().is_none_or(|slot| slot.other_cookie == agreed.other_cookie);
        if !is_it || std::mem::replace(&mut writer.answered, number) == number {
            return;
        }
        let returns = agreed.slot.sent_returns();
        let Ok(socket) = self.duplicate() else { return returns.refuse(number) };
        let Some(stream) = &writer.stream else { return returns.refuse(number) };
        if agreed.is_kept || writer.slot.as_ref().is_some_and(|agreed| agreed.is_kept) {
            // What the other side may not have is in the socket then, or will be, so that nothing has to come back.
            self.send_no_more(writer, Some(socket.as_fd()));
            return returns.refuse(number);
        }
        let (sent, may_come) = (stream.sent_bytes(), stream.untaken_bytes().min(MOST_BYTES));
        // Before the answer: its entry says where the window ends, and it leaves a mark in the place, which is the other side's then.
        self.send_no_more(writer, Some(socket.as_fd()));
        let debt = Debt::new(returns.clone(), number, may_come, socket, agreed.peer);
        returns.say_sent(number, sent);
        writer.debt = Some(debt.begin());
    }

    /// A descriptor of the library's own for its socket, if its number still has that.
    pub(crate) fn duplicate(&self) -> Result<HighCopy, Errno> {
        self.own_socket(self.cookie.load(Ordering::Relaxed)).map(HighCopy::instead_of)
    }

    /// Whether the bytes of its program wait behind some that come back.
    pub(crate) fn owes(writer: &mut Writer) -> bool {
        let Some(debt) = &writer.debt else { return false };
        let mut debt = locked(debt);
        if !debt.tend() {
            return true;
        }
        writer.failed = writer.failed.or(debt.failed());
        drop(debt);
        writer.debt = None;
        false
    }

    /// Has this direction end behind bytes that are owed; `false` where none are.
    pub(crate) fn shuts_behind_owed(writer: &mut Writer) -> bool {
        // In one step: who pays the last byte lets the socket go.
        writer.debt.as_ref().is_some_and(|debt| locked(debt).shut_behind()) || Self::owes(writer)
    }
}

impl Writer {
    /// Whether its program has ended this direction, and the kernel will hear of it behind bytes that are owed.
    pub(crate) fn is_shut(&self) -> bool {
        self.debt.as_ref().is_some_and(|debt| locked(debt).is_shut())
    }

    /// Puts bytes behind those that come back, as many as there is room for.
    pub(crate) fn put_behind(&mut self, bytes: &[u8]) -> usize {
        self.debt.as_ref().map_or(0, |debt| locked(debt).put_behind(bytes))
    }
}
