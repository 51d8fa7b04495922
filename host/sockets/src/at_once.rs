//! Calls that find all as it was: bytes go into the window, or come out of it, and nothing else is to be done.
//!
//! A call of a program can wait, fail, be interrupted, meet a fork, an order, a return of bytes or a lost window, and looks for each of them. Most calls
//! meet none, and a message of 64 bytes costs less than those looks. So a call looks here first whether all is plain, by a few loads, and makes the long way
//! else, with nothing done.

use std::sync::atomic::Ordering;

use beeline_ledger::Path;
use beeline_socket_rules::Carrier;

use crate::counts::Count;
use crate::endpoint::{Endpoint, Reader, Stage, Writer};
use crate::numbers::Claim;

impl Writer {
    /// Whether nothing is to be said or done before bytes are put into the window.
    #[inline]
    fn is_plain(&self) -> bool {
        self.failed.is_none() && self.debt.is_none() && !self.is_down_for_ever
    }
}

impl Reader {
    /// Whether nothing is to be said or done before bytes are taken out of the window.
    #[inline]
    fn is_plain(&self) -> bool {
        self.failed.is_none() && !self.is_stopping
    }
}

impl Endpoint {
    /// Puts bytes into the window, and rings who sleeps at the other end. How many; 0 where the long way is to be made for all of them.
    #[inline]
    pub(crate) fn put_at_once(&self, claim: Claim, bytes: &[u8]) -> usize {
        // A handler that has interrupted a send of its own thread does not get the lock.
        let Some(mut writer) = self.try_lock_writer() else { return 0 };
        let writer = &mut *writer;
        if !writer.is_plain() || self.stage() != Stage::Agreed || !claim.holds() {
            return 0;
        }
        if self.owes_acknowledgement.load(Ordering::Relaxed) {
            return 0;
        }
        let (Some(stream), Some(agreed)) = (&mut writer.stream, &writer.slot) else { return 0 };
        // Of copies more is to be done, and of a process that has gone the kernel says how it ended.
        if agreed.is_kept || agreed.has_gone() {
            return 0;
        }
        let sent = stream.send_by_window(bytes);
        if sent > 0 {
            self.counts.add(Count::SentBytes, sent as u64);
            self.counts.add(Count::SentByWindowBytes, sent as u64);
            writer.row.iter().for_each(|row| row.sent(Carrier::Window, sent));
            self.wake(writer);
        }
        sent
    }

    /// Takes bytes out of the window. How many; 0 where the long way is to be made.
    #[inline]
    pub(crate) fn take_at_once(&self, claim: Claim, out: &mut [u8]) -> usize {
        let Some(mut reader) = self.try_lock_reader() else { return 0 };
        let reader = &mut *reader;
        if !reader.is_plain() || self.stage() != Stage::Agreed || !claim.holds() {
            return 0;
        }
        let Some(stream) = &mut reader.stream else { return 0 };
        if stream.path() != Path::Window {
            return 0;
        }
        let mut taken = 0;
        while taken < out.len()
            && let Some(bytes) = stream.read_window(&mut out[taken..])
        {
            taken += bytes;
        }
        if taken > 0 {
            self.counts.add(Count::ReceivedBytes, taken as u64);
            self.counts.add(Count::ReceivedByWindowBytes, taken as u64);
            if let Some(row) = &reader.row {
                row.receives_by(Carrier::Window);
                row.received(Carrier::Window, taken);
            }
        }
        taken
    }
}
