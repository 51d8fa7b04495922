//! Clients of servers on the same host.

use std::time::Duration;

use beeline_domain::{Armed, Domain, Event, Source, Token};

use super::opening::{Session, Target};
use super::options::ClientOptions;
use super::transport::ShmTransport;
use crate::error::RpcError;

/// A client of a server on the same host.
pub type Client = crate::Client<ShmTransport>;

impl Client {
    /// Connects to the server that offers `name`. The client finds it again when it is restarted.
    ///
    /// # Errors
    /// An option is out of bounds; nobody offers the name, or its owner refuses.
    pub fn connect(domain: &Domain, name: &str, options: ClientOptions) -> Result<Client, RpcError> {
        options.check()?;
        let timeout = options.timeout;
        Self::connect_once(Target::new(domain, name, options), timeout)
    }

    /// Connects as [`Client::connect`] does, to the process with which a token was exchanged in a connection, and proves that this one
    /// is at its other end ([`Domain::connect_proving`]). A token is good once: a server that is lost is not looked for again,
    /// whoever serves then, and a new client connects with a new token.
    ///
    /// # Errors
    /// As [`Client::connect`]; the owner is not that process, or the token is no longer good.
    pub fn connect_proving(
        domain: &Domain,
        token: &Token,
        name: &str,
        options: ClientOptions,
    ) -> Result<Client, RpcError> {
        options.check()?;
        let target = Target { is_found_again: false, ..Target::new(domain, name, options) };
        let session = Session::open_proving(&target, token, target.options.timeout)?;
        Ok(Self::new(target, session))
    }

    /// Connects as [`Client::connect`] does, and waits for a server that does not offer `name` yet. All of it takes at most
    /// [`ClientOptions::timeout`].
    ///
    /// # Errors
    /// As [`Client::connect`]; nobody offered the name in time.
    pub fn connect_awaiting(domain: &Domain, name: &str, options: ClientOptions) -> Result<Client, RpcError> {
        let timeout = options.timeout;
        Self::connect_within(domain, name, options, timeout)
    }

    /// Connects as [`Client::connect_awaiting`] does, in at most `timeout`; [`ClientOptions::timeout`] is for later connections
    /// only. For a program that has spent a part of its time on opening the domain.
    ///
    /// # Errors
    /// As [`Client::connect_awaiting`].
    pub fn connect_within(
        domain: &Domain,
        name: &str,
        options: ClientOptions,
        timeout: Duration,
    ) -> Result<Client, RpcError> {
        options.check()?;
        let target = Target::new(domain, name, options);
        domain.retry_until_offered(timeout, |left| Self::connect_once(target.clone(), left))
    }

    fn connect_once(target: Target, timeout: Duration) -> Result<Client, RpcError> {
        let session = Session::open(&target, timeout)?;
        Ok(Self::new(target, session))
    }

    fn new(target: Target, session: Session) -> Client {
        let (slots, policy) = (target.options.max_outstanding, target.options.policy);
        crate::Client::over(ShmTransport::new(target, session), slots, policy)
    }
}

/// Ready while the end of a call, or the loss or return of the server, may be there for [`Client::poll`].
impl Source for Client {
    fn listen(&mut self, event: &Event) -> Armed {
        match self.listen_with(|transport| transport.listen(event)) {
            Ok(()) => Armed::Ready,
            Err(None) => Armed::Wait,
            Err(Some(limit)) => Armed::WaitAtMost(limit),
        }
    }

    fn unlisten(&mut self) {
        self.transport_mut().unlisten();
    }
}
