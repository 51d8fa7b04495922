//! A server: a name, and the threads that answer under it.

use std::sync::Arc;

use beeline_domain::{Domain, Offer, OfferOptions};
use beeline_spec::formats::RPC_MAX_WORKERS;

use super::options::{ServerOptions, check_lines};
use super::registry::{Registry, Rendezvous};
use super::worker::Worker;
use crate::error::RpcError;

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
            admissions: options.admissions.clone(),
            max_connections: options.max_clients,
            ..OfferOptions::default()
        };
        let registry = Arc::new(Registry::new(options, domain.disposer()));
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
