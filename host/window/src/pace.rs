//! Keeping a distance from the sender.
//!
//! Two cores that work on neighbouring lines take them from each other: what the receiver loads or prefetches before
//! the sender has stored it must be fetched back, and loads made early by speculation are thrown away when the store
//! comes. A receiver right behind its sender so slows both down to a tenth (74 ns a line instead of 6, measured in a
//! window of 1024 lines), and is never rid of it, because a slow sender is easy to catch up with.
//!
//! So lines are prefetched only as far as the sender is known to be: every `ahead_lines` messages the receiver looks
//! at one line twice that far in front. If several messages in a row find it blank, the next poll first pauses for a
//! fraction of a microsecond, in which a sender in full flow stores enough lines for both to be undisturbed for a
//! while. Traffic of single messages never pauses: a poll that finds nothing starts the count anew.

use beeline_link_contract::{CreditSink, LoadPort};

use crate::Receiver;
use crate::arrival::ArrivalTest;
use crate::receiver::Way;

/// Messages delivered close behind the sender before the receiver pauses.
pub(crate) const CLOSE_MESSAGES: u32 = 8;
/// Length of the pause in `spin_loop` hints; some 40 ns each on x86.
const PAUSES: u32 = 8;

impl<L: LoadPort, S: CreditSink, A: ArrivalTest> Receiver<L, S, A> {
    /// Looks whether the sender is well in front, when that is not known any more.
    #[inline(never)]
    pub(crate) fn look_ahead(&mut self) {
        if self.ahead_lines == 0 {
            return;
        }
        if self.look(2 * self.ahead_lines as u32).0 != 0 {
            self.stored_until = self.next_start + 2 * self.ahead_lines;
            self.close_messages = 0;
        } else {
            self.close_messages += 1;
        }
    }

    /// Lets the sender get in front.
    pub(crate) fn keep_distance(&mut self) {
        self.close_messages = 0;
        self.way = Way::Fresh;
        for _ in 0..PAUSES {
            core::hint::spin_loop();
        }
    }
}
