//! A request and its reply: one handle for both, that means something only while the handler runs.
//!
//! In Rust request and reply are borrowed for the time of the handler. Here they lie in an [`Exchange`] of the worker with
//! their lifetimes taken away; it is filled before the handler is called and emptied when it has returned, so a handle
//! that C kept finds nothing there.

use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use std::panic::resume_unwind;

use beeline_ffi::{Caller, Failure, Handle, Kind, Outcome, Owned, SlotRef};
use beeline_rpc::{Replied, Reply, ReplyWriter, Request};

use crate::status::{ANSWERED, INTERNAL, NO_REQUEST, OK};

/// `beeline_rpc_handler`. It may unwind as far as Rust is concerned: what comes out of it ends at the worker or the
/// process, never in undefined behaviour.
pub(crate) type Handler =
    unsafe extern "C-unwind" fn(context: *mut c_void, request: Handle<beeline_rpc_request>);

/// A request and its reply: one for each worker, empty while no handler runs.
pub struct beeline_rpc_request(Option<Exchange>);

impl Kind for beeline_rpc_request {
    const NAME: &'static str = "request";
    const TAG: u8 = 0x29;
}

/// Only [`beeline_rpc_request::serve`] enters as a new owner; whoever else uses a request must own it already.
pub(crate) static REQUESTS: Owned<beeline_rpc_request> = Owned::new();

// SAFETY: it moves between threads only while it is empty: `serve` fills it and empties it before it returns, and meanwhile
// the slot is its thread's, which is in the handler and so neither ends nor releases the slot (`beeline_rpc_worker_release`
// and `_close` are refused as busy).
unsafe impl Send for beeline_rpc_request {}

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
    pub(crate) fn empty() -> Self {
        beeline_rpc_request(None)
    }

    /// The exchange, while its handler runs.
    #[inline(always)]
    pub(crate) fn running(&mut self) -> Outcome<&mut Exchange> {
        self.0.as_mut().ok_or_else(no_request)
    }

    /// Has a handler answer a request.
    #[inline(always)]
    pub(crate) fn serve(
        place: &(SlotRef<Self>, Caller),
        request: &mut Request<'_>,
        reply: Reply<'_>,
        handler: Handler,
        context: *mut c_void,
    ) -> Replied {
        // SAFETY: only the lifetime changes. The exchange is emptied by `Emptied` before this function ends, however it
        // ends, so the reply is not used after what it borrows.
        let reply = unsafe { core::mem::transmute::<Reply<'_>, Reply<'static>>(reply) };
        let exchange = Exchange { request: NonNull::from(request).cast(), reply: State::Open(reply) };
        let (slot, caller) = *place;
        let mut pass = slot.enter_as(caller).expect("a request is its worker's thread's");
        let left_behind = pass.0.replace(exchange);
        debug_assert!(left_behind.is_none(), "the last exchange was emptied");
        // There is nothing to drop, and so nothing that asks whether there is.
        core::mem::forget(left_behind);
        drop(pass);
        let emptied = Emptied(place);
        // SAFETY: what C gave to `beeline_rpc_worker_poll` or `_run` as a handler, with the context that goes with it; the
        // header has it be callable until that function returns.
        unsafe { handler(context, slot.handle()) };
        let exchange = emptied.empty();
        core::mem::forget(emptied);
        match exchange {
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
struct Emptied<'a>(&'a (SlotRef<beeline_rpc_request>, Caller));

impl Emptied<'_> {
    #[inline(always)]
    fn empty(&self) -> Option<Exchange> {
        // A function of the interface that was inside has left: it ends before the handler does.
        let (slot, caller) = *self.0;
        slot.enter_as(caller).expect("a request stays its worker's thread's").0.take()
    }
}

impl Drop for Emptied<'_> {
    fn drop(&mut self) {
        drop(self.empty());
    }
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
