//! Workers: a thread's share of a server, and the handler of C that answers.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use beeline_rpc::shm::Worker;
use beeline_rpc::{Replied, Reply, Request, WaitPolicy};

use crate::edge::{Failure, Outcome, checked, edge, put_if_wanted};
use crate::exchange::{Handler, beeline_rpc_request};
use crate::gate::{Gate, Pass};
use crate::status::OK;

/// Longest sleep that is asked of a worker at once.
const MAX_SLEEP: Duration = Duration::from_secs(3600);

/// One thread's share of a server.
pub struct beeline_rpc_worker {
    gate: Gate,
    worker: UnsafeCell<Worker>,
    /// What handlers are given; from `Box::into_raw`, freed with the worker.
    request: Option<NonNull<beeline_rpc_request>>,
    policy: WaitPolicy,
    stop: Arc<AtomicBool>,
}

impl beeline_rpc_worker {
    /// A handle for C, which closes it.
    pub(crate) fn new(worker: Worker, policy: WaitPolicy, stop: Arc<AtomicBool>) -> *mut Self {
        let (gate, worker) = (Gate::default(), UnsafeCell::new(worker));
        let handle =
            Box::into_raw(Box::new(beeline_rpc_worker { gate, worker, request: None, policy, stop }));
        // SAFETY: made above, so not NULL and there.
        let gate = NonNull::from(unsafe { &(*handle).gate });
        let request = NonNull::from(Box::leak(Box::new(beeline_rpc_request::new(gate))));
        // SAFETY: made above, and nobody else has it yet.
        unsafe { (*handle).request = Some(request) };
        handle
    }
}

impl Drop for beeline_rpc_worker {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            // SAFETY: from `Box::leak` in `new`; no handler runs, since nobody is inside.
            drop(unsafe { Box::from_raw(request.as_ptr()) });
        }
    }
}

/// Passes the gate of a worker.
///
/// # Safety
/// NULL, or a worker that is not closed.
#[inline(always)]
unsafe fn enter<'a>(
    worker: *const beeline_rpc_worker,
) -> Outcome<(Pass<'a>, &'a mut Worker, &'a beeline_rpc_worker)> {
    // SAFETY: the caller's.
    let handle: &'a beeline_rpc_worker = unsafe { checked(worker, "worker") }?;
    let pass = handle.gate.enter()?;
    // SAFETY: the pass is the only one until it is dropped, which every function does after its last use of this. A
    // handler, which runs meanwhile, does not come past the gate.
    Ok((pass, unsafe { &mut *handle.worker.get() }, handle))
}

/// The handler of C as a service.
///
/// # Safety
/// `handler` is what C says it is. The service is used only while the worker whose request this is has been entered.
#[inline(always)]
unsafe fn service(
    handle: &beeline_rpc_worker,
    handler: Option<Handler>,
    context: *mut c_void,
) -> Outcome<impl FnMut(&mut Request<'_>, Reply<'_>) -> Replied> {
    let handler = handler.ok_or_else(|| Failure::invalid("handler is NULL"))?;
    let slot = handle.request.expect("a worker that C has was given its request");
    Ok(move |request: &mut Request<'_>, reply: Reply<'_>| {
        // SAFETY: the worker has been entered by this thread, so nobody else has the request; the handler is C's word.
        unsafe { beeline_rpc_request::serve(slot, request, reply, handler, context) }
    })
}

/// # Safety
/// `worker` is NULL or a worker that is not closed, `handler` NULL or a function that may be called with `context`;
/// `answered` is NULL or memory of a number.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_worker_poll(
    worker: *const beeline_rpc_worker,
    handler: Option<Handler>,
    context: *mut c_void,
    answered: *mut usize,
) -> c_int {
    edge("beeline_rpc_worker_poll", || {
        // SAFETY: the caller's.
        let (_pass, worker, handle) = unsafe { enter(worker) }?;
        // SAFETY: the caller's; the pass is kept until the end.
        let mut service = unsafe { service(handle, handler, context) }?;
        let count = worker.poll(&mut service);
        // SAFETY: the caller's.
        unsafe { put_if_wanted(answered, count) };
        Ok(OK)
    })
}

/// # Safety
/// As before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_worker_run(
    worker: *const beeline_rpc_worker,
    handler: Option<Handler>,
    context: *mut c_void,
) -> c_int {
    edge("beeline_rpc_worker_run", || {
        // SAFETY: the caller's.
        let (_pass, worker, handle) = unsafe { enter(worker) }?;
        // SAFETY: the caller's; the pass is kept until the end.
        let mut service = unsafe { service(handle, handler, context) }?;
        worker.run(&mut service, &handle.policy, &handle.stop);
        Ok(OK)
    })
}

/// # Safety
/// `worker` as before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_worker_wait(worker: *const beeline_rpc_worker, timeout_ns: u64) -> c_int {
    edge("beeline_rpc_worker_wait", || {
        // SAFETY: the caller's.
        let (_pass, worker, _) = unsafe { enter(worker) }?;
        if timeout_ns > 0 {
            worker.sleep(Duration::from_nanos(timeout_ns).min(MAX_SLEEP));
        }
        Ok(OK)
    })
}

/// # Safety
/// `worker` as before; `clients` is NULL or memory of a number.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_worker_clients(
    worker: *const beeline_rpc_worker,
    clients: *mut usize,
) -> c_int {
    edge("beeline_rpc_worker_clients", || {
        // SAFETY: the caller's.
        let (_pass, worker, _) = unsafe { enter(worker) }?;
        // SAFETY: the caller's.
        unsafe { put_if_wanted(clients, worker.clients()) };
        Ok(OK)
    })
}

/// # Safety
/// `worker` as before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_worker_release(worker: *const beeline_rpc_worker) -> c_int {
    edge("beeline_rpc_worker_release", || {
        // SAFETY: the caller's.
        unsafe { checked(worker, "worker") }?.gate.release()?;
        Ok(OK)
    })
}

/// # Safety
/// `worker` is NULL or memory of a pointer that is NULL or a worker that nobody uses afterwards.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_worker_close(worker: *mut *mut beeline_rpc_worker) -> c_int {
    edge("beeline_rpc_worker_close", || {
        // SAFETY: the caller's.
        let Some(place) = (unsafe { worker.as_mut() }) else { return Ok(OK) };
        if place.is_null() {
            return Ok(OK);
        }
        // SAFETY: not NULL, and not closed: closing makes the caller's pointer NULL.
        let (pass, ..) = unsafe { enter(*place) }?;
        drop(pass);
        let handle = core::mem::replace(place, core::ptr::null_mut());
        // SAFETY: from `Box::into_raw` in `new`. It was this thread's and nobody was inside, and nobody comes in
        // afterwards, by this function's contract.
        drop(unsafe { Box::from_raw(handle) });
        Ok(OK)
    })
}
