//! Codes that functions give: zero and positive ones are no errors. The header's list, and what each means to C.

use core::ffi::{CStr, c_char, c_int};

use beeline_ffi::Failure;
use beeline_rpc::{CallError, CallFailure, RpcError, StartError};

macro_rules! codes {
    ($($name:ident = $value:literal, $may_have_run:literal, $text:literal;)*) => {
        $(pub(crate) const $name: c_int = $value;)*

        /// Every code, with its text and whether a call that ended so may have been executed.
        pub(crate) const CODES: &[(c_int, &str, bool, &CStr)] = &[$(($value, stringify!($name), $may_have_run, $text)),*];
    };
}

codes! {
    OK = 0, true, c"done";
    FULL = 1, false, c"no room for the call now: poll, and try again";
    EMPTY = 2, false, c"nothing yet";
    FAILED = -1, true, c"the handler failed";
    UNKNOWN_METHOD = -2, false, c"the server has no such method";
    DEADLINE_PASSED = -3, false, c"the deadline was past when the request's turn came";
    TIMED_OUT = -4, true, c"no answer came before the deadline";
    CANCELLED = -5, true, c"the call was cancelled";
    OVERLOADED = -6, false, c"the server takes no more work now";
    TOO_LONG = -7, true, c"the request or its answer is too long";
    CRASHED = -8, true, c"the handler gave up in the middle";
    SERVER_GONE = -9, true, c"the server went while the call was outstanding";
    SERVER_GONE_UNSENT = -10, false, c"the server went before the request had been sent whole";
    NOT_CONNECTED = -20, false, c"there is no server now";
    NO_ROOM = -21, false, c"there was no room for the request before its deadline";
    OUTSTANDING = -22, false, c"other calls are outstanding";
    INVALID = -40, false, c"an argument is not what it must be";
    WRONG_THREAD = -41, false, c"the handle belongs to another thread";
    BUSY = -42, false, c"the handle is in use further up in this thread";
    NO_ANSWER = -43, false, c"no answer is held";
    NO_REQUEST = -44, false, c"the handler has returned";
    ANSWERED = -45, false, c"the request is answered already, or its answer is being written";
    TRUNCATED = -46, true, c"the answer is longer than the memory for it";
    REFUSED = -60, false, c"no connection, or no name: see the last error";
    INTERNAL = -99, true, c"a defect in the library";
}

// What the edge says by itself has the same code in every library.
const _: () = {
    use beeline_ffi::status;
    assert!(OK == status::OK && INVALID == status::INVALID && WRONG_THREAD == status::WRONG_THREAD);
    assert!(BUSY == status::BUSY && REFUSED == status::REFUSED && INTERNAL == status::INTERNAL);
};

/// Why there is no connection, or no name.
pub(crate) fn refused(error: &RpcError) -> Failure {
    let status = if let RpcError::Option { .. } = error { INVALID } else { REFUSED };
    Failure::new(status, error.to_string())
}

fn entry(status: c_int) -> Option<&'static (c_int, &'static str, bool, &'static CStr)> {
    CODES.iter().find(|(code, ..)| *code == status)
}

/// How a call ended.
pub(crate) fn of_call(error: &CallError) -> c_int {
    match error {
        CallError::Failed { .. } => FAILED,
        CallError::UnknownMethod => UNKNOWN_METHOD,
        CallError::DeadlinePassed => DEADLINE_PASSED,
        CallError::TimedOut => TIMED_OUT,
        CallError::Cancelled => CANCELLED,
        CallError::Overloaded => OVERLOADED,
        CallError::TooLong => TOO_LONG,
        CallError::Crashed => CRASHED,
        CallError::ServerGone { was_sent: true, .. } => SERVER_GONE,
        CallError::ServerGone { was_sent: false, .. } => SERVER_GONE_UNSENT,
        _ => INTERNAL,
    }
}

/// Why a call was not begun.
pub(crate) fn of_start(error: &StartError) -> c_int {
    match error {
        StartError::TooLong { .. } => INVALID,
        StartError::NotConnected { .. } => NOT_CONNECTED,
        _ => INTERNAL,
    }
}

/// Why a call gave no answer.
pub(crate) fn of_failure(error: &CallFailure) -> c_int {
    match error {
        CallFailure::Start(error) => of_start(error),
        CallFailure::Call(error) => of_call(error),
        CallFailure::NoRoom { .. } => NO_ROOM,
        CallFailure::Outstanding { .. } => OUTSTANDING,
        _ => INTERNAL,
    }
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_last_error() -> *const c_char {
    beeline_ffi::last_error()
}

#[unsafe(no_mangle)]
extern "C" fn beeline_last_error() -> *const c_char {
    beeline_ffi::last_error()
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_status_text(status: c_int) -> *const c_char {
    entry(status).map_or(c"no status of this library", |(.., text)| text).as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_may_have_run(status: c_int) -> c_int {
    entry(status).is_none_or(|(_, _, may_have_run, _)| *may_have_run).into()
}

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version has no zero byte"),
};

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_version() -> *const c_char {
    VERSION.as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn beeline_version() -> *const c_char {
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../include/beeline_rpc.h");

    #[test]
    fn the_header_has_every_code_and_no_other() {
        for (code, name, ..) in CODES {
            let line = format!("BEELINE_RPC_{name} = {code}");
            assert!(
                HEADER.lines().any(|text| text.trim_start().starts_with(&line)),
                "no `{line}` in the header"
            );
        }
        let listed = HEADER
            .lines()
            .filter(|line| line.trim_start().starts_with("BEELINE_RPC_") && line.contains(" = "));
        // And the two ways to wait.
        assert_eq!(listed.count(), CODES.len() + 2);
        let mut codes: Vec<c_int> = CODES.iter().map(|(code, ..)| *code).collect();
        codes.dedup();
        assert_eq!(codes.len(), CODES.len());
    }

    #[test]
    fn not_executed_is_reported_exactly_for_errors_that_promise_it() {
        let unsent =
            CallError::ServerGone { loss: beeline_rpc::Loss::Died { pid: Some(1) }, was_sent: false };
        for error in [&CallError::UnknownMethod, &CallError::DeadlinePassed, &CallError::Overloaded, &unsent]
        {
            assert!(error.to_string().contains("not execute") || *error == CallError::UnknownMethod);
            assert_eq!(beeline_rpc_may_have_run(of_call(error)), 0, "{error}");
        }
        for error in [CallError::TimedOut, CallError::Cancelled, CallError::Crashed] {
            assert_eq!(beeline_rpc_may_have_run(of_call(&error)), 1, "{error}");
        }
        assert_eq!(beeline_rpc_may_have_run(12345), 1);
    }
}
