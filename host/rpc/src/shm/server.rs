//! A server: a name, and the threads that answer under it.

use std::sync::Arc;

use beeline_domain::{Domain, Offer, OfferOptions};
use beeline_mmio::{MemoryOptions, StoreKernel};
use beeline_spec::formats::RPC_MAX_WORKERS;

use super::registry::{Registry, Rendezvous};
use super::worker::Worker;
use crate::error::RpcError;

/// What a server is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Threads that share every client's requests, 1 to 64. One alone claims requests without an atomic operation.
    pub workers: usize,
    /// Lines of each client's request window, a power of two from 16. A window that is larger takes longer bursts; one
    /// that fits a core's own cache answers sooner (`docs/performance.md`).
    pub request_lines: u32,
    /// How request windows are backed.
    pub memory: MemoryOptions,
    /// How answers are stored.
    pub kernel: StoreKernel,
    /// Clients at the same time.
    pub max_clients: usize,
    /// Lines that a client's reply windows may have, each: their pages are brought in here. Together with the longest
    /// payload, twice a client and thread, it bounds what a client can make the server hold.
    pub max_reply_lines: u32,
    /// Users besides the owner who may call.
    pub allowed_uids: Vec<u32>,
}

impl Default for ServerOptions {
    /// One thread, 32 KiB a client, cached stores, 1024 clients of this user, reply windows to 1 MiB.
    fn default() -> Self {
        ServerOptions {
            workers: 1,
            request_lines: 512,
            memory: MemoryOptions::default(),
            kernel: StoreKernel::Cached,
            max_clients: 1024,
            max_reply_lines: 16 * 1024,
            allowed_uids: Vec::new(),
        }
    }
}

/// The bounds of a window that carries calls.
pub(crate) fn check_lines(option: &'static str, lines: u32) -> Result<(), RpcError> {
    if lines.is_power_of_two() && (16..=1 << 17).contains(&lines) {
        return Ok(());
    }
    let bounds = "a power of two from 16 to 131072 lines";
    Err(RpcError::Option { option, value: u64::from(lines), bounds })
}

/// A name under which calls are answered. Dropping it withdraws the name and disconnects every client; the workers then
/// find nothing to do.
#[derive(Debug)]
pub struct Server {
    offer: Offer,
}

impl Server {
    /// Offers `name` in a domain. The workers do nothing until they are polled.
    ///
    /// # Errors
    /// An option is out of bounds, or the name cannot be offered.
    pub fn offer(
        domain: &Domain,
        name: &str,
        options: ServerOptions,
    ) -> Result<(Server, Vec<Worker>), RpcError> {
        check_lines("request_lines", options.request_lines)?;
        check_lines("max_reply_lines", options.max_reply_lines)?;
        if !(1..=RPC_MAX_WORKERS).contains(&options.workers) {
            let value = options.workers as u64;
            return Err(RpcError::Option { option: "workers", value, bounds: "from 1 to 64" });
        }
        let offered = OfferOptions {
            allowed_uids: options.allowed_uids.clone(),
            max_connections: options.max_clients,
            ..OfferOptions::default()
        };
        let registry = Arc::new(Registry::new(options));
        let workers =
            (0..registry.workers()).map(|index| Worker::new(index, Arc::clone(&registry))).collect();
        let offer = domain.offer_with(name, Box::new(Rendezvous(registry)), offered)?;
        Ok((Server { offer }, workers))
    }

    /// The name offered.
    pub fn name(&self) -> &str {
        self.offer.name()
    }
}
