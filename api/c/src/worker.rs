//! Workers: a thread's share of a server, and the handler of C that answers.

use core::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use beeline_ffi::{Caller, Failure, Handle, HandleVariable, Kind, Out, Outcome, Owned, SlotRef, edge};
use beeline_rpc::shm::Worker;
use beeline_rpc::{Replied, Reply, Request, WaitPolicy};

use crate::descriptor::Described;
use crate::exchange::{Handler, REQUESTS, beeline_rpc_request};
use crate::status::OK;

/// Longest sleep that is asked of a worker at once.
const MAX_SLEEP: Duration = Duration::from_secs(3600);

/// One thread's share of a server.
pub struct beeline_rpc_worker {
    worker: Described<Worker>,
    /// What handlers are given.
    request: SlotRef<beeline_rpc_request>,
    policy: WaitPolicy,
    stop: Arc<AtomicBool>,
}

impl Kind for beeline_rpc_worker {
    const NAME: &'static str = "worker";
    const TAG: u8 = 0x27;
}

static WORKERS: Owned<beeline_rpc_worker> = Owned::new();

impl beeline_rpc_worker {
    /// Takes a worker in, for C to close.
    pub(crate) fn insert(worker: Worker, policy: WaitPolicy, stop: Arc<AtomicBool>) -> Outcome<Handle<Self>> {
        let request = REQUESTS.slot(REQUESTS.insert(beeline_rpc_request::empty())?);
        WORKERS.insert(beeline_rpc_worker { worker: Described::new(worker), request, policy, stop })
    }
}

impl Drop for beeline_rpc_worker {
    fn drop(&mut self) {
        // It is nobody's, this thread's, or a thread's that has ended: whoever owns it owned the worker.
        drop(REQUESTS.remove(self.request.handle()));
    }
}

/// Answers requests by `handler`, each through the same handle, which means something while the handler runs.
#[inline(always)]
fn service(
    request: (SlotRef<beeline_rpc_request>, Caller),
    handler: Option<Handler>,
    context: *mut c_void,
) -> Outcome<impl FnMut(&mut Request<'_>, Reply<'_>) -> Replied> {
    let handler = handler.ok_or_else(|| Failure::invalid("handler is NULL"))?;
    Ok(move |asked: &mut Request<'_>, reply: Reply<'_>| {
        beeline_rpc_request::serve(&request, asked, reply, handler, context)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_worker_poll(
    worker: Handle<beeline_rpc_worker>,
    handler: Option<Handler>,
    context: *mut c_void,
    answered: Out<'_, usize>,
) -> c_int {
    edge("beeline_rpc_worker_poll", || {
        let mut pass = WORKERS.enter(worker)?;
        let caller = pass.caller();
        let worker = &mut *pass;
        let mut service = service((worker.request, caller), handler, context)?;
        let count = worker.worker.poll(&mut service);
        answered.put_if_wanted(count);
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_worker_run(
    worker: Handle<beeline_rpc_worker>,
    handler: Option<Handler>,
    context: *mut c_void,
) -> c_int {
    edge("beeline_rpc_worker_run", || {
        let mut pass = WORKERS.enter(worker)?;
        let caller = pass.caller();
        let worker = &mut *pass;
        let mut service = service((worker.request, caller), handler, context)?;
        worker.worker.run(&mut service, &worker.policy, &worker.stop);
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_worker_wait(worker: Handle<beeline_rpc_worker>, timeout_ns: u64) -> c_int {
    edge("beeline_rpc_worker_wait", || {
        let mut worker = WORKERS.enter(worker)?;
        if timeout_ns > 0 {
            worker.worker.sleep(Duration::from_nanos(timeout_ns).min(MAX_SLEEP));
        }
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_worker_descriptor(
    worker: Handle<beeline_rpc_worker>,
    descriptor: Out<'_, c_int>,
) -> c_int {
    edge("beeline_rpc_worker_descriptor", || {
        descriptor.put(-1, "descriptor")?;
        WORKERS.enter(worker)?.worker.tell(descriptor)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_worker_arm(worker: Handle<beeline_rpc_worker>, at_most_ns: Out<'_, u64>) -> c_int {
    edge("beeline_rpc_worker_arm", || {
        at_most_ns.put(0, "at_most_ns")?;
        WORKERS.enter(worker)?.worker.arm(at_most_ns)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_worker_disarm(worker: Handle<beeline_rpc_worker>) -> c_int {
    edge("beeline_rpc_worker_disarm", || {
        WORKERS.enter(worker)?.worker.disarm();
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_worker_clients(
    worker: Handle<beeline_rpc_worker>,
    clients: Out<'_, usize>,
) -> c_int {
    edge("beeline_rpc_worker_clients", || {
        let worker = WORKERS.enter(worker)?;
        clients.put_if_wanted(worker.worker.clients());
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_worker_release(worker: Handle<beeline_rpc_worker>) -> c_int {
    edge("beeline_rpc_worker_release", || {
        let request = WORKERS.enter(worker)?.request.handle();
        REQUESTS.release(request)?;
        WORKERS.release(worker)?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_worker_close(worker: HandleVariable<'_, beeline_rpc_worker>) -> c_int {
    edge("beeline_rpc_worker_close", || WORKERS.close(&worker).map(|_| OK))
}
