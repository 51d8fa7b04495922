//! Our own store (`host/rpc/kv`), called over windows: a server process with one polling worker, and a client that begins
//! calls and takes their ends.
//!
//! The server answers as many requests as it is told of and then sleeps, so that it does not spin while rivals are
//! measured. It is an echo role of this program ([`KV`]), because its life is the same.

use std::hint::spin_loop;

use beeline_bench_echo::{EchoServer, Failure, Job};
use beeline_domain::{Domain, DomainConfig};
use beeline_kv::{KvError, KvService};
use beeline_rpc::{Started, shm};

use super::{Key, Keys, KvClient, VALUE_BYTES, Value};
use crate::BenchError;
use crate::echo::{KV, Launch, ServerHalf, answer};
use crate::rpc_rate::PIPELINE_LINES;
use beeline_session::{PrivateDomain, Program};

/// Name in figures.
pub const NAME: &str = "beeline kv";
/// What the server offers in its domain.
pub const OFFER: &str = "kv";

/// The side that answers.
pub(crate) struct Store {
    worker: shm::Worker,
    service: KvService,
    // Before the domain it is in.
    _server: shm::Server,
    domain: PrivateDomain,
}

impl Store {
    /// Offers an empty store in a domain of its own, with so much memory if it is said how much.
    pub(crate) fn offer(max_memory_mib: Option<u32>, is_preallocated: bool) -> Result<Self, Failure> {
        let private = PrivateDomain::new()?;
        let domain = Domain::open(private.config())?;
        let options = shm::ServerOptions { request_lines: PIPELINE_LINES, ..shm::ServerOptions::default() };
        let (server, mut workers) = shm::Server::offer(&domain, OFFER, options)?;
        let worker = workers.pop().ok_or("a server without a worker")?;
        let mut store = beeline_kv::KvOptions { is_preallocated, ..beeline_kv::KvOptions::default() };
        if let Some(mib) = max_memory_mib {
            store.max_memory_bytes = u64::from(mib) << 20;
        }
        let service = KvService::open(1, store)?.pop().ok_or("a store without a thread")?;
        Ok(Store { worker, service, _server: server, domain: private })
    }

    /// Returns the address that a client connects to.
    pub(crate) fn address(&self) -> &str {
        self.domain.name()
    }
}

impl EchoServer for Store {
    fn begin(&mut self, _: usize) -> Result<(), Failure> {
        Ok(())
    }

    fn serve(&mut self, trips: u64) -> Result<(), Failure> {
        answer(&mut self.worker, &mut self.service, trips);
        Ok(())
    }
}

/// A client of a store of its own.
pub struct OwnClient {
    // Before its server.
    client: beeline_kv::KvClient,
    server: ServerHalf,
}

impl OwnClient {
    /// Starts a store on a core, connects to it and stores all keys.
    ///
    /// # Errors
    /// [`BenchError::Rival`]: it cannot be started, met or filled.
    pub fn start(program: &Program, core: usize, keys: &Keys) -> Result<Self, BenchError> {
        let mut server = ServerHalf::start(&Launch::role(NAME, program, KV), core)?;
        // A client asks what it has met.
        server.begin(job(1))?;
        let domain =
            Domain::open(&DomainConfig::named(server.address().to_owned())).map_err(|e| failed(&e))?;
        let options = shm::ClientOptions { reply_lines: PIPELINE_LINES, ..shm::ClientOptions::default() };
        let client = beeline_kv::KvClient::connect(&domain, OFFER, options);
        let mut client = client.map_err(|error| failed(&error))?;
        server.finish()?;
        server.begin(job(keys.pairs().count() as u64))?;
        for (key, value) in keys.pairs() {
            client.set(beeline_kv::Key::new(*key), value, None).map_err(|error| failed(&error))?;
        }
        server.finish()?;
        Ok(OwnClient { client, server })
    }
}

impl KvClient for OwnClient {
    fn begin(&mut self, gets: u64) -> Result<(), BenchError> {
        self.server.begin(job(gets))
    }

    fn end(&mut self) -> Result<(), BenchError> {
        self.server.finish()
    }

    fn ask(&mut self, keys: &[Key]) -> Result<(), BenchError> {
        for key in keys {
            while start(&mut self.client, key)? == Started::Full {
                spin_loop();
            }
        }
        Ok(())
    }

    fn take(&mut self, keys: usize, values: &mut dyn FnMut(&Value)) -> Result<(), BenchError> {
        let mut left = keys;
        while left > 0 {
            let Some(ended) = self.client.poll() else {
                spin_loop();
                continue;
            };
            let mut value = [0; VALUE_BYTES];
            match ended.result {
                Ok(Some(mut body)) if body.len() == VALUE_BYTES => body.copy_out(&mut value),
                Ok(body) => return Err(failed(&format!("{:?} bytes", body.map(|body| body.len())))),
                Err(error) => return Err(failed(&error)),
            };
            values(&value);
            left -= 1;
        }
        Ok(())
    }
}

#[inline(always)]
fn start(client: &mut beeline_kv::KvClient, key: &Key) -> Result<Started, BenchError> {
    client.start_get(beeline_kv::Key::new(*key)).map_err(|error: KvError| failed(&error))
}

fn job(requests: u64) -> Job {
    Job { bytes: VALUE_BYTES, warm_up: 0, trips: requests }
}

#[cold]
fn failed(what: &dyn std::fmt::Display) -> BenchError {
    BenchError::Rival { rival: NAME.to_owned(), what: what.to_string() }
}
