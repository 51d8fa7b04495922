//! How a connection ends: by a close that is acknowledged, by the other side's, by a reset, or by a decision of this side.

use beeline_spec::formats::datagram_reset as reset;

use super::{Connection, State};
use crate::Down;
use crate::header::{Head, Kind};
use crate::outbox::Wire;

impl Connection {
    /// The other side says that there is no such connection. `false`: it gives no reason that there is.
    pub(crate) fn reset(&mut self, head: &Head) -> bool {
        let is_delivered =
            matches!(self.state, State::Closing { .. }) && self.is_all_but_close_acknowledged();
        let why = match u8::try_from(head.number) {
            // What is gone has read everything that this side sent, and its last acknowledgement was lost.
            Ok(reset::UNKNOWN) if is_delivered => Down::Closed,
            Ok(reset::UNKNOWN) => Down::Restarted,
            Ok(reset::REFUSED) => Down::Refused,
            Ok(reset::STATION_SHARE) => Down::StationShare,
            Ok(reset::FRAME_BYTES) => Down::FrameBytes {
                ours_bytes: self.limits.message_bytes,
                theirs_bytes: head.acknowledged as usize,
            },
            Ok(reset::ABORTED) => Down::Aborted,
            _ => return false,
        };
        self.down.get_or_insert(why);
        true
    }

    /// Returns how the connection ended, or `None` while it lives.
    #[inline]
    pub(crate) fn end(&self) -> Option<Down> {
        if self.down.is_some() {
            return self.down;
        }
        match self.state {
            State::Opening => None,
            State::Open => self.inbox.is_closed().then_some(Down::ClosedByPeer),
            State::Closing { is_close_queued: true } => {
                let is_read = self.outbox.unacknowledged() == 0;
                // Both sides closed: the other one will acknowledge no close any more.
                let both = self.inbox.is_closed() && self.is_all_but_close_acknowledged();
                (is_read || both).then_some(Down::Closed)
            }
            State::Closing { is_close_queued: false } => None,
        }
    }

    fn is_all_but_close_acknowledged(&self) -> bool {
        self.state == State::Closing { is_close_queued: true } && self.outbox.unacknowledged() <= 1
    }

    /// The program wants no more. What it sent is still delivered.
    pub(crate) fn close(&mut self) {
        match self.state {
            State::Opening => self.down = Some(Down::Closed),
            State::Open => self.state = State::Closing { is_close_queued: false },
            State::Closing { .. } => {}
        }
    }

    /// Ends it for a reason that the endpoint knows.
    pub(crate) fn end_with(&mut self, why: Down) {
        self.down.get_or_insert(why);
    }

    /// Puts the close behind the last message.
    pub(super) fn queue_close(&mut self) {
        self.outbox.push(&self.template, Kind::Close, &[], &[]);
        self.state = State::Closing { is_close_queued: true };
    }

    /// Whether the program closed and there is room for the close now.
    pub(super) fn wants_to_queue_close(&self) -> bool {
        self.state == State::Closing { is_close_queued: false } && self.outbox.has_room()
    }

    /// Acknowledges the other side's close, if it was that. If this is lost, `ended.rs` answers the next try.
    pub(crate) fn send_last_ack(&mut self, wire: &mut impl Wire) {
        if self.is_ack_due && self.down.is_none() {
            self.send_ack(false, wire);
        }
    }

    /// Whether the other side closed and everything before that was delivered.
    pub(crate) fn is_closed_by_peer(&self) -> bool {
        self.inbox.is_closed()
    }

    /// Messages taken and not acknowledged, the close not counted.
    pub(crate) fn unacknowledged(&self) -> u32 {
        let close = u32::from(self.state == State::Closing { is_close_queued: true });
        self.outbox.unacknowledged().saturating_sub(close)
    }
}
