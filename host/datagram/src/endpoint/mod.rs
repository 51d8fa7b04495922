//! An up-link, one polling thread, many connections.
//!
//! [`Endpoint::poll`] does one thing at a time: it sends what is due, tells the program what is ready, or takes a frame
//! from the up-link. A message that comes in order is shown where the up-link put it. What attackers send is
//! answered in `unmatched.rs`, timers and lists are kept in `upkeep.rs`; this file holds the connections and the clock,
//! which is read for a message and for an idle poll now and then, not for each.
//!
//! From: the program, and frames of the up-link. To: `connection/`, and the up-link.

mod unmatched;
mod upkeep;

use std::collections::VecDeque;

use beeline_ethernet::{Accept, Uplink, UplinkError};

use crate::connection::Connection;
use crate::ended::EndedList;
use crate::handshake::Sessions;
use crate::header::{Head, Kind};
use crate::outbox::Wire;
use crate::table::Table;
use crate::{
    Address, Clock, Config, ConnectError, ConnectionId, ConnectionStats, Down, EndpointError, EndpointStats,
    Event, HEAD_BYTES, Nanos, SendError, Sent, TickClock,
};

/// Frames that one poll may take without an event, so that it always comes back.
const FRAMES_A_POLL: u32 = 16;
/// Frames between two looks at the timers while the up-link is never found empty.
const FRAMES_A_LOOK: u32 = 64;

/// Position of the last event's message.
#[derive(Clone, Copy, Debug)]
enum Lies {
    Nowhere,
    /// In the frame taken last.
    Frame {
        bytes: usize,
    },
    /// In the ring of a connection.
    Held {
        id: ConnectionId,
        slot: usize,
        bytes: usize,
    },
}

/// Datagram connections over one up-link. Polled by one thread; nothing happens between polls but what is sent.
#[derive(Debug)]
pub struct Endpoint<U, C = TickClock> {
    uplink: U,
    outlet: Outlet,
    clock: C,
    config: Config,
    local: Address,
    /// The clock as it was read last.
    now: Nanos,
    /// No timer is due before; it may turn out that none is due then either.
    deadline: Nanos,
    frame: Vec<u8>,
    lies: Lies,
    connections: Table,
    sessions: Sessions,
    ended: EndedList,
    /// Connections that want to send, and room for those that still do afterwards.
    work: Vec<u32>,
    spare_work: Vec<u32>,
    /// Connections that have something to tell, in turn.
    ready: VecDeque<u32>,
    idle_polls: u32,
    idle_polls_a_look: u32,
    frames_until_look: u32,
    stats: EndpointStats,
}

/// What sending has caused since the last poll: an error to report, frames to flush.
#[derive(Debug, Default)]
struct Outlet {
    error: Option<UplinkError>,
    is_unflushed: bool,
}

/// An endpoint's up-link as the sink of one connection's frames.
struct EndpointWire<'a, U> {
    uplink: &'a mut U,
    outlet: &'a mut Outlet,
}

impl<U: Uplink> Wire for EndpointWire<'_, U> {
    #[inline]
    fn put(&mut self, frame: &[u8]) -> bool {
        match self.uplink.send(frame) {
            Ok(Accept::Taken) => {
                self.outlet.is_unflushed = true;
                true
            }
            Ok(Accept::Refused) => false,
            Err(error) => {
                self.outlet.error.get_or_insert(error);
                false
            }
        }
    }
}

impl<U: Uplink> Endpoint<U> {
    /// An endpoint on this up-link, with random sessions and the core's clock.
    ///
    /// # Errors
    /// The configuration cannot work, or the system gives no random numbers.
    pub fn new(uplink: U, config: Config) -> Result<Self, EndpointError> {
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(EndpointError::NoRandom)?;
        Endpoint::with_clock(uplink, config, TickClock::new(), key)
    }
}

impl<U: Uplink, C: Clock> Endpoint<U, C> {
    /// An endpoint with a clock and a key of its own: for tests, which want both to be the same each time. Who knows
    /// the key can guess sessions.
    ///
    /// # Errors
    /// The configuration cannot work.
    pub fn with_clock(
        uplink: U,
        mut config: Config,
        mut clock: C,
        key: [u8; 16],
    ) -> Result<Self, EndpointError> {
        config.frame_bytes = config.frame_bytes.min(uplink.longest_frame_bytes());
        config.check()?;
        let most = usize::from(config.max_connections);
        Ok(Endpoint {
            now: clock.now(),
            outlet: Outlet::default(),
            local: config.address(),
            deadline: Nanos::NEVER,
            frame: Vec::with_capacity(config.frame_bytes),
            lies: Lies::Nowhere,
            connections: Table::new(config.max_connections),
            sessions: Sessions::new(&key),
            ended: EndedList::new(),
            work: Vec::with_capacity(most),
            spare_work: Vec::with_capacity(most),
            ready: VecDeque::with_capacity(most),
            idle_polls: 0,
            idle_polls_a_look: 1,
            frames_until_look: FRAMES_A_LOOK,
            stats: EndpointStats::default(),
            uplink,
            clock,
            config,
        })
    }

    /// Begins a connection. [`Event::Opened`] follows, or [`Event::Closed`] with the reason; until then
    /// [`Endpoint::try_send`] answers [`Sent::Full`].
    ///
    /// # Errors
    /// There is a connection with this endpoint already, no room for one more, or no station of this address.
    pub fn connect(&mut self, remote: impl Into<Address>) -> Result<ConnectionId, ConnectError> {
        let remote = remote.into();
        if !remote.mac.is_station() || remote == self.local {
            return Err(ConnectError::NoStation { remote });
        }
        if let Some(index) = self.connections.find(remote) {
            return Err(ConnectError::Exists { remote, id: self.connections.id(index) });
        }
        if !self.connections.has_room() {
            return Err(ConnectError::TooMany { most: self.config.max_connections });
        }
        self.now = self.clock.now();
        let (session, now) = (self.sessions.own(), self.now);
        let begin = |connection: &mut Connection| connection.begin_client(remote, session, &self.config, now);
        let index = self.connections.add(remote, &self.config, begin);
        self.touch(index, |connection, wire| connection.on_time(now, wire));
        Ok(self.connections.id(index))
    }

    /// Does what is due and says what happened, one thing at a time; `None`: nothing for now, and the up-link is empty
    /// or had only frames without news.
    ///
    /// Cost without anything to do: one look into the up-link. It makes no system call that the up-link does not make.
    ///
    /// # Errors
    /// The up-link failed. Connections stay as they are, and a later poll may succeed.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<Event>, EndpointError> {
        self.lies = Lies::Nowhere;
        if !self.work.is_empty() {
            self.do_work();
        }
        if self.outlet.is_unflushed || self.outlet.error.is_some() {
            self.flush()?;
        }
        for _ in 0..FRAMES_A_POLL {
            if !self.ready.is_empty()
                && let Some(event) = self.tell()
            {
                return Ok(Some(event));
            }
            if !self.uplink.poll(&mut self.frame)? {
                self.idle();
                return Ok(if self.ready.is_empty() { None } else { self.tell() });
            }
            if let Some(event) = self.take_frame() {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// The bytes of the message that the last poll told of; none if it told of something else.
    #[inline]
    pub fn message(&self) -> &[u8] {
        match self.lies {
            Lies::Nowhere => &[],
            Lies::Frame { bytes } => self.frame.get(HEAD_BYTES..HEAD_BYTES + bytes).unwrap_or_default(),
            Lies::Held { id, slot, bytes } => {
                self.connections.get(id).map_or(&[], |connection| connection.message(slot, bytes))
            }
        }
    }

    /// Takes a message made of `head` and `rest`, whole or not at all. It leaves at the next poll, or with
    /// [`Endpoint::flush`], at the latest. The message of the last event stays where it is.
    ///
    /// # Errors
    /// The message is longer than [`Endpoint::max_message_bytes`], or the connection is not open any more.
    #[inline]
    pub fn try_send(&mut self, id: ConnectionId, head: &[u8], rest: &[u8]) -> Result<Sent, SendError> {
        let (bytes, max_bytes) = (head.len().saturating_add(rest.len()), self.max_message_bytes());
        if bytes > max_bytes {
            return Err(SendError::TooLong { bytes, max_bytes });
        }
        let Some(connection) = self.connections.get_mut(id) else { return Err(SendError::NotOpen { id }) };
        if connection.is_closing() {
            return Err(SendError::Closing { id });
        }
        if !connection.has_room() {
            return self.full(id);
        }
        self.now = self.clock.now();
        let mut wire = EndpointWire { uplink: &mut self.uplink, outlet: &mut self.outlet };
        let sent = connection.send(head, rest, self.now, &mut wire);
        self.settle(id.index);
        Ok(sent)
    }

    /// Returns the answer for a message that found no room.
    #[cold]
    fn full(&mut self, id: ConnectionId) -> Result<Sent, SendError> {
        let Some(connection) = self.connections.get_mut(id) else { return Err(SendError::NotOpen { id }) };
        if connection.end().is_some() {
            return Err(SendError::NotOpen { id });
        }
        connection.told_full(self.now);
        self.settle(id.index);
        Ok(Sent::Full)
    }

    /// Bytes of the longest message.
    #[inline]
    pub fn max_message_bytes(&self) -> usize {
        self.config.frame_bytes - HEAD_BYTES
    }

    /// Brings what was sent on its way now rather than at the next poll.
    ///
    /// # Errors
    /// The up-link failed, now or when something was sent before.
    pub fn flush(&mut self) -> Result<(), EndpointError> {
        if let Some(error) = self.outlet.error.take() {
            return Err(error.into());
        }
        self.outlet.is_unflushed = false;
        Ok(self.uplink.flush()?)
    }

    /// Ends a connection once everything that was sent has arrived; [`Event::Closed`] follows. Messages that come until
    /// then are still told. Does nothing when it has ended.
    pub fn close(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(id) {
            connection.close();
            self.settle(id.index);
        }
    }

    /// Ends a connection at once, whatever is under way, and tells the other side if that frame arrives.
    /// [`Event::Closed`] follows with [`Down::Closed`].
    pub fn abort(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let (remote, (ours, theirs)) = (connection.remote(), connection.sessions());
        connection.end_with(Down::Closed);
        self.answer_reset(remote, ours, theirs, beeline_spec::formats::datagram_reset::ABORTED);
        self.settle(id.index);
    }

    /// Takes no more messages of a connection for now: they stay with this side up to its window, then with the other.
    pub fn pause(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(id) {
            connection.pause(true);
        }
    }

    /// Takes messages of a connection again.
    pub fn resume(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(id) {
            connection.pause(false);
            self.settle(id.index);
        }
    }

    /// Whether everything sent was acknowledged, everything received acknowledged and told; also when it has ended.
    pub fn is_idle(&self, id: ConnectionId) -> bool {
        self.connections.get(id).is_none_or(Connection::is_idle)
    }

    /// Counters of a connection; `None` once it has ended.
    pub fn stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        self.connections.get(id).map(Connection::stats)
    }

    /// Counters of the endpoint.
    pub fn endpoint_stats(&self) -> EndpointStats {
        self.stats
    }

    /// The endpoint at the other end; `None` once the connection has ended.
    pub fn remote(&self, id: ConnectionId) -> Option<Address> {
        self.connections.get(id).map(Connection::remote)
    }

    /// The endpoint's own address.
    pub fn local(&self) -> Address {
        self.local
    }

    /// The up-link.
    pub fn uplink(&self) -> &U {
        &self.uplink
    }

    /// The up-link, to be changed. Frames taken from it are lost to the endpoint.
    pub fn uplink_mut(&mut self) -> &mut U {
        &mut self.uplink
    }

    /// When polling is needed next even if no frame comes, on the endpoint's clock: for a program that sleeps.
    pub fn next_deadline(&self) -> Nanos {
        if self.work.is_empty() && self.ready.is_empty() { self.deadline } else { self.now }
    }

    /// Takes the frame that the up-link gave.
    #[inline]
    fn take_frame(&mut self) -> Option<Event> {
        self.stats.frames += 1;
        let head = match Head::read(&self.frame, self.local) {
            Ok(head) => head,
            Err(stray) => {
                stray.count(&mut self.stats);
                return None;
            }
        };
        self.now = self.clock.now();
        self.frames_until_look -= 1;
        if self.frames_until_look == 0 {
            self.frames_until_look = FRAMES_A_LOOK;
            self.look_at_timers();
        }
        if let Some(index) = self.connections.find(head.from)
            && matches!(head.kind, Kind::Data | Kind::Ack | Kind::Close)
            && let Some(connection) = self.connections.at(index)
            && connection.is_of(&head)
            && !connection.is_opening()
        {
            let bytes = usize::from(head.message_bytes);
            let message = &self.frame[HEAD_BYTES..HEAD_BYTES + bytes];
            let is_next = connection.take(&head, message, false, self.now);
            self.settle(index);
            if is_next {
                self.lies = Lies::Frame { bytes };
                return Some(Event::Message { id: self.connections.id(index), bytes });
            }
            return None;
        }
        self.take_unmatched(&head);
        None
    }
}
