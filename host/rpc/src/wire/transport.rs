//! The transport of a client whose server is behind an up-link: a datagram connection.

use std::time::Duration;

use beeline_datagram::{
    Address, Clock, Config, ConnectionId, Endpoint, EndpointError, Event, SendError, TickClock,
};
use beeline_ethernet::Uplink;
use beeline_window::{Sent, WaitPolicy};
use rustix::event::{PollFd, PollFlags, poll};

use crate::calls::MAX_OUTSTANDING;
use crate::deadline::Deadline;
use crate::error::{Loss, RpcError};
use crate::outgoing::send_message;
use crate::transport::Transport;

/// Longest sleep on an up-link that cannot wake us.
const BLIND_SLEEP: Duration = Duration::from_micros(50);

/// A datagram connection to a server.
#[derive(Debug)]
pub struct WireTransport<U, C = TickClock> {
    endpoint: Endpoint<U, C>,
    remote: Address,
    /// None after it was lost, until the next attempt.
    connection: Option<ConnectionId>,
    is_open: bool,
    /// A message that a look without a poll has found; it lies in the endpoint until the next poll.
    has_message: bool,
    /// Whether such a look has seen the connection open: there is room for calls now.
    has_opened: bool,
    /// A loss that such a look has found.
    lost: Option<Loss>,
}

impl<U: Uplink> crate::Client<WireTransport<U>> {
    /// A client of the server that listens at `remote`, over this up-link. It does not wait for the connection: calls
    /// find no room until it is open, and end when it cannot be opened.
    ///
    /// # Errors
    /// An option is out of bounds, or the endpoint cannot be set up.
    pub fn open(
        uplink: U,
        config: Config,
        remote: Address,
        max_outstanding: u32,
        policy: WaitPolicy,
    ) -> Result<Self, RpcError> {
        let endpoint = Endpoint::new(uplink, config).map_err(RpcError::Endpoint)?;
        Self::on_endpoint(endpoint, remote, max_outstanding, policy)
    }
}

impl<U: Uplink, C: Clock> crate::Client<WireTransport<U, C>> {
    /// As [`crate::wire::Client::open`], on an endpoint that is there already; it must have no other connections.
    ///
    /// # Errors
    /// An option is out of bounds, or there is no station of this address.
    pub fn on_endpoint(
        mut endpoint: Endpoint<U, C>,
        remote: Address,
        max_outstanding: u32,
        policy: WaitPolicy,
    ) -> Result<Self, RpcError> {
        if !max_outstanding.is_power_of_two() || max_outstanding > MAX_OUTSTANDING {
            let (option, bounds) = ("max_outstanding", "a power of two up to 32768");
            return Err(RpcError::Option { option, value: u64::from(max_outstanding), bounds });
        }
        let connection = endpoint.connect(remote).map_err(RpcError::Station)?;
        let connection = Some(connection);
        let transport = WireTransport {
            endpoint,
            remote,
            connection,
            is_open: false,
            has_message: false,
            has_opened: false,
            lost: None,
        };
        Ok(crate::Client::over(transport, max_outstanding, policy))
    }
}

impl<U: Uplink, C: Clock> WireTransport<U, C> {
    /// The endpoint, for its counters and its up-link's.
    pub fn endpoint(&self) -> &Endpoint<U, C> {
        &self.endpoint
    }

    /// The endpoint, to be changed.
    pub fn endpoint_mut(&mut self) -> &mut Endpoint<U, C> {
        &mut self.endpoint
    }

    /// Whether the connection is open.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Polls once; `true` when a message of the server is in the endpoint's hands.
    #[inline]
    fn look(&mut self) -> Result<bool, Loss> {
        match self.endpoint.poll() {
            Ok(None) => Ok(false),
            Ok(Some(Event::Message { id, .. })) => Ok(Some(id) == self.connection),
            Ok(Some(Event::Opened { id, .. })) => {
                if Some(id) == self.connection {
                    (self.is_open, self.has_opened) = (true, true);
                }
                Ok(false)
            }
            Ok(Some(Event::Closed { id, why, .. })) if Some(id) == self.connection => {
                self.connection = None;
                self.is_open = false;
                Err(Loss::Down { why: why.to_string() })
            }
            Ok(Some(Event::Closed { .. })) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// As [`WireTransport::look`]; a loss is kept for [`Transport::tend`].
    #[inline]
    fn look_and_keep(&mut self) -> bool {
        self.look().unwrap_or_else(|loss| {
            self.lost = Some(loss);
            false
        })
    }
}

#[cold]
fn failed(error: EndpointError) -> Loss {
    Loss::Down { why: error.to_string() }
}

impl<U: Uplink, C: Clock> Transport for WireTransport<U, C> {
    type Message<'a>
        = &'a [u8]
    where
        U: 'a,
        C: 'a;

    fn max_message_bytes(&self) -> usize {
        self.endpoint.max_message_bytes()
    }

    fn try_send(&mut self, head: &[u8], rest: &[u8]) -> Result<Sent, Loss> {
        let Some(id) = self.connection else { return Ok(Sent::Full) };
        match self.endpoint.try_send(id, head, rest) {
            Ok(beeline_datagram::Sent::Sent) => Ok(Sent::Sent),
            // Its end is reported by a poll, with the reason.
            Ok(beeline_datagram::Sent::Full) | Err(SendError::NotOpen { .. }) => Ok(Sent::Full),
            Err(error) => Err(Loss::Down { why: error.to_string() }),
        }
    }

    fn try_send_prefixed(&mut self, word: u64, bytes: &[u8]) -> Result<Sent, Loss> {
        send_message([word], bytes, |head, rest| self.try_send(head, rest))
    }

    #[inline]
    fn poll(&mut self) -> Option<&[u8]> {
        self.has_opened = false;
        let has_message = core::mem::take(&mut self.has_message) || self.look_and_keep();
        has_message.then(|| self.endpoint.message())
    }

    /// What is left of it: clocks of two hosts have nothing to do with each other.
    fn encode_deadline(&self, deadline: Deadline) -> u64 {
        u64::try_from(deadline.remaining().as_nanos()).unwrap_or(u64::MAX)
    }

    fn cancel(&mut self, _number: u32, _slot: usize) {}

    fn uncancel(&mut self, _slot: usize) {}

    fn tend(&mut self) -> Result<(), Loss> {
        self.lost.take().map_or(Ok(()), Err)
    }

    fn reconnect(&mut self) -> bool {
        if core::mem::take(&mut self.is_open)
            && let Some(id) = self.connection.take()
        {
            // It broke the protocol: what it still sends is of no use.
            self.endpoint.abort(id);
        }
        (self.has_message, self.lost) = (false, None);
        if self.connection.is_none() {
            // "Exists" until the end of the old one has been reported.
            self.connection = self.endpoint.connect(self.remote).ok();
        }
        // A message before the connection is known to be open cannot be: answers follow requests.
        let _ = self.look();
        self.is_open
    }

    fn prepare_sleep(&mut self) {}

    fn has_news(&mut self) -> bool {
        self.has_message = self.has_message || self.look_and_keep();
        self.has_message || self.has_opened || self.lost.is_some()
    }

    fn park(&mut self, limit: Duration) {
        let Some(descriptor) = self.endpoint.uplink().descriptor() else {
            std::thread::sleep(limit.min(BLIND_SLEEP));
            return;
        };
        // Acknowledgements and repeats are due whether a frame comes or not; a millisecond is the least that the call
        // can wait.
        let timeout =
            rustix::time::Timespec { tv_sec: 0, tv_nsec: limit.min(BLIND_SLEEP * 10).as_nanos() as i64 };
        let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
        // Woken, timed out or interrupted: the caller looks again.
        let _ = poll(&mut descriptors, Some(&timeout));
    }

    fn cancel_sleep(&mut self) {}
}
