//! Reading a request, in its handler.

use core::ffi::c_int;

use crate::exchange::{REQUESTS, beeline_rpc_request};
use beeline_ffi::{Handle, Memory, edge_or};

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_request_method(request: Handle<beeline_rpc_request>) -> u16 {
    edge_or(
        "beeline_rpc_request_method",
        |_| 0,
        || Ok(REQUESTS.enter_own(request)?.running()?.request().method().0),
    )
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_request_length(request: Handle<beeline_rpc_request>) -> usize {
    edge_or(
        "beeline_rpc_request_length",
        |_| 0,
        || Ok(REQUESTS.enter_own(request)?.running()?.request().len()),
    )
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_request_word(request: Handle<beeline_rpc_request>, index: usize) -> u64 {
    edge_or(
        "beeline_rpc_request_word",
        |_| 0,
        || {
            let mut handle = REQUESTS.enter_own(request)?;
            let request = handle.running()?.request();
            // Words are counted from the message's header on: an index that is past the end is not added to it.
            Ok(if index < request.len().div_ceil(8) { request.word(index) } else { 0 })
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_request_copy(
    request: Handle<beeline_rpc_request>,
    first_word: usize,
    out: Memory<'_>,
    capacity: usize,
) -> usize {
    edge_or(
        "beeline_rpc_request_copy",
        |_| 0,
        || {
            let mut handle = REQUESTS.enter_own(request)?;
            let request = handle.running()?.request();
            let out = out.fill(capacity, "out")?;
            let is_inside = first_word < request.len().div_ceil(8);
            Ok(if is_inside { request.copy_out_from(first_word, out) } else { 0 })
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_request_time_left(request: Handle<beeline_rpc_request>) -> u64 {
    edge_or(
        "beeline_rpc_request_time_left",
        |_| 0,
        || {
            let deadline = REQUESTS.enter_own(request)?.running()?.request().deadline();
            // A time that does not fit is some 584 years.
            let left = |deadline: beeline_rpc::Deadline| u64::try_from(deadline.remaining().as_nanos()).ok();
            Ok(deadline.and_then(left).unwrap_or(u64::MAX))
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_request_is_cancelled(request: Handle<beeline_rpc_request>) -> c_int {
    edge_or(
        "beeline_rpc_request_is_cancelled",
        |_| 0,
        || Ok(REQUESTS.enter_own(request)?.running()?.request().is_cancelled().into()),
    )
}
