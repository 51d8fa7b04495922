//! Clients: what C calls, each function a gate, a check and a call.

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int};

use beeline_rpc::shm::Client;
use beeline_rpc::{CallError, CallFailure, Deadline, Method, Started};

use crate::domain::beeline_rpc_domain;
use crate::edge::{
    Failure, Outcome, bytes_of, checked, edge, edge_or, keep, memory_of, put, put_if_wanted, text_of,
};
use crate::gate::{Gate, Pass};
use crate::inside::{Held, Inside};
use crate::options::{self, beeline_rpc_client_options, deadline};
use crate::status::{self, EMPTY, FULL, NOT_CONNECTED, OK, TRUNCATED};

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
