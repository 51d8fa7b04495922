//! Servers: a name, and its workers until C takes them.

use core::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use beeline_ffi::{Failure, Handle, HandleVariable, Kind, Options, Out, Shared, Text, edge};
use beeline_rpc::WaitPolicy;
use beeline_rpc::shm::{Server, Worker};

use crate::domain::{DOMAINS, beeline_rpc_domain};
use crate::options::{self, beeline_rpc_server_options};
use crate::status::{self, OK};
use crate::worker::beeline_rpc_worker;

/// A name under which calls are answered. Any thread may use it.
pub struct beeline_rpc_server {
    server: Server,
    /// Those that C has not taken.
    workers: Mutex<Vec<Option<Worker>>>,
    policy: WaitPolicy,
    stop: Arc<AtomicBool>,
}

impl Kind for beeline_rpc_server {
    const NAME: &'static str = "server";
    const TAG: u8 = 0x25;
}

static SERVERS: Shared<beeline_rpc_server> = Shared::new();

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_server_offer(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    options: Options<'_, beeline_rpc_server_options<'_>>,
    server: Out<'_, Handle<beeline_rpc_server>>,
) -> c_int {
    edge("beeline_rpc_server_offer", || {
        server.put(Handle::NULL, "server")?;
        let domain = DOMAINS.get(domain)?;
        let name = name.read("name")?;
        let (options, policy) = options::server(&options)?;
        let domain = domain.opened()?;
        let (offered, workers) =
            Server::offer(domain, name, options).map_err(|error| status::refused(&error))?;
        let workers = Mutex::new(workers.into_iter().map(Some).collect());
        let stop = Arc::new(AtomicBool::new(false));
        let offered = beeline_rpc_server { server: offered, workers, policy, stop };
        server.put(SERVERS.insert(offered)?, "server")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_server_worker(
    server: Handle<beeline_rpc_server>,
    index: u32,
    worker: Out<'_, Handle<beeline_rpc_worker>>,
) -> c_int {
    edge("beeline_rpc_server_worker", || {
        worker.put(Handle::NULL, "worker")?;
        let server = SERVERS.get(server)?;
        let mut workers = server.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = workers.len();
        let taken = match workers.get_mut(index as usize) {
            None => {
                let name = server.server.name();
                return Err(Failure::invalid(format!(
                    "worker {index} of the {count} that server {name} has"
                )));
            }
            Some(place) => place.take(),
        };
        let taken = taken.ok_or_else(|| Failure::invalid(format!("worker {index} is taken already")))?;
        let handle = beeline_rpc_worker::insert(taken, server.policy, Arc::clone(&server.stop))?;
        worker.put(handle, "worker")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_server_stop(server: Handle<beeline_rpc_server>) -> c_int {
    // A signal handler may call it: nothing here waits or allocates.
    // Relaxed: nothing is read by it but that it is time to stop.
    let stopped = SERVERS.look(server, |server| server.stop.store(true, Ordering::Relaxed));
    if stopped.is_some() { OK } else { status::INVALID }
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_server_close(server: HandleVariable<'_, beeline_rpc_server>) -> c_int {
    edge("beeline_rpc_server_close", || {
        if let Some(closed) = SERVERS.close(&server)? {
            // Relaxed: as in `beeline_rpc_server_stop`. Workers that run return.
            closed.stop.store(true, Ordering::Relaxed);
        }
        Ok(OK)
    })
}
