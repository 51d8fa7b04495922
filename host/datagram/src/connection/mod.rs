//! One connection: both halves, when to acknowledge, when to repeat, when to ask, when to give up.
//!
//! A pure state machine: it does no I/O, reads no clock, and allocates nothing after it was made. The endpoint calls it
//! with frames that carry its sessions, with the time, and with messages; frames go out through [`Wire`]. What it wants
//! next stands in [`Connection::needs_work`] (a frame should leave now), [`Connection::is_ready`] (the program has to
//! be told something) and [`Connection::deadline`] (wake it then).
//!
//! This file: beginning, messages, acknowledgements. What time brings is in `timing.rs`, how it ends in `ending.rs`.
//!
//! An acknowledgement that is due at once still waits for the next poll: an answer that the program sends from its
//! handler takes it along.

mod ending;
#[cfg(test)]
mod tests;
mod timing;

use std::time::Duration;

use crate::config::Config;
use crate::header::{Head, Kind, Numbers, Template, stamp};
use crate::inbox::{Arrival, Inbox};
use crate::outbox::{Left, Outbox, Progress, Wire};
use crate::pacer::Pacer;
use crate::round_trip::RoundTrip;
use crate::sequence::{Sequence, Session};
use crate::time::{Nanos, ns};
use crate::{Address, ConnectionStats, Down, Sent};

/// Messages that one acknowledgement may stand for while there are gaps to tell of.
const GAP_ACK_EVERY: u8 = 4;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// This side has asked for the connection and has no answer yet.
    Opening,
    Open,
    /// This side's program wants no more; what it sent is still being delivered.
    Closing {
        is_close_queued: bool,
    },
}

/// Durations of the configuration in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Limits {
    ack_delay_ns: u64,
    ack_every: u8,
    keep_alive_ns: u64,
    silent_after_ns: u64,
    silent_after: Duration,
    window: u8,
    message_bytes: usize,
}

/// One side of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    remote: Address,
    local: Address,
    ours: Session,
    theirs: Session,
    template: Template,
    state: State,
    inbox: Inbox,
    outbox: Outbox,
    trip: RoundTrip,
    pacer: Pacer,
    limits: Limits,
    /// Messages that no acknowledgement stands for yet, and until when it may wait.
    owed: u8,
    ack_at: Nanos,
    is_ack_due: bool,
    /// The room that the other side was told last.
    told_room: u8,
    /// When the first message under way counts as missing.
    timeout_at: Nanos,
    timeouts_in_a_row: u32,
    /// When to ask next: to be let in, whether that was heard, or whether there is room again.
    ask_at: Nanos,
    asked: u32,
    began_at: Nanos,
    heard_at: Nanos,
    probed_at: Nanos,
    probes: u32,
    /// When something was acknowledged last, or nothing was under way.
    progress_at: Nanos,
    is_announced: bool,
    down: Option<Down>,
    /// The up-link had no room for a frame, so that another poll must try again.
    is_refused: bool,
    /// Whether the endpoint has it on its list of those that want to send, and of those that have something to tell.
    pub(crate) is_listed_for_work: bool,
    pub(crate) is_listed_as_ready: bool,
    stats: ConnectionStats,
}

impl Connection {
    /// A connection that is not begun.
    pub(crate) fn new(config: &Config) -> Self {
        let local = config.address();
        Connection {
            remote: local,
            local,
            ours: Session::NONE,
            theirs: Session::NONE,
            template: Template::new(local, local, Session::NONE, Session::NONE),
            state: State::Opening,
            inbox: Inbox::new(Session::NONE, config.receive_window, config.message_bytes()),
            outbox: Outbox::new(Session::NONE, config.send_window, config.message_bytes()),
            trip: RoundTrip::new(config),
            pacer: Pacer::new(config.pacing),
            limits: Limits {
                ack_delay_ns: ns(config.ack_delay),
                // Half a window at most, so that the other half is under way while the acknowledgement travels.
                ack_every: config.ack_every.clamp(1, (config.receive_window / 2).max(1)),
                keep_alive_ns: ns(config.keep_alive),
                silent_after_ns: ns(config.silent_after),
                silent_after: config.silent_after,
                window: config.receive_window,
                message_bytes: config.message_bytes(),
            },
            owed: 0,
            ack_at: Nanos::NEVER,
            is_ack_due: false,
            told_room: config.receive_window,
            timeout_at: Nanos::NEVER,
            timeouts_in_a_row: 0,
            ask_at: Nanos::NEVER,
            asked: 0,
            began_at: Nanos(0),
            heard_at: Nanos(0),
            probed_at: Nanos(0),
            probes: 0,
            progress_at: Nanos(0),
            is_announced: true,
            down: None,
            is_refused: false,
            is_listed_for_work: false,
            is_listed_as_ready: false,
            stats: ConnectionStats::default(),
        }
    }

    /// Begins afresh in the same memory, with nothing known of the other side but its address.
    fn begin(&mut self, remote: Address, ours: Session, theirs: Session, config: &Config, now: Nanos) {
        self.outbox.reset(ours);
        self.inbox.reset(theirs);
        (self.remote, self.ours, self.theirs) = (remote, ours, theirs);
        self.template = Template::new(self.local, remote, ours, theirs);
        (self.trip, self.pacer) = (RoundTrip::new(config), Pacer::new(config.pacing));
        (self.owed, self.ack_at, self.is_ack_due) = (0, Nanos::NEVER, false);
        self.told_room = self.limits.window;
        (self.timeout_at, self.timeouts_in_a_row) = (Nanos::NEVER, 0);
        (self.ask_at, self.asked) = (Nanos::NEVER, 0);
        (self.began_at, self.heard_at, self.probed_at, self.progress_at) = (now, now, now, now);
        (self.probes, self.is_announced, self.down, self.is_refused) = (0, false, None, false);
        self.stats = ConnectionStats::default();
    }

    /// Begins as the side that asks. The next call of [`Connection::on_time`] sends the question.
    pub(crate) fn begin_client(&mut self, remote: Address, ours: Session, config: &Config, now: Nanos) {
        self.begin(remote, ours, Session::NONE, config, now);
        (self.state, self.ask_at) = (State::Opening, now);
    }

    /// Begins as the side that was asked, with sessions that both sides have named.
    pub(crate) fn begin_server(
        &mut self,
        remote: Address,
        ours: Session,
        theirs: Session,
        config: &Config,
        now: Nanos,
    ) {
        self.begin(remote, ours, theirs, config, now);
        self.state = State::Open;
    }

    /// The other side answered `open`: it takes `theirs` as its session, has room, and sends this long messages.
    pub(crate) fn welcome(&mut self, head: &Head, now: Nanos) {
        if head.number as usize != self.limits.message_bytes {
            let ours_bytes = self.limits.message_bytes;
            self.down = Some(Down::FrameBytes { ours_bytes, theirs_bytes: head.number as usize });
            return;
        }
        if self.asked == 1 {
            self.trip.measured(now.since(self.began_at));
        }
        self.theirs = head.from_session;
        self.template = Template::new(self.local, self.remote, self.ours, self.theirs);
        self.inbox.reset(self.theirs);
        self.outbox.give_room(head.room);
        self.state = State::Open;
        self.heard_at = now;
        // The other side knows of the connection only when it hears from this one, so that is asked for until it does.
        (self.ask_at, self.asked) = (now, 0);
    }

    /// Takes a frame that carries both sessions. `true`: its message goes to the program, from the frame.
    #[inline]
    pub(crate) fn take(&mut self, head: &Head, message: &[u8], must_hold: bool, now: Nanos) -> bool {
        let progress = self.outbox.acknowledge(head.acknowledged, head.selective, head.room, &self.trip, now);
        let Some(progress) = progress else {
            self.stats.wild_acks += 1;
            return false;
        };
        self.stats.frames_received += 1;
        (self.heard_at, self.probes) = (now, 0);
        (self.ask_at, self.asked) = (Nanos::NEVER, 0);
        if progress.acknowledged != 0 || progress.lost != 0 || progress.round_trip_ns.is_some() {
            self.note(&progress, now);
        }
        self.is_ack_due |= head.wants_answer;
        match head.kind {
            Kind::Data => self.take_message(head.number, message, must_hold, now),
            Kind::Close => {
                self.is_ack_due = true;
                let arrival = self.inbox.take_close(head.number);
                self.count(arrival);
                false
            }
            _ => false,
        }
    }

    #[inline]
    fn take_message(&mut self, number: u32, message: &[u8], must_hold: bool, now: Nanos) -> bool {
        if message.len() > self.limits.message_bytes {
            self.stats.beyond += 1;
            return false;
        }
        let had_gap = self.inbox.selective() != 0;
        let arrival = self.inbox.take(number, message, must_hold);
        self.owed = self.owed.saturating_add(1);
        self.is_ack_due |= match arrival {
            Arrival::Next => had_gap || self.owed >= self.limits.ack_every,
            Arrival::Held => {
                self.inbox.is_gap_news(number) || self.owed >= self.limits.ack_every.min(GAP_ACK_EVERY)
            }
            // The other side repeats in vain, or does not know the room.
            Arrival::Duplicate | Arrival::Beyond => true,
        };
        if self.ack_at == Nanos::NEVER {
            self.ack_at = now.after(self.limits.ack_delay_ns);
        }
        if arrival == Arrival::Next {
            self.stats.messages_received += 1;
        } else {
            self.count(arrival);
        }
        arrival == Arrival::Next
    }

    fn count(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Next => {}
            Arrival::Held => self.stats.held += 1,
            Arrival::Duplicate => self.stats.duplicates += 1,
            Arrival::Beyond => self.stats.beyond += 1,
        }
    }

    /// Draws the conclusions from an acknowledgement.
    #[inline]
    fn note(&mut self, progress: &Progress, now: Nanos) {
        if let Some(round_trip_ns) = progress.round_trip_ns {
            self.trip.measured(round_trip_ns);
        }
        if progress.acknowledged > 0 {
            (self.progress_at, self.timeouts_in_a_row) = (now, 0);
            self.timeout_at = match self.outbox.is_under_way() {
                true => now.after(self.trip.timeout_ns()),
                false => Nanos::NEVER,
            };
            self.pacer.arrived(progress.acknowledged, self.outbox.window(), self.trip.smoothed_ns());
        }
        if progress.lost > 0 {
            self.stats.repeated_early += u64::from(progress.lost);
            if progress.is_new_loss {
                self.pacer.lost(self.trip.smoothed_ns());
            }
        }
    }

    /// Takes a message, if there is room, and sends it if it may leave now.
    #[inline]
    pub(crate) fn send(&mut self, head: &[u8], rest: &[u8], now: Nanos, wire: &mut impl Wire) -> Sent {
        if !self.outbox.has_room() {
            return Sent::Full;
        }
        self.outbox.push(&self.template, Kind::Data, head, rest);
        self.stats.messages_sent += 1;
        self.pump(now, wire);
        Sent::Sent
    }

    /// Whether a message would be taken.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.outbox.has_room()
    }

    /// Sends what may leave now.
    #[inline]
    fn pump(&mut self, now: Nanos, wire: &mut impl Wire) {
        self.is_refused = false;
        while self.outbox.has_unsent() && self.pacer.next() <= now {
            let was_idle = !self.outbox.is_under_way();
            match self.outbox.transmit(self.numbers(), now, wire) {
                Some(Left::Refused) => {
                    self.is_refused = true;
                    self.stats.refused_by_uplink += 1;
                    return;
                }
                Some(left) => {
                    self.pacer.sent(now);
                    self.sent();
                    if was_idle {
                        self.progress_at = now;
                    }
                    if was_idle || left == Left::Again {
                        self.timeout_at = now.after(self.trip.timeout_ns());
                    }
                }
                None => return,
            }
        }
    }

    /// Returns the numbers that every frame carries to the other side.
    #[inline]
    fn numbers(&self) -> Numbers {
        Numbers {
            acknowledged: self.inbox.next().wire(),
            selective: self.inbox.selective(),
            room: self.inbox.room(),
            wants_answer: false,
        }
    }

    /// A frame left, and with it everything that there is to acknowledge.
    #[inline]
    fn sent(&mut self) {
        self.stats.frames_sent += 1;
        (self.owed, self.ack_at, self.is_ack_due) = (0, Nanos::NEVER, false);
        self.told_room = self.inbox.room();
    }

    /// Sends an acknowledgement alone. With `wants_answer` it is a question.
    pub(crate) fn send_ack(&mut self, wants_answer: bool, wire: &mut impl Wire) -> bool {
        let mut frame = self.template.head(Kind::Ack, self.outbox.end().wire(), 0);
        stamp(&mut frame, Numbers { wants_answer, ..self.numbers() });
        let is_taken = wire.put(&frame);
        if is_taken {
            self.sent();
            self.stats.acks_sent += u64::from(!wants_answer);
            self.stats.probes += u64::from(wants_answer);
        } else {
            self.stats.refused_by_uplink += 1;
        }
        is_taken
    }

    /// Whether a frame should leave at the next opportunity.
    #[inline]
    pub(crate) fn needs_work(&self) -> bool {
        let may_send = self.outbox.has_unsent() && (self.is_refused || self.pacer.spacing_ns() == 0);
        self.is_ack_due || may_send || self.wants_to_queue_close()
    }

    /// Sends what is due: messages, then what they could not take along.
    pub(crate) fn work(&mut self, now: Nanos, wire: &mut impl Wire) {
        if self.wants_to_queue_close() {
            self.queue_close();
        }
        self.pump(now, wire);
        if self.is_ack_due && self.down.is_none() {
            self.send_ack(false, wire);
        }
    }

    /// The next held message for the program: where it lies.
    pub(crate) fn deliver(&mut self) -> Option<(usize, usize)> {
        let message = self.inbox.deliver()?;
        self.stats.messages_received += 1;
        self.tell_room();
        Some(message)
    }

    /// A side that was told of little room is told when there is more.
    fn tell_room(&mut self) {
        let half = self.limits.window.div_ceil(2);
        self.is_ack_due |= self.told_room < half && self.inbox.room() >= half;
    }

    /// The bytes of a message that [`Connection::deliver`] gave.
    pub(crate) fn message(&self, slot: usize, bytes: usize) -> &[u8] {
        self.inbox.message(slot, bytes)
    }

    /// Stops or resumes delivery.
    pub(crate) fn pause(&mut self, is_paused: bool) {
        self.inbox.is_paused = is_paused;
    }

    /// Whether the program has to be told something.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.inbox.has_ready() || (!self.is_announced && !self.is_opening()) || self.end().is_some()
    }

    /// Whether the program was not told yet that this connection is open; it is told once.
    pub(crate) fn announce(&mut self) -> bool {
        let is_new = !self.is_announced && self.state != State::Opening && self.down.is_none();
        self.is_announced |= is_new;
        is_new
    }

    /// Whether a frame with these sessions is one of this connection.
    #[inline]
    pub(crate) fn is_of(&self, head: &Head) -> bool {
        self.ours == head.to_session && self.theirs == head.from_session
    }

    /// Whether the connection waits for the answer to its request.
    #[inline]
    pub(crate) fn is_opening(&self) -> bool {
        self.state == State::Opening
    }

    /// Whether messages may be sent.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        matches!(self.state, State::Closing { .. })
    }

    /// Whether nothing is under way, owed, or waiting for the program.
    pub(crate) fn is_idle(&self) -> bool {
        self.outbox.unacknowledged() == 0 && self.owed == 0 && !self.is_ack_due && !self.is_ready()
    }

    pub(crate) fn remote(&self) -> Address {
        self.remote
    }

    pub(crate) fn sessions(&self) -> (Session, Session) {
        (self.ours, self.theirs)
    }

    /// Returns the number before which everything arrived.
    pub(crate) fn arrived(&self) -> Sequence {
        self.inbox.next()
    }

    pub(crate) fn stats(&self) -> ConnectionStats {
        ConnectionStats {
            unacknowledged: self.unacknowledged(),
            round_trip_ns: self.trip.smoothed_ns(),
            timeout_ns: self.trip.timeout_ns(),
            spacing_ns: self.pacer.spacing_ns(),
            ..self.stats
        }
    }
}
