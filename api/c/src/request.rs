//! Reading a request, in its handler.

use core::ffi::c_int;

use crate::edge::{edge_or, memory_of};
use crate::exchange::{beeline_rpc_request, enter};

/// # Safety
/// `request` is NULL or a handle that a worker gave which is not closed.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_request_method(request: *const beeline_rpc_request) -> u16 {
    edge_or(
        "beeline_rpc_request_method",
        |_| 0,
        || {
            // SAFETY: the caller's.
            Ok(unsafe { enter(request) }?.request().method().0)
        },
    )
}

/// # Safety
/// As before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_request_length(request: *const beeline_rpc_request) -> usize {
    edge_or(
        "beeline_rpc_request_length",
        |_| 0,
        || {
            // SAFETY: the caller's.
            Ok(unsafe { enter(request) }?.request().len())
        },
    )
}

/// # Safety
/// As before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_request_word(request: *const beeline_rpc_request, index: usize) -> u64 {
    edge_or(
        "beeline_rpc_request_word",
        |_| 0,
        || {
            // SAFETY: the caller's.
            let request = unsafe { enter(request) }?.request();
            // Words are counted from the message's header on: an index that is past the end is not added to it.
            Ok(if index < request.len().div_ceil(8) { request.word(index) } else { 0 })
        },
    )
}

/// # Safety
/// As before; `out` is NULL or as many bytes as `capacity` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_request_copy(
    request: *const beeline_rpc_request,
    first_word: usize,
    out: *mut u8,
    capacity: usize,
) -> usize {
    edge_or(
        "beeline_rpc_request_copy",
        |_| 0,
        || {
            // SAFETY: the caller's.
            let request = unsafe { enter(request) }?.request();
            // SAFETY: the caller's.
            let out = unsafe { memory_of(out, capacity, "out") }?;
            let is_inside = first_word < request.len().div_ceil(8);
            Ok(if is_inside { request.copy_out_from(first_word, out) } else { 0 })
        },
    )
}

/// # Safety
/// As before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_request_time_left(request: *const beeline_rpc_request) -> u64 {
    edge_or(
        "beeline_rpc_request_time_left",
        |_| 0,
        || {
            // SAFETY: the caller's.
            let deadline = unsafe { enter(request) }?.request().deadline();
            // A time that does not fit is some 584 years.
            let left = |deadline: beeline_rpc::Deadline| u64::try_from(deadline.remaining().as_nanos()).ok();
            Ok(deadline.and_then(left).unwrap_or(u64::MAX))
        },
    )
}

/// # Safety
/// As before.
#[unsafe(no_mangle)]
unsafe extern "C" fn beeline_rpc_request_is_cancelled(request: *const beeline_rpc_request) -> c_int {
    edge_or(
        "beeline_rpc_request_is_cancelled",
        |_| 0,
        || {
            // SAFETY: the caller's.
            Ok(unsafe { enter(request) }?.request().is_cancelled().into())
        },
    )
}
