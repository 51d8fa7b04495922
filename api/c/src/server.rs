//! Servers: a name, and its workers until C takes them.

use core::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use beeline_rpc::WaitPolicy;
use beeline_rpc::shm::{Server, Worker};

use crate::domain::beeline_rpc_domain;
use crate::edge::{Failure, checked, edge, put, text_of};
use crate::options::{self, beeline_rpc_server_options};
use crate::status::OK;
use crate::worker::beeline_rpc_worker;

/// A name under which calls are answered. Any thread may use it.
pub struct beeline_rpc_server {
    server: Server,
    /// Those that C has not taken.
    workers: Mutex<Vec<Option<Worker>>>,
    policy: WaitPolicy,
    stop: Arc<AtomicBool>,
}

/// # Safety
/// `domain` is NULL or open, `name` NULL or a text, `options` as `options::server`, `server` NULL or memory of a pointer.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_server_offer(
    domain: *const beeline_rpc_domain,
    name: *const c_char,
    options: *const beeline_rpc_server_options,
    server: *mut *mut beeline_rpc_server,
) -> c_int {
    edge("beeline_rpc_server_offer", || {
        // SAFETY: the caller's.
        unsafe { put(server, core::ptr::null_mut(), "server") }?;
        // SAFETY: the caller's.
        let domain = unsafe { checked(domain, "domain") }?;
        // SAFETY: the caller's.
        let name = unsafe { text_of(name, "name") }?;
        // SAFETY: the caller's.
        let (options, policy) = unsafe { options::server(options) }?;
        let (offered, workers) =
            Server::offer(&domain.domain, name, options).map_err(|error| Failure::refused(&error))?;
        let workers = Mutex::new(workers.into_iter().map(Some).collect());
        let stop = Arc::new(AtomicBool::new(false));
        let handle = Box::into_raw(Box::new(beeline_rpc_server { server: offered, workers, policy, stop }));
        // SAFETY: the caller's.
        unsafe { put(server, handle, "server") }?;
        Ok(OK)
    })
}

/// # Safety
/// `server` is NULL or a server that is not closed, `worker` NULL or memory of a pointer.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_server_worker(
    server: *const beeline_rpc_server,
    index: u32,
    worker: *mut *mut beeline_rpc_worker,
) -> c_int {
    edge("beeline_rpc_server_worker", || {
        // SAFETY: the caller's.
        unsafe { put(worker, core::ptr::null_mut(), "worker") }?;
        // SAFETY: the caller's.
        let server = unsafe { checked(server, "server") }?;
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
        let handle = beeline_rpc_worker::new(taken, server.policy, Arc::clone(&server.stop));
        // SAFETY: the caller's.
        unsafe { put(worker, handle, "worker") }?;
        Ok(OK)
    })
}

/// # Safety
/// `server` is NULL or a server that is not closed.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_server_stop(server: *const beeline_rpc_server) -> c_int {
    // Nothing here locks or allocates: a signal handler may call it.
    // SAFETY: the caller's.
    let Some(server) = (unsafe { server.as_ref() }) else { return crate::status::INVALID };
    // Relaxed: nothing is read by it but that it is time to stop.
    server.stop.store(true, Ordering::Relaxed);
    OK
}

/// # Safety
/// `server` is NULL or memory of a pointer that is NULL or a server that nobody uses meanwhile or afterwards.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_server_close(server: *mut *mut beeline_rpc_server) -> c_int {
    edge("beeline_rpc_server_close", || {
        // SAFETY: the caller's.
        if let Some(handle) = unsafe { server.as_mut() }
            && !handle.is_null()
        {
            let handle = core::mem::replace(handle, core::ptr::null_mut());
            // SAFETY: not NULL, so from `Box::into_raw` in `beeline_rpc_server_offer`, and not closed before: closing
            // makes the caller's pointer NULL.
            let closed = unsafe { Box::from_raw(handle) };
            // Relaxed: as in `beeline_rpc_server_stop`. Workers that run return.
            closed.stop.store(true, Ordering::Relaxed);
        }
        Ok(OK)
    })
}
