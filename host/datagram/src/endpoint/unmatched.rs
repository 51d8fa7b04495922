//! Frames that belong to no connection: openings, their answers, resets, what is late, and what is replayed.
//!
//! A request leaves no state here, and no frame is answered by more than one of its own size; a reset is never
//! answered. A connection comes to be, or takes the place of an earlier one, only by a frame that names a session
//! which this side offered to that address not long ago and which did not end yet.

use beeline_ethernet::Uplink;
use beeline_spec::formats::datagram_reset as reset;

use super::{Endpoint, EndpointWire};
use crate::connection::Connection;
use crate::header::{Head, Kind, Numbers, Template, stamp};
use crate::outbox::Wire;
use crate::sequence::Session;
use crate::{Address, Clock, Down, HEAD_BYTES};

impl<U: Uplink, C: Clock> Endpoint<U, C> {
    /// Takes a frame whose sessions are those of no connection that is open.
    #[cold]
    pub(super) fn take_unmatched(&mut self, head: &Head) {
        match head.kind {
            Kind::Open => self.take_open(head),
            Kind::Welcome => self.take_welcome(head),
            Kind::Reset => self.take_reset(head),
            Kind::Data | Kind::Ack | Kind::Close => self.take_unknown(head),
        }
    }

    /// Takes a request for a connection.
    fn take_open(&mut self, head: &Head) {
        let known = self.connections.find(head.from);
        let is_known = known.is_some();
        if let Some(connection) = known.and_then(|index| self.connections.at(index)) {
            // A late copy of what was answered; or both sides ask at once, then the lesser address is the client.
            let is_late = connection.sessions().1 == head.from_session;
            if is_late || (connection.is_opening() && self.local.key() < head.from.key()) {
                self.stats.unasked += 1;
                return;
            }
        }
        if head.from_session == Session::NONE || head.to_session != Session::NONE {
            self.stats.malformed += 1;
            return;
        }
        let no_room = if is_known { None } else { self.no_room_for(head.from) };
        let refusal = if self.config.listens { no_room } else { Some(reset::REFUSED) };
        if let Some(why) = refusal {
            self.stats.refused += 1;
            self.answer_reset(head.from, Session::NONE, head.from_session, why);
        } else if head.number as usize != self.config.message_bytes() {
            self.stats.refused += 1;
            self.answer_reset(head.from, Session::NONE, head.from_session, reset::FRAME_BYTES);
        } else {
            self.stats.opens += 1;
            let offer = self.sessions.offer(head.from, head.from_session, self.now);
            let number = self.config.message_bytes() as u32;
            self.answer(
                Kind::Welcome,
                head.from,
                offer,
                head.from_session,
                number,
                Numbers { room: self.config.receive_window, ..Numbers::default() },
            );
        }
    }

    /// Somebody answers what this side asked, or seems to.
    fn take_welcome(&mut self, head: &Head) {
        let now = self.now;
        if let Some(index) = self.connections.find(head.from)
            && let Some(connection) = self.connections.at(index)
            && connection.is_opening()
            && connection.sessions().0 == head.to_session
            && head.from_session != Session::NONE
        {
            connection.welcome(head, now);
            self.touch(index, |connection, wire| connection.on_time(now, wire));
        } else {
            self.stats.unasked += 1;
        }
    }

    /// Somebody says that a connection is not there. Only who knows both its sessions is believed.
    fn take_reset(&mut self, head: &Head) {
        if let Some(index) = self.connections.find(head.from)
            && let Some(connection) = self.connections.at(index)
            && connection.is_of(head)
        {
            if !connection.reset(head) {
                self.stats.malformed += 1;
            }
            self.settle(index);
        } else {
            self.stats.unasked += 1;
        }
    }

    /// A frame of a connection that is not there: not yet, not any more, or never.
    fn take_unknown(&mut self, head: &Head) {
        if let Some(ended) = self.ended.find(head.from, head.to_session, head.from_session) {
            self.stats.ended_session += 1;
            let wants_answer = head.kind != Kind::Ack || head.wants_answer;
            if wants_answer && ended.is_complete {
                // The last acknowledgement was lost.
                let numbers = Numbers { acknowledged: ended.arrived.wire(), ..Numbers::default() };
                self.answer(Kind::Ack, head.from, head.to_session, head.from_session, 0, numbers);
            } else if wants_answer {
                self.answer_reset(head.from, head.to_session, head.from_session, reset::UNKNOWN);
            }
            return;
        }
        let (ours, theirs) = (head.to_session, head.from_session);
        if self.config.listens && self.sessions.is_offer(ours, head.from, theirs, self.now) {
            self.confirm(head);
            return;
        }
        self.stats.unknown_session += 1;
        if head.kind != Kind::Ack || head.wants_answer {
            self.answer_reset(head.from, ours, theirs, reset::UNKNOWN);
        }
    }

    /// Whom a session was offered comes back with it: the connection is there.
    fn confirm(&mut self, head: &Head) {
        let (ours, theirs, now) = (head.to_session, head.from_session, self.now);
        let known = self.connections.find(head.from);
        let index = if let Some(index) = known
            && let Some(connection) = self.connections.at(index)
            && connection.is_opening()
        {
            // Both sides asked at once, and the other one is the client: what this side began goes on as the answer.
            connection.begin_server(head.from, ours, theirs, &self.config, now);
            index
        } else {
            if let Some(index) = known {
                self.detach(index);
                self.touch(index, |connection, _| connection.end_with(Down::Restarted));
            }
            if let Some(why) = self.no_room_for(head.from) {
                self.stats.refused += 1;
                self.answer_reset(head.from, ours, theirs, why);
                return;
            }
            let begin = |connection: &mut Connection| {
                connection.begin_server(head.from, ours, theirs, &self.config, now);
            };
            self.connections.add(head.from, &self.config, begin)
        };
        let message = &self.frame[HEAD_BYTES..HEAD_BYTES + usize::from(head.message_bytes)];
        if let Some(connection) = self.connections.at(index) {
            // The program is told of the connection first, so the message waits in the ring.
            connection.take(head, message, true, now);
        }
        self.settle(index);
    }

    /// Why no connection that `remote` begins can be added.
    fn no_room_for(&self, remote: Address) -> Option<u8> {
        if !self.connections.has_room() {
            Some(reset::REFUSED)
        } else if self.connections.of_station(remote) >= self.config.most_of_station() {
            Some(reset::STATION_SHARE)
        } else {
            None
        }
    }

    /// Sends a reset: there is no such connection.
    pub(super) fn answer_reset(&mut self, to: Address, ours: Session, theirs: Session, why: u8) {
        let numbers = Numbers { acknowledged: self.config.message_bytes() as u32, ..Numbers::default() };
        if self.answer(Kind::Reset, to, ours, theirs, why.into(), numbers) {
            self.stats.resets_sent += 1;
        }
    }

    /// Sends a frame without a message, for which nothing is kept.
    fn answer(
        &mut self,
        kind: Kind,
        to: Address,
        ours: Session,
        theirs: Session,
        number: u32,
        numbers: Numbers,
    ) -> bool {
        let mut frame = Template::new(self.local, to, ours, theirs).head(kind, number, 0);
        stamp(&mut frame, numbers);
        let is_taken = EndpointWire { uplink: &mut self.uplink, outlet: &mut self.outlet }.put(&frame);
        self.stats.answers_lost += u64::from(!is_taken);
        is_taken
    }
}
