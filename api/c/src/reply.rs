//! Answering a request, in its handler.

use core::ffi::c_int;

use beeline_rpc::Reply;

use crate::edge::{Failure, bytes_of, edge};
use crate::exchange::{State, beeline_rpc_request, enter};
use crate::status::OK;

/// # Safety
/// `request` is NULL or a handle that a worker gave which is not closed; `answer` is NULL or as many bytes as `length` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_reply_send(
    request: *const beeline_rpc_request,
    answer: *const u8,
    length: usize,
) -> c_int {
    edge("beeline_rpc_reply_send", || {
        // SAFETY: the caller's.
        let exchange = unsafe { enter(request) }?;
        // SAFETY: the caller's.
        let answer = unsafe { bytes_of(answer, length, "answer") }?;
        exchange.answer(|reply| reply.send(answer))
    })
}

/// # Safety
/// As before; `detail` is NULL or as many bytes as `length` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_reply_fail(
    request: *const beeline_rpc_request,
    code: u16,
    detail: *const u8,
    length: usize,
) -> c_int {
    edge("beeline_rpc_reply_fail", || {
        // SAFETY: the caller's.
        let exchange = unsafe { enter(request) }?;
        // SAFETY: the caller's.
        let detail = unsafe { bytes_of(detail, length, "detail") }?;
        exchange.answer(|reply| reply.fail(code, detail))
    })
}

/// # Safety
/// As before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_reply_overloaded(request: *const beeline_rpc_request) -> c_int {
    edge("beeline_rpc_reply_overloaded", || {
        // SAFETY: the caller's.
        unsafe { enter(request) }?.answer(Reply::overloaded)
    })
}

/// # Safety
/// As before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_reply_unknown_method(request: *const beeline_rpc_request) -> c_int {
    edge("beeline_rpc_reply_unknown_method", || {
        // SAFETY: the caller's.
        unsafe { enter(request) }?.answer(Reply::unknown_method)
    })
}

/// # Safety
/// As before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_reply_begin(
    request: *const beeline_rpc_request,
    max_length: usize,
) -> c_int {
    edge("beeline_rpc_reply_begin", || {
        // SAFETY: the caller's.
        let exchange = unsafe { enter(request) }?;
        match core::mem::replace(&mut exchange.reply, State::Moving) {
            State::Open(reply) => {
                exchange.reply = State::Writing(reply.begin(max_length));
                Ok(OK)
            }
            other => {
                exchange.reply = other;
                Err(exchange.not_open())
            }
        }
    })
}

/// # Safety
/// As before; `bytes` is NULL or as many bytes as `length` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_reply_write(
    request: *const beeline_rpc_request,
    bytes: *const u8,
    length: usize,
) -> c_int {
    edge("beeline_rpc_reply_write", || {
        // SAFETY: the caller's.
        let exchange = unsafe { enter(request) }?;
        // SAFETY: the caller's.
        let bytes = unsafe { bytes_of(bytes, length, "bytes") }?;
        match &mut exchange.reply {
            State::Writing(writer) => {
                writer.write(bytes).map_err(|error| Failure::invalid(error.to_string()))?;
                Ok(OK)
            }
            _ => Err(exchange.not_open()),
        }
    })
}

/// # Safety
/// As before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_reply_commit(request: *const beeline_rpc_request) -> c_int {
    edge("beeline_rpc_reply_commit", || {
        // SAFETY: the caller's.
        let exchange = unsafe { enter(request) }?;
        match core::mem::replace(&mut exchange.reply, State::Moving) {
            State::Writing(writer) => {
                exchange.reply = State::Done(writer.commit());
                Ok(OK)
            }
            other => {
                exchange.reply = other;
                Err(exchange.not_open())
            }
        }
    })
}
