//! Prefetching, without getting in the sender's way.
//!
//! Two cores that work on neighbouring lines take them from each other: a line that the receiver asks for before the
//! sender has stored it must be fetched back by the sender, and then again by the receiver. So lines are prefetched
//! only as far as the sender is known to be: once in a while the receiver looks at one line far in front; if something
//! of it has arrived, the lines before that one are as good as stored. Traffic of single messages prefetches nothing.

use beeline_contract_memory::{CreditSink, LoadPort};

use crate::Receiver;
use crate::arrival::ArrivalTest;

/// Lines between two looks while the sender is not far in front.
const RETRY_LINES: u64 = 8;

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Receiver<L, S, A> {
    /// The line at `position` has arrived: prefetches the one so far in front of it, if that is known to be stored.
    #[inline(always)]
    pub(crate) fn prefetch(&mut self, position: u64) {
        if position < self.pace.known_until {
            self.port.prefetch(((position + self.pace.ahead_lines) & self.mask) as u32);
        } else if position >= self.pace.look_at {
            self.look_ahead(position);
        }
    }

    /// Looks whether the sender is well in front.
    #[inline(never)]
    fn look_ahead(&mut self, position: u64) {
        let ahead_lines = self.pace.ahead_lines;
        self.pace.look_at = position + RETRY_LINES;
        // In a message almost as long as the window this is a line of its own. It is a hint and no more.
        let line = ((position + 2 * ahead_lines) & self.mask) as u32;
        if self.test.touched(&mut self.port, line) != 0 {
            self.pace.known_until = position + ahead_lines;
        }
    }
}
