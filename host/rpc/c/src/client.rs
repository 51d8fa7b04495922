//! Clients, and the answer that one of them holds.
//!
//! In Rust the end of a call borrows its client, so that the compiler lets nothing else happen to the client while an
//! answer lies in its window. C has no such borrow: here the handle holds the answer beside the client it borrows from,
//! with its lifetime taken away, and every function that touches the client lets go of the answer first
//! ([`Inside::client`]).

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int};
use core::ptr::NonNull;

use beeline_rpc::shm::{Client, ShmLink};
use beeline_rpc::{Body, CallError, CallFailure, CallId, Completion, Deadline, Method, Started, Transport};

use crate::domain::beeline_rpc_domain;
use crate::edge::{
    Failure, Outcome, bytes_of, checked, edge, edge_or, keep, memory_of, put, put_if_wanted, text_of,
};
use crate::gate::{Gate, Pass};
use crate::options::{self, beeline_rpc_client_options, deadline};
use crate::status::{self, EMPTY, FULL, NO_ANSWER, NOT_CONNECTED, OK, TRUNCATED};

/// A message in a reply window, whose client is not borrowed as far as the compiler knows.
type Window = <ShmLink as Transport>::Message<'static>;

/// A client of one server.
pub struct beeline_rpc_client {
    gate: Gate,
    inside: UnsafeCell<Inside>,
}

/// `struct beeline_rpc_completion`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct beeline_rpc_completion {
    call: u64,
    length: u64,
    status: i32,
    slot: u32,
    code: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<beeline_rpc_completion>() == 32);

struct Inside {
    /// Borrows from `client`, and is dropped before anything else is done with it.
    held: Option<Held>,
    /// From `Box::into_raw`: a `Box` would claim to be the only way to what `held` points at.
    client: NonNull<Client>,
    calls: Numbers,
    /// Memory of answers to calls that wait.
    spare: Vec<u8>,
}

/// Numbers of calls in C: 1 and on, never the same twice.
struct Numbers {
    /// By slot: calls that have not ended.
    calls: Box<[Option<(CallId, u64)>]>,
    /// Calls whose slot was used again before their end was polled, as it may be after a server is lost.
    displaced: Vec<(CallId, u64)>,
    next: u64,
}

impl Numbers {
    fn new(slots: usize) -> Self {
        Numbers { calls: vec![None; slots].into_boxed_slice(), displaced: Vec::new(), next: 1 }
    }

    #[inline(always)]
    fn begin(&mut self, id: CallId) -> u64 {
        let number = self.next;
        self.next += 1;
        if let Some(last) = self.calls[id.slot()].replace((id, number)) {
            self.displace(last);
        }
        number
    }

    #[cold]
    fn displace(&mut self, last: (CallId, u64)) {
        self.displaced.push(last);
    }

    /// The number of a call that has ended.
    #[inline(always)]
    fn end(&mut self, id: CallId) -> u64 {
        match self.calls[id.slot()] {
            Some((known, number)) if known == id => {
                self.calls[id.slot()] = None;
                number
            }
            _ => self.end_displaced(id),
        }
    }

    #[cold]
    fn end_displaced(&mut self, id: CallId) -> u64 {
        let place = self.displaced.iter().position(|(known, _)| *known == id);
        let place = place.expect("a call that ends was begun, and ends once");
        self.displaced.swap_remove(place).1
    }

    /// The call of a number, if it has not ended.
    fn find(&self, call: u64) -> Option<CallId> {
        let mut open = self.calls.iter().flatten().chain(&self.displaced);
        open.find(|(_, number)| *number == call).map(|(id, _)| *id)
    }
}

/// What a completion said, for C to read.
enum Held {
    /// Where it lies.
    Window(Body<'static, Window>),
    /// The detail of a failure, or the answer to a call that waited.
    Bytes(Vec<u8>),
}

// A client may be used by one thread after another: the gate sees to it that they come one after another.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Client>();
};

impl Inside {
    /// The client, with no answer held.
    #[inline(always)]
    fn client(&mut self) -> &mut Client {
        self.held = None;
        // SAFETY: from `Box::into_raw` in `new`, freed only in `drop`; `&mut self` is the only way to it besides `held`,
        // which is empty now.
        unsafe { self.client.as_mut() }
    }

    /// One poll of the client; what has ended, its answer held.
    #[inline(always)]
    fn poll(&mut self) -> Option<(CallId, Result<(), CallError>)> {
        self.held = None;
        // SAFETY: as in `client`. The lifetime is longer than the truth: what is polled borrows the client for as long as
        // it is kept. It is kept in `held` only, never moved out, and `client`, this function and `drop` empty that
        // before they touch the client again. The client itself does not move: it is in memory of its own.
        let client: &'static mut Client = unsafe { &mut *self.client.as_ptr() };
        let Completion { id, result } = client.poll()?;
        let result = match result {
            Ok(body) => {
                self.held = Some(Held::Window(body));
                Ok(())
            }
            Err(CallError::Failed { code, detail }) => {
                self.held = Some(Held::Bytes(detail.to_vec()));
                Err(CallError::Failed { code, detail })
            }
            Err(error) => Err(error),
        };
        Some((id, result))
    }

    fn new(client: Client) -> Self {
        let slots = client.max_outstanding();
        Inside {
            held: None,
            client: NonNull::from(Box::leak(Box::new(client))),
            calls: Numbers::new(slots),
            spare: Vec::new(),
        }
    }

    fn held(&mut self) -> Outcome<&mut Held> {
        self.held.as_mut().ok_or_else(no_answer)
    }
}

#[cold]
fn no_answer() -> Failure {
    let why = "no answer is held: the last poll gave none, or the client was used for something else since";
    Failure::new(NO_ANSWER, why)
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.held = None;
        // SAFETY: from `Box::leak` in `new`; nothing borrows it any more, and nothing uses it afterwards.
        drop(unsafe { Box::from_raw(self.client.as_ptr()) });
    }
}

impl Held {
    #[inline(always)]
    fn length(&self) -> usize {
        match self {
            Held::Window(body) => body.len(),
            Held::Bytes(bytes) => bytes.len(),
        }
    }

    #[inline(always)]
    fn word(&mut self, index: usize) -> u64 {
        match self {
            // Words of a message are counted from its header on; no message has so many that this can be too many.
            Held::Window(body) if index < body.len().div_ceil(8) => body.word(index),
            Held::Window(_) => 0,
            Held::Bytes(bytes) => word_of(bytes, index),
        }
    }

    #[inline(always)]
    fn copy_from(&mut self, first_word: usize, out: &mut [u8]) -> usize {
        match self {
            Held::Window(body) if first_word < body.len().div_ceil(8) => body.copy_out_from(first_word, out),
            Held::Window(_) => 0,
            Held::Bytes(bytes) => {
                let rest = bytes.get(first_word.saturating_mul(8)..).unwrap_or_default();
                let copied = rest.len().min(out.len());
                out[..copied].copy_from_slice(&rest[..copied]);
                copied
            }
        }
    }
}

fn word_of(bytes: &[u8], index: usize) -> u64 {
    let rest = bytes.get(index.saturating_mul(8)..).unwrap_or_default();
    let mut word = [0; 8];
    let there = rest.len().min(8);
    word[..there].copy_from_slice(&rest[..there]);
    u64::from_le_bytes(word)
}

/// Passes the gate of a client.
///
/// # Safety
/// NULL, or a client that is not closed.
#[inline(always)]
unsafe fn enter<'a>(client: *const beeline_rpc_client) -> Outcome<(Pass<'a>, &'a mut Inside)> {
    // SAFETY: the caller's.
    let handle: &'a beeline_rpc_client = unsafe { checked(client, "client") }?;
    let pass = handle.gate.enter()?;
    // SAFETY: the pass is the only one until it is dropped, which every function does after its last use of this.
    Ok((pass, unsafe { &mut *handle.inside.get() }))
}

/// # Safety
/// `domain` is NULL or open, `name` NULL or a text, `options` as `options::client`, `client` NULL or memory of a pointer.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_client_connect(
    domain: *const beeline_rpc_domain,
    name: *const c_char,
    options: *const beeline_rpc_client_options,
    client: *mut *mut beeline_rpc_client,
) -> c_int {
    edge("beeline_rpc_client_connect", || {
        // SAFETY: the caller's.
        unsafe { put(client, core::ptr::null_mut(), "client") }?;
        // SAFETY: the caller's.
        let domain = unsafe { checked(domain, "domain") }?;
        // SAFETY: the caller's.
        let name = unsafe { text_of(name, "name") }?;
        // SAFETY: the caller's.
        let options = unsafe { options::client(options) }?;
        let connected = Client::connect(&domain.domain, name, options).map_err(|e| Failure::refused(&e))?;
        let inside = UnsafeCell::new(Inside::new(connected));
        let handle = Box::into_raw(Box::new(beeline_rpc_client { gate: Gate::default(), inside }));
        // SAFETY: the caller's.
        unsafe { put(client, handle, "client") }?;
        Ok(OK)
    })
}

/// # Safety
/// `client` is NULL or memory of a pointer that is NULL or a client that nobody uses afterwards.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_client_close(client: *mut *mut beeline_rpc_client) -> c_int {
    edge("beeline_rpc_client_close", || {
        // SAFETY: the caller's.
        let Some(place) = (unsafe { client.as_mut() }) else { return Ok(OK) };
        if place.is_null() {
            return Ok(OK);
        }
        // SAFETY: not NULL, and not closed: closing makes the caller's pointer NULL.
        let (pass, _) = unsafe { enter(*place) }?;
        drop(pass);
        let handle = core::mem::replace(place, core::ptr::null_mut());
        // SAFETY: from `Box::into_raw` in `beeline_rpc_client_connect`. It was this thread's and nobody was inside, and
        // nobody comes in afterwards, by this function's contract.
        drop(unsafe { Box::from_raw(handle) });
        Ok(OK)
    })
}

/// # Safety
/// `client` is NULL or a client that is not closed.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_client_release(client: *const beeline_rpc_client) -> c_int {
    edge("beeline_rpc_client_release", || {
        // SAFETY: the caller's.
        unsafe { checked(client, "client") }?.gate.release()?;
        Ok(OK)
    })
}

/// # Safety
/// `client` as before; `server_pid` is NULL or memory of a number.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_client_server(
    client: *const beeline_rpc_client,
    server_pid: *mut u32,
) -> c_int {
    edge("beeline_rpc_client_server", || {
        // SAFETY: the caller's.
        let (_pass, inside) = unsafe { enter(client) }?;
        let client = inside.client();
        if let Some(loss) = client.loss() {
            return Err(Failure::new(NOT_CONNECTED, loss.to_string()));
        }
        let pid = client.transport().peer().map_or(0, |peer| peer.pid());
        // SAFETY: the caller's.
        unsafe { put_if_wanted(server_pid, pid) };
        Ok(OK)
    })
}

/// # Safety
/// `client` as before; `request` is NULL or as many bytes as `length` says; `call` is NULL or memory of a number.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_start(
    client: *const beeline_rpc_client,
    method: u16,
    request: *const u8,
    length: usize,
    timeout_ns: u64,
    call: *mut u64,
) -> c_int {
    edge("beeline_rpc_start", || {
        // SAFETY: the caller's.
        let (_pass, inside) = unsafe { enter(client) }?;
        // SAFETY: the caller's.
        let request = unsafe { bytes_of(request, length, "request") }?;
        match inside.client().start(Method(method), request, deadline(timeout_ns)) {
            Ok(Started::Call(id)) => {
                let number = inside.calls.begin(id);
                // SAFETY: the caller's.
                unsafe { put_if_wanted(call, number) };
                Ok(OK)
            }
            Ok(Started::Full) => Ok(FULL),
            Err(error) => Err(Failure::new(status::of_start(&error), error.to_string())),
        }
    })
}

/// # Safety
/// `client` as before; `completion` is NULL or memory of one.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_poll(
    client: *const beeline_rpc_client,
    completion: *mut beeline_rpc_completion,
) -> c_int {
    edge("beeline_rpc_poll", || {
        if completion.is_null() {
            return Err(Failure::invalid("completion is NULL"));
        }
        // SAFETY: the caller's.
        let (_pass, inside) = unsafe { enter(client) }?;
        let Some((id, result)) = inside.poll() else { return Ok(EMPTY) };
        let call = inside.calls.end(id);
        let (status, code) = match &result {
            Ok(()) => (OK, 0),
            Err(error) => failed(error),
        };
        let length = inside.held.as_ref().map_or(0, Held::length) as u64;
        let slot = id.slot() as u32;
        let ended = beeline_rpc_completion { call, length, status, slot, code, reserved: 0 };
        // SAFETY: not NULL, so memory of one by this function's contract.
        unsafe { completion.write(ended) };
        Ok(OK)
    })
}

/// The status and code of a call that failed; its text is kept.
#[cold]
fn failed(error: &CallError) -> (c_int, u32) {
    let code = if let CallError::Failed { code, .. } = error { u32::from(*code) } else { 0 };
    let failure = Failure::new(status::of_call(error), error.to_string());
    (keep("beeline_rpc_poll", &failure), code)
}

/// # Safety
/// `client` as before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_wait(client: *const beeline_rpc_client, timeout_ns: u64) -> c_int {
    edge("beeline_rpc_wait", || {
        // SAFETY: the caller's.
        let (_pass, inside) = unsafe { enter(client) }?;
        let client = inside.client();
        if timeout_ns == u64::MAX && client.outstanding() == 0 {
            let why = "no call is outstanding: a wait without a time-out would never end";
            return Err(Failure::invalid(why));
        }
        Ok(if client.wait(deadline(timeout_ns)) { OK } else { EMPTY })
    })
}

/// # Safety
/// `client` as before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_cancel(client: *const beeline_rpc_client, call: u64) -> c_int {
    edge("beeline_rpc_cancel", || {
        // SAFETY: the caller's.
        let (_pass, inside) = unsafe { enter(client) }?;
        let was_waiting = inside.calls.find(call).is_some_and(|id| inside.client().cancel(id));
        Ok(if was_waiting { OK } else { EMPTY })
    })
}

/// # Safety
/// `client` as before; `request` and `answer` are NULL or as many bytes as said; `answer_length` is NULL or memory of a
/// number.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_call(
    client: *const beeline_rpc_client,
    method: u16,
    request: *const u8,
    length: usize,
    answer: *mut u8,
    capacity: usize,
    answer_length: *mut usize,
    timeout_ns: u64,
) -> c_int {
    edge("beeline_rpc_call", || {
        // SAFETY: the caller's.
        unsafe { put_if_wanted(answer_length, 0) };
        // SAFETY: the caller's.
        let (_pass, inside) = unsafe { enter(client) }?;
        // SAFETY: the caller's.
        let request = unsafe { bytes_of(request, length, "request") }?;
        // SAFETY: the caller's.
        let answer = unsafe { memory_of(answer, capacity, "answer") }?;
        let came = call(inside, Method(method), request, deadline(timeout_ns))?;
        // SAFETY: the caller's.
        unsafe { put_if_wanted(answer_length, came) };
        inside.held()?.copy_from(0, answer);
        if came > capacity {
            let why = format!(
                "the answer has {came} bytes, and there is memory for {capacity}; the rest can be copied still"
            );
            return Err(Failure::new(TRUNCATED, why));
        }
        Ok(OK)
    })
}

/// Makes a call and holds its answer, or the detail of its failure; the answer's length.
fn call(inside: &mut Inside, method: Method, request: &[u8], deadline: Option<Deadline>) -> Outcome<usize> {
    if let Some(Held::Bytes(bytes)) = inside.held.take() {
        inside.spare = bytes;
    }
    let mut answer = core::mem::take(&mut inside.spare);
    match inside.client().call(method, request, &mut answer, deadline) {
        Ok(()) => {
            let length = answer.len();
            inside.held = Some(Held::Bytes(answer));
            Ok(length)
        }
        Err(error) => {
            if let CallFailure::Call(CallError::Failed { detail, .. }) = &error {
                inside.held = Some(Held::Bytes(detail.to_vec()));
            }
            Err(Failure::new(status::of_failure(&error), error.to_string()))
        }
    }
}

/// # Safety
/// `client` as before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_answer_length(client: *const beeline_rpc_client) -> usize {
    edge_or(
        "beeline_rpc_answer_length",
        |_| 0,
        || {
            // SAFETY: the caller's.
            let (_pass, inside) = unsafe { enter(client) }?;
            Ok(inside.held()?.length())
        },
    )
}

/// # Safety
/// `client` as before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_answer_word(client: *const beeline_rpc_client, index: usize) -> u64 {
    edge_or(
        "beeline_rpc_answer_word",
        |_| 0,
        || {
            // SAFETY: the caller's.
            let (_pass, inside) = unsafe { enter(client) }?;
            Ok(inside.held()?.word(index))
        },
    )
}

/// # Safety
/// `client` as before; `out` is NULL or as many bytes as `capacity` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_answer_copy(
    client: *const beeline_rpc_client,
    first_word: usize,
    out: *mut u8,
    capacity: usize,
) -> usize {
    edge_or(
        "beeline_rpc_answer_copy",
        |_| 0,
        || {
            // SAFETY: the caller's.
            let (_pass, inside) = unsafe { enter(client) }?;
            // SAFETY: the caller's.
            let out = unsafe { memory_of(out, capacity, "out") }?;
            Ok(inside.held()?.copy_from(first_word, out))
        },
    )
}

/// # Safety
/// `client` as before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_answer_release(client: *const beeline_rpc_client) -> c_int {
    edge("beeline_rpc_answer_release", || {
        // SAFETY: the caller's.
        let (_pass, inside) = unsafe { enter(client) }?;
        inside.held = None;
        Ok(OK)
    })
}
