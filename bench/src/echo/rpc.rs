//! Our calls between processes (`host/rpc` over windows), as one side of an echo.
//!
//! The server is one worker with a handler that reads the request where it lies and sends its bytes back; both sides poll.
//! It serves by count, so that it does not spin while rivals are measured.

use std::hint::spin_loop;

use beeline_bench_echo::{EchoClient, EchoServer, Failure};
use beeline_domain::{Domain, DomainConfig};
use beeline_rpc::{Client, Method, Replied, Reply, Request, Service, Started, Transport, shm};

use beeline_session::PrivateDomain;

/// What the server offers in its domain.
const NAME: &str = "echo";
pub(crate) const ECHO: Method = Method(1);
/// Lines of a window unless it is about them: what both sides have without being told.
pub(super) const USUAL_LINES: u32 = 1024;
/// Longest request there is.
pub(super) const MOST_BYTES: usize = 4096;

/// The side that answers.
pub(super) struct RpcServer {
    worker: shm::Worker,
    // Before the domain it is in.
    _server: shm::Server,
    domain: PrivateDomain,
}

impl RpcServer {
    /// Offers the echo in a domain of its own; request windows have so many lines.
    pub(super) fn offer(request_lines: u32) -> Result<Self, Failure> {
        let private = PrivateDomain::new()?;
        let domain = Domain::open(private.config())?;
        let options = shm::ServerOptions { request_lines, ..shm::ServerOptions::default() };
        let (server, mut workers) = shm::Server::offer(&domain, NAME, options)?;
        let worker = workers.pop().ok_or("a server without a worker")?;
        Ok(RpcServer { worker, _server: server, domain: private })
    }

    /// Returns the address that a client connects to.
    pub(super) fn address(&self) -> &str {
        self.domain.name()
    }
}

impl EchoServer for RpcServer {
    fn begin(&mut self, _: usize) -> Result<(), Failure> {
        Ok(())
    }

    fn serve(&mut self, trips: u64) -> Result<(), Failure> {
        // Made once: clearing it would take longer than a call.
        let mut bytes = [0; MOST_BYTES];
        let mut echo = |request: &mut Request<'_>, reply: Reply<'_>| -> Replied {
            let count = request.copy_out(&mut bytes);
            reply.send(&bytes[..count])
        };
        answer(&mut self.worker, &mut echo, trips);
        Ok(())
    }
}

/// Answers so many requests, polling, and ends when every answer has left.
pub(crate) fn answer(worker: &mut shm::Worker, service: &mut impl Service, requests: u64) {
    let mut left = requests;
    // The last answers may wait for room that the client gives back only after the last request.
    while left > 0 || worker.has_unsent() {
        let taken = worker.poll(service);
        if taken == 0 {
            spin_loop();
        }
        left = left.saturating_sub(taken as u64);
    }
}

/// The side that asks.
pub(crate) struct RpcClient(pub(crate) shm::Client);

impl RpcClient {
    /// Connects to the server at this address; its reply windows have so many lines.
    ///
    /// # Errors
    /// There is none, or it refuses.
    pub(crate) fn connect(address: &str, reply_lines: u32) -> Result<Self, Failure> {
        let domain = Domain::open(&DomainConfig::named(address.to_owned()))?;
        let options = shm::ClientOptions { reply_lines, ..shm::ClientOptions::default() };
        Ok(RpcClient(shm::Client::connect(&domain, NAME, options)?))
    }
}

impl EchoClient for RpcClient {
    fn begin(&mut self, _: usize) -> Result<(), Failure> {
        Ok(())
    }

    #[inline]
    fn trip(&mut self, request: &[u8], answer: &mut [u8]) -> Result<(), Failure> {
        trip(&mut self.0, ECHO, request, answer)
    }
}

/// Makes one call, over whatever transport, and polls until it ends.
#[inline]
pub(super) fn trip<T: Transport>(
    client: &mut Client<T>,
    method: Method,
    request: &[u8],
    answer: &mut [u8],
) -> Result<(), Failure> {
    let Started::Call(call) = client.start(method, request, None)? else {
        return Err("there was no room for the only request".into());
    };
    loop {
        if let Some(completion) = client.poll() {
            let count = completion.result?.copy_out(answer);
            if completion.id != call || count != answer.len() {
                return Err(format!("{count} bytes of {:?}, not of {call:?}", completion.id).into());
            }
            return Ok(());
        }
        spin_loop();
    }
}
