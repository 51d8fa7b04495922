//! What a connection does because time went by: repeat, acknowledge, ask, and give up.

use std::time::Duration;

use super::{Connection, State};
use crate::Down;
use crate::header::{Kind, Numbers, stamp};
use crate::outbox::Wire;
use crate::time::Nanos;

/// Questions without an answer before silence counts as the end.
const LEAST_PROBES: u32 = 3;
/// Time-outs in a row before a side that speaks counts as faulty for acknowledging nothing.
const LEAST_TIMEOUTS: u32 = 8;
/// Doublings of the wait between two questions.
const MOST_DOUBLINGS: u32 = 16;

impl Connection {
    /// When [`Connection::on_time`] is to be called, if nothing happens before.
    #[inline]
    pub(crate) fn deadline(&self) -> Nanos {
        let silence = self.heard_at.max(self.probed_at).after(self.limits.keep_alive_ns);
        let silence = if self.state == State::Opening { Nanos::NEVER } else { silence };
        let paced = if self.outbox.has_unsent() { self.pacer.next() } else { Nanos::NEVER };
        self.ack_at.min(self.timeout_at).min(self.ask_at).min(silence).min(paced)
    }

    /// Does what its time has come for. The up-link was found empty not long ago, so silence is silence.
    pub(crate) fn on_time(&mut self, now: Nanos, wire: &mut impl Wire) {
        if self.down.is_some() {
            return;
        }
        if self.ask_at <= now {
            self.ask(now, wire);
        }
        if self.state == State::Opening {
            return;
        }
        if self.timeout_at <= now {
            self.time_out(now);
        }
        if self.heard_at.max(self.probed_at).after(self.limits.keep_alive_ns) <= now {
            self.probe(now, wire);
        }
        self.pump(now, wire);
        if self.ack_at <= now {
            // Refused by the up-link it is tried again at the next poll.
            self.is_ack_due = !self.send_ack(false, wire);
        }
    }

    /// Asks to be let in, whether that was heard, or whether there is room; again and again, ever more rarely.
    fn ask(&mut self, now: Nanos, wire: &mut impl Wire) {
        if self.state == State::Opening {
            if now.since(self.began_at) >= self.limits.silent_after_ns {
                self.down = Some(Down::Silent { after: self.limits.silent_after });
                return;
            }
            self.send_open(wire);
        } else {
            self.send_ack(true, wire);
        }
        let wait_ns = self.trip.plain_timeout_ns().saturating_mul(1 << self.asked.min(MOST_DOUBLINGS));
        let wait_ns = wait_ns.min(self.trip.most_ns());
        self.ask_at = now.after(wait_ns);
        self.asked += 1;
    }

    /// Handles an expired retransmission timer.
    fn time_out(&mut self, now: Nanos) {
        if !self.outbox.time_out() {
            self.timeout_at = Nanos::NEVER;
            return;
        }
        let is_heard = now.since(self.heard_at) < self.limits.silent_after_ns;
        let waited_ns = now.since(self.progress_at);
        if is_heard && waited_ns >= self.limits.silent_after_ns && self.timeouts_in_a_row >= LEAST_TIMEOUTS {
            self.down = Some(Down::Stuck { after: Duration::from_nanos(waited_ns) });
        }
        self.timeouts_in_a_row += 1;
        self.stats.timeouts += 1;
        self.trip.back_off();
        self.pacer.timed_out(self.trip.smoothed_ns());
        self.timeout_at = now.after(self.trip.timeout_ns());
    }

    /// Asks whether the other side is there, or concludes that it is not.
    fn probe(&mut self, now: Nanos, wire: &mut impl Wire) {
        let silent_ns = now.since(self.heard_at);
        if silent_ns >= self.limits.silent_after_ns && self.probes >= LEAST_PROBES {
            self.down = Some(Down::Silent { after: Duration::from_nanos(silent_ns) });
            return;
        }
        // A question that the up-link has no room for counts: a way out that is blocked is silence, too.
        self.send_ack(true, wire);
        self.probed_at = now;
        self.probes += 1;
    }

    /// The program was told that there is no room. If it is the other side that has none, and nothing is under way
    /// that it will answer, it is asked.
    pub(crate) fn told_full(&mut self, now: Nanos) {
        let will_hear = self.outbox.is_under_way() || self.state == State::Opening;
        if self.ask_at == Nanos::NEVER && self.outbox.is_held_back() && !will_hear {
            (self.ask_at, self.asked) = (now.after(self.trip.timeout_ns()), 0);
        }
    }

    /// Asks to be let in. A frame that the up-link has no room for is as good as one that is lost.
    fn send_open(&mut self, wire: &mut impl Wire) {
        let mut frame = self.template.head(Kind::Open, self.limits.message_bytes as u32, 0);
        stamp(&mut frame, Numbers { room: self.inbox.room(), ..Numbers::default() });
        if wire.put(&frame) {
            self.stats.frames_sent += 1;
        }
    }
}
