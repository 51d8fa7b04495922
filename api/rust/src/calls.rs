//! Calls, as a domain offers and makes them.

use std::time::Duration;

use beeline_mmio::StoreKernel;
use beeline_rpc::shm::{Client, Server, Worker};
use beeline_window::WaitPolicy;

use crate::{Admissions, ConnectError, Domain, OfferError, Target, Token};

/// How calls are answered: by one worker, from 512 lines (32 KiB) of ordinary memory for each client, 1024 clients of this user
/// at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ServerOptions(beeline_rpc::shm::ServerOptions);

impl ServerOptions {
    /// One worker, 512 lines of requests for each client, at most 1024 clients, all of this user.
    pub fn new() -> Self {
        Self::default()
    }

    /// Workers that share every client's requests, 1 to 64. One alone claims requests without an atomic operation.
    pub fn workers(mut self, workers: usize) -> Self {
        self.0.workers = workers;
        self
    }

    /// Lines of each client's request window, a power of two from 16 to 131,072.
    pub fn request_lines(mut self, lines: u32) -> Self {
        self.0.request_lines = lines;
        self
    }

    /// Lines that a client's reply windows may have at most, a power of two from 16 to 131,072.
    pub fn max_reply_lines(mut self, lines: u32) -> Self {
        self.0.max_reply_lines = lines;
        self
    }

    /// Clients at the same time.
    pub fn max_clients(mut self, clients: usize) -> Self {
        self.0.max_clients = clients;
        self
    }

    /// How answers are stored; by cached stores unless another kernel is named.
    pub fn kernel(mut self, kernel: StoreKernel) -> Self {
        self.0.kernel = kernel;
        self
    }

    /// Backs request windows with huge pages that the administrator has reserved. Clients must accept them too
    /// ([`ClientOptions::huge_pages`]).
    pub fn huge_pages(mut self, huge: bool) -> Self {
        self.0.memory.huge_pages = huge;
        self
    }

    /// Locks request windows into RAM.
    pub fn locked(mut self, locked: bool) -> Self {
        self.0.memory.locked = locked;
        self
    }

    /// Users besides the domain's owner who may call. They open the domain with [`Domain::open_foreign`].
    pub fn allowed_uids(mut self, uids: impl IntoIterator<Item = u32>) -> Self {
        self.0.allowed_uids = uids.into_iter().collect();
        self
    }

    /// Who may call besides, because it shares a connection with this process.
    pub fn admissions(mut self, admissions: &Admissions) -> Self {
        self.0.admissions = Some(admissions.0.clone());
        self
    }
}

/// How calls are made: 1024 at the same time, with 512 lines (32 KiB) for answers; it looks, then sleeps. The server must be
/// there already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ClientOptions {
    below: beeline_rpc::shm::ClientOptions,
    timeout: Option<Duration>,
}

impl ClientOptions {
    /// 1024 outstanding calls, 512 lines of answers, and a server that must be there already.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls that may be outstanding, a power of two up to 32,768.
    pub fn max_outstanding(mut self, calls: u32) -> Self {
        self.below.max_outstanding = calls;
        self
    }

    /// Lines of each reply window, a power of two from 16 to 131,072.
    pub fn reply_lines(mut self, lines: u32) -> Self {
        self.below.reply_lines = lines;
        self
    }

    /// How requests are stored; by cached stores unless another kernel is named.
    pub fn kernel(mut self, kernel: StoreKernel) -> Self {
        self.below.kernel = kernel;
        self
    }

    /// Accepts a request window of huge pages. Only from a server that you trust: it could take them back, which would stop
    /// this program.
    pub fn huge_pages(mut self, accepted: bool) -> Self {
        self.below.memory.huge_pages = accepted;
        self
    }

    /// How calls wait for their answers.
    pub fn wait(mut self, policy: WaitPolicy) -> Self {
        self.below.policy = policy;
        self
    }

    /// How long to wait for a server that is not there yet; not at all by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl Domain {
    /// Offers calls under `name`: the server, to be kept, and one worker, to be polled or given a thread.
    ///
    /// # Errors
    /// Somebody offers the name already.
    pub fn server(&self, name: &str) -> Result<(Server, Worker), OfferError> {
        let (server, mut workers) = self.server_with(name, ServerOptions::new())?;
        let worker = workers.pop().expect("a server has a worker unless asked for more");
        Ok((server, worker))
    }

    /// Offers calls with options, as [`Domain::server`] does with the default ones; the workers share every client's requests.
    ///
    /// # Errors
    /// Somebody offers the name already; an option is out of bounds.
    pub fn server_with(
        &self,
        name: &str,
        options: ServerOptions,
    ) -> Result<(Server, Vec<Worker>), OfferError> {
        Server::offer(&self.inner, name, options.0)
            .map_err(|error| OfferError::server(Target::Server(name.to_owned()), error))
    }

    /// Becomes a client of the server that offers calls under `name`.
    ///
    /// # Errors
    /// Nobody offers it.
    pub fn client(&self, name: &str) -> Result<Client, ConnectError> {
        self.client_with(name, ClientOptions::new())
    }

    /// Becomes a client of a server that may not be there yet: waits for it, for at most `timeout`.
    ///
    /// # Errors
    /// [`ConnectError::TimedOut`]: nobody offered it in time.
    pub fn client_timeout(&self, name: &str, timeout: Duration) -> Result<Client, ConnectError> {
        self.client_with(name, ClientOptions::new().timeout(timeout))
    }

    /// Becomes a client with options, as [`Domain::client`] does with the default ones.
    ///
    /// # Errors
    /// Nobody offers it; an option is out of bounds.
    pub fn client_with(&self, name: &str, options: ClientOptions) -> Result<Client, ConnectError> {
        let ClientOptions { mut below, timeout } = options;
        let client = match timeout {
            None => Client::connect(&self.inner, name, below),
            Some(timeout) => {
                below.timeout = timeout;
                Client::connect_awaiting(&self.inner, name, below)
            }
        };
        client.map_err(|error| cannot_call(name, error, timeout))
    }

    /// Becomes a client of the process with which `token` was exchanged; nothing is sent to another one. The domain is that of
    /// [`Token::uid`] ([`Domain::open_foreign`]). A server that is lost is not looked for again: whoever serves then is another
    /// process, and a new client has a new token.
    ///
    /// # Errors
    /// As [`Domain::client_with`]; the server is another process, or the token was used before.
    pub fn client_proving(
        &self,
        name: &str,
        token: Token,
        options: ClientOptions,
    ) -> Result<Client, ConnectError> {
        let ClientOptions { below, timeout } = options;
        let connect = |left: Duration| {
            let below = match timeout {
                None => below.clone(),
                Some(_) => beeline_rpc::shm::ClientOptions { timeout: left, ..below.clone() },
            };
            Client::connect_proving(&self.inner, &token.0, name, below)
        };
        let client = self.inner.retry_until_offered(timeout.unwrap_or_default(), connect);
        client.map_err(|error| cannot_call(name, error, timeout))
    }
}

fn cannot_call(name: &str, error: beeline_rpc::RpcError, waited: Option<Duration>) -> ConnectError {
    ConnectError::client(Target::Server(name.to_owned()), error).after(waited.unwrap_or_default())
}
