//! A server behind an up-link: one thread, all clients.

use beeline_datagram::{Clock, Config, ConnectionId, Endpoint, EndpointError, Event, Sent, TickClock};
use beeline_ethernet::Uplink;

use super::caller::Caller;
use crate::error::RpcError;
use crate::service::{ClientId, Service};

/// One client and its connection.
#[derive(Debug)]
struct Connected {
    connection: ConnectionId,
    caller: Caller,
}

/// Answers the calls that come by an up-link. Poll it; nothing happens in between.
///
/// Requests lie in the endpoint's receive buffer while the handler runs; answers are gathered and leave as frames, in
/// parts when they are longer than one. A client that does not take its answers is given no further turn.
#[derive(Debug)]
pub struct WireServer<U, C = TickClock> {
    endpoint: Endpoint<U, C>,
    callers: Vec<Connected>,
    /// Callers whose answer waits for room.
    waiting: usize,
    next_id: u64,
}

impl<U: Uplink> WireServer<U> {
    /// A server on this up-link; give a configuration that listens ([`Config::server`]).
    ///
    /// # Errors
    /// The endpoint cannot be set up.
    pub fn new(uplink: U, config: Config) -> Result<Self, RpcError> {
        Ok(Self::on_endpoint(Endpoint::new(uplink, config).map_err(RpcError::Endpoint)?))
    }
}

impl<U: Uplink, C: Clock> WireServer<U, C> {
    /// A server on an endpoint that is there already.
    pub fn on_endpoint(endpoint: Endpoint<U, C>) -> Self {
        WireServer { endpoint, callers: Vec::new(), waiting: 0, next_id: 1 }
    }

    /// The endpoint, for its counters and its up-link's.
    pub fn endpoint(&self) -> &Endpoint<U, C> {
        &self.endpoint
    }

    /// Clients that are connected.
    pub fn clients(&self) -> usize {
        self.callers.len()
    }

    /// Takes one message, if one is there, and serves what is whole; whether it did. Never waits.
    ///
    /// # Errors
    /// The up-link failed; a later poll may succeed.
    #[inline]
    pub fn poll(&mut self, service: &mut impl Service) -> Result<bool, EndpointError> {
        if self.waiting > 0 {
            self.send_waiting();
        }
        let (id, is_new) = match self.endpoint.poll()? {
            None => return Ok(false),
            Some(Event::Message { id, .. }) => (id, false),
            Some(Event::Opened { id, .. }) => (id, true),
            Some(Event::Closed { id, .. }) => {
                self.forget(id);
                return Ok(false);
            }
        };
        if is_new {
            self.welcome(id);
            return Ok(false);
        }
        let Some(index) = self.callers.iter().position(|caller| caller.connection == id) else {
            // Its connection was aborted for what it said before.
            return Ok(false);
        };
        match self.callers[index].caller.take(self.endpoint.message(), service) {
            Ok(()) => self.answer(index),
            Err(error) => {
                tracing::warn!(client = %id, %error, "a client is disconnected");
                self.endpoint.abort(id);
                self.forget(id);
            }
        }
        Ok(true)
    }

    fn welcome(&mut self, connection: ConnectionId) {
        let id = ClientId(self.next_id);
        self.next_id += 1;
        self.callers.push(Connected { connection, caller: Caller::new(id) });
    }

    fn forget(&mut self, connection: ConnectionId) {
        let Some(index) = self.callers.iter().position(|caller| caller.connection == connection) else {
            return;
        };
        let gone = self.callers.swap_remove(index);
        self.waiting -= usize::from(gone.caller.reply.answers.parked.is_active());
    }

    /// Sends a caller's answer, as far as there is room. What is left waits, and the caller with it.
    #[inline]
    fn answer(&mut self, index: usize) {
        if !self.send(index) {
            self.endpoint.pause(self.callers[index].connection);
            self.waiting += 1;
        }
    }

    /// Whether the whole answer has left, or nobody is there to take it.
    #[inline]
    fn send(&mut self, index: usize) -> bool {
        let Connected { connection, caller } = &mut self.callers[index];
        let answers = &mut caller.reply.answers;
        let (endpoint, id) = (&mut self.endpoint, *connection);
        let max_bytes = endpoint.max_message_bytes();
        let sent = answers.parked.progress(max_bytes, |head, rest| {
            endpoint.try_send(id, head, rest).map(|sent| match sent {
                Sent::Sent => beeline_window::Sent::Sent,
                Sent::Full => beeline_window::Sent::Full,
            })
        });
        // A connection that has ended is reported by a poll.
        sent.unwrap_or_else(|_| {
            answers.parked.forget();
            true
        })
    }

    #[cold]
    fn send_waiting(&mut self) {
        for index in 0..self.callers.len() {
            if self.callers[index].caller.reply.answers.parked.is_active() && self.send(index) {
                self.endpoint.resume(self.callers[index].connection);
                self.waiting -= 1;
            }
        }
    }
}
