//! A request and its reply: one handle for both, that means something only while the handler runs.
//!
//! In Rust request and reply are borrowed for the time of the handler. Here they lie in an [`Exchange`] of the worker with
//! their lifetimes taken away; it is filled before the handler is called and emptied when it has returned, so a handle
//! that C kept finds nothing there.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use std::panic::resume_unwind;

use beeline_rpc::{Replied, Reply, ReplyWriter, Request};

use crate::edge::{Failure, Outcome, checked};
use crate::gate::Gate;
use crate::status::{ANSWERED, INTERNAL, NO_REQUEST, OK, WRONG_THREAD};

/// `beeline_rpc_handler`. It may unwind as far as Rust is concerned: what comes out of it ends at the worker or the
/// process, never in undefined behaviour.
pub(crate) type Handler =
    unsafe extern "C-unwind" fn(context: *mut c_void, request: *mut beeline_rpc_request);

/// A request and its reply.
pub struct beeline_rpc_request {
    /// The worker's: while its handler runs, its thread is inside.
    gate: NonNull<Gate>,
    exchange: UnsafeCell<Option<Exchange>>,
}

/// A request and its reply, while a handler runs.
pub(crate) struct Exchange {
    /// What the worker handed to the service, for as long as the handler runs.
    request: NonNull<Request<'static>>,
    pub(crate) reply: State,
}

pub(crate) enum State {
    Open(Reply<'static>),
    Writing(ReplyWriter<'static>),
    Done(Replied),
    /// Between two of the others.
    Moving,
}

impl beeline_rpc_request {
    /// An empty one of the worker whose gate this is.
    pub(crate) fn new(gate: NonNull<Gate>) -> Self {
        beeline_rpc_request { gate, exchange: UnsafeCell::new(None) }
    }

    /// Has a handler answer a request.
    ///
    /// # Safety
    /// The calling thread has passed the gate and nobody else has this handle but the handler. The handler is what C says
    /// it is.
    #[inline(always)]
    pub(crate) unsafe fn serve(
        this: NonNull<Self>,
        request: &mut Request<'_>,
        reply: Reply<'_>,
        handler: Handler,
        context: *mut c_void,
    ) -> Replied {
        // SAFETY: only the lifetime changes. The exchange is emptied by `Emptied` before this function ends, however it
        // ends, so the reply is not used after what it borrows.
        let reply = unsafe { core::mem::transmute::<Reply<'_>, Reply<'static>>(reply) };
        let exchange = Exchange { request: NonNull::from(request).cast(), reply: State::Open(reply) };
        // SAFETY: this handle is there as long as its worker.
        let place = unsafe { this.as_ref() }.exchange.get();
        // SAFETY: only this thread uses it: it has passed the gate, and the handler of the last request has returned.
        unsafe { *place = Some(exchange) };
        let emptied = Emptied(place);
        // SAFETY: what C gave as a handler, with the context that goes with it.
        unsafe { handler(context, this.as_ptr()) };
        let answered = emptied.take();
        match answered {
            Some(Exchange { reply: State::Done(replied), .. }) => replied,
            unanswered => {
                // Tells the client that the handler gave up, as the drop of a reply does.
                drop(unanswered);
                // Not a panic of this program: no hook is to print it. The worker's thread catches it at the next frame.
                resume_unwind(Box::new("a handler returned without an answer"))
            }
        }
    }
}

/// Empties an exchange when its handler is over.
struct Emptied(*mut Option<Exchange>);

impl Emptied {
    fn take(self) -> Option<Exchange> {
        // SAFETY: as in `drop`.
        unsafe { (*self.0).take() }
    }
}

impl Drop for Emptied {
    fn drop(&mut self) {
        // SAFETY: the place is there for as long as `serve` runs, which made this; the handler does not run any more, and
        // every other use of the place is over when the function of the interface that made it returns.
        drop(unsafe { (*self.0).take() });
    }
}

/// The exchange of a request whose handler runs in this thread.
///
/// # Safety
/// NULL, or a handle that a worker gave which is not closed. The result is not kept beyond the function of the interface
/// that asks.
#[inline(always)]
pub(crate) unsafe fn enter<'a>(request: *const beeline_rpc_request) -> Outcome<&'a mut Exchange> {
    // SAFETY: the caller's.
    let handle: &'a beeline_rpc_request = unsafe { checked(request, "request") }?;
    // SAFETY: the gate is there as long as its worker, and so as this handle.
    if !unsafe { handle.gate.as_ref() }.is_mine() {
        return Err(wrong_thread());
    }
    // SAFETY: this thread has the worker, so no other thread is here; in this thread `serve` waits for the handler, and
    // no function of the interface calls another.
    let exchange = unsafe { &mut *handle.exchange.get() };
    exchange.as_mut().ok_or_else(no_request)
}

#[cold]
fn wrong_thread() -> Failure {
    Failure::new(WRONG_THREAD, "a request is used by another thread than its handler's; copy it for that one")
}

#[cold]
fn no_request() -> Failure {
    Failure::new(NO_REQUEST, "the handler of this request has returned; copy what is needed afterwards")
}

impl Exchange {
    #[inline(always)]
    pub(crate) fn request(&mut self) -> &mut Request<'static> {
        // SAFETY: the request that `serve` was given, which borrows it for as long as the exchange is there; the lifetime
        // of what it borrows itself does not leave this file's functions.
        unsafe { self.request.as_mut() }
    }

    /// Uses the reply up.
    #[inline(always)]
    pub(crate) fn answer(&mut self, answer: impl FnOnce(Reply<'static>) -> Replied) -> Outcome<c_int> {
        match core::mem::replace(&mut self.reply, State::Moving) {
            State::Open(reply) => {
                self.reply = State::Done(answer(reply));
                Ok(OK)
            }
            other => {
                self.reply = other;
                Err(self.not_open())
            }
        }
    }

    #[cold]
    pub(crate) fn not_open(&self) -> Failure {
        match self.reply {
            State::Open(_) => Failure::new(ANSWERED, "no answer is being written: begin one first"),
            State::Writing(_) => Failure::new(ANSWERED, "an answer is being written: commit it"),
            State::Done(_) => Failure::new(ANSWERED, "the request is answered already"),
            State::Moving => Failure::new(INTERNAL, "the reply was lost in a panic"),
        }
    }
}
