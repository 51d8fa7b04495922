//! Where C comes in: what a function fails with becomes a code of SISCI.

use core::ffi::{c_char, c_int};

use beeline_fabric::Refusal;
use beeline_ffi::{Failure, Out, Outcome, edge_or, status};

use crate::errors;

/// Where C wants the code of a function.
pub(crate) type Error<'a> = Out<'a, u32>;

/// Runs the body of the exported function `name`, and puts what came of it where C wants it, if it does. `none` is given on failure.
#[inline(always)]
pub(crate) fn edge<T: Copy>(name: &str, error: Error<'_>, none: T, body: impl FnOnce() -> Outcome<T>) -> T {
    let failed = |status| {
        error.put_if_wanted(code_of(status));
        none
    };
    edge_or(name, failed, || {
        let value = body()?;
        error.put_if_wanted(errors::OK);
        Ok(value)
    })
}

/// As [`edge`], of a function that C has no code of.
#[inline(always)]
pub(crate) fn edge_without_code<T>(name: &str, none: T, body: impl FnOnce() -> Outcome<T>) -> T {
    edge_or(name, |_| none, body)
}

/// A failure with a code of SISCI.
#[cold]
pub(crate) fn failure(code: u32, why: impl Into<String>) -> Failure {
    Failure::new(code.cast_signed(), why)
}

/// A failure of the fabric.
#[cold]
pub(crate) fn refused(refusal: Refusal) -> Failure {
    failure(refusal.code(), refusal.to_string())
}

/// The fabric gave what is no answer to the call.
#[cold]
pub(crate) fn unexpected() -> Failure {
    failure(errors::SYSTEM, "a defect in the library: an answer to another call")
}

/// The code of SISCI for what the edge says by itself; codes of SISCI stay as they are.
pub(crate) fn code_of(status: c_int) -> u32 {
    match status {
        status::INVALID => errors::ILLEGAL_PARAMETER,
        status::REFUSED => errors::MAX_ENTRIES,
        status::BUSY => errors::BUSY,
        status::INTERNAL => errors::SYSTEM,
        code => code.cast_unsigned(),
    }
}

/// Says why this thread's last failure happened, in more words than its code.
#[unsafe(no_mangle)]
extern "C" fn beeline_sisci_last_error() -> *const c_char {
    beeline_ffi::last_error()
}
