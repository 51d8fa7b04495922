//! The edge between C and Rust: arguments are checked, panics end here, errors become a code and a text.

use core::cell::RefCell;
use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use beeline_rpc::RpcError;

use crate::status;

/// What a function says when it does not do what it was asked for.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: c_int,
    pub(crate) why: String,
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(status: c_int, why: impl Into<String>) -> Self {
        Failure { status, why: why.into() }
    }

    /// An argument is not what it must be.
    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        Failure::new(status::INVALID, why)
    }

    /// No connection, or no name.
    pub(crate) fn refused(error: &RpcError) -> Self {
        let status = if let RpcError::Option { .. } = error { status::INVALID } else { status::REFUSED };
        Failure::new(status, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs the body of a function of the interface. `name` is the function's, for the text of the error.
#[inline(always)]
pub(crate) fn edge(name: &str, body: impl FnOnce() -> Outcome<c_int>) -> c_int {
    edge_or(name, |failure| failure, body)
}

/// As [`edge`], for a function that gives something else than a code; `none` of the code is what it gives on failure.
#[inline(always)]
pub(crate) fn edge_or<T>(name: &str, none: impl FnOnce(c_int) -> T, body: impl FnOnce() -> Outcome<T>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(failure)) => none(keep(name, &failure)),
        Err(_) => none(keep(
            name,
            &Failure::new(status::INTERNAL, "a defect in the library; its text is on standard error"),
        )),
    }
}

/// Keeps the text of a failure for [`beeline_rpc_last_error`]; its code.
#[cold]
pub(crate) fn keep(name: &str, failure: &Failure) -> c_int {
    let text: Vec<u8> =
        format!("{name}: {}", failure.why).into_bytes().into_iter().filter(|byte| *byte != 0).collect();
    let text = CString::new(text).unwrap_or_default();
    // A thread that is ending keeps nothing.
    let _ = LAST.try_with(|last| last.replace(text));
    failure.status
}

#[unsafe(no_mangle)]
extern "C" fn beeline_rpc_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// What a pointer to a handle or to options points at.
///
/// # Safety
/// NULL, or what this library gave and did not close, or a struct that is there for the duration of the call.
#[inline(always)]
pub(crate) unsafe fn checked<'a, T>(pointer: *const T, what: &str) -> Outcome<&'a T> {
    // SAFETY: the caller's.
    match unsafe { pointer.as_ref() } {
        Some(value) => Ok(value),
        None => Err(null(what)),
    }
}

#[cold]
fn null(what: &str) -> Failure {
    Failure::invalid(format!("{what} is NULL"))
}

/// Where something is put for C.
///
/// # Safety
/// NULL, or memory of one `T` that only this call uses.
#[inline(always)]
pub(crate) unsafe fn put<T>(place: *mut T, value: T, what: &str) -> Outcome<()> {
    if place.is_null() {
        return Err(null(what));
    }
    // SAFETY: not NULL, so memory of one `T` by this function's contract; what it held needs no drop.
    unsafe { place.write(value) };
    Ok(())
}

/// As [`put`], where NULL means that C does not want it.
///
/// # Safety
/// As [`put`].
#[inline(always)]
pub(crate) unsafe fn put_if_wanted<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: as in `put`.
        unsafe { place.write(value) };
    }
}

/// Bytes that C gives to be read.
///
/// # Safety
/// NULL, or `bytes` bytes that nobody writes during the call.
#[inline(always)]
pub(crate) unsafe fn bytes_of<'a>(start: *const u8, bytes: usize, what: &str) -> Outcome<&'a [u8]> {
    check_length(start, bytes, what)?;
    if bytes == 0 {
        return Ok(&[]);
    }
    // SAFETY: not NULL and not longer than a slice may be (checked above); there and unchanged by this function's contract.
    Ok(unsafe { core::slice::from_raw_parts(start, bytes) })
}

/// Memory that C gives to be filled.
///
/// # Safety
/// NULL, or `bytes` bytes that nobody else uses during the call, whatever is in them.
#[inline(always)]
pub(crate) unsafe fn memory_of<'a>(start: *mut u8, bytes: usize, what: &str) -> Outcome<&'a mut [u8]> {
    check_length(start, bytes, what)?;
    if bytes == 0 {
        return Ok(&mut []);
    }
    // SAFETY: not NULL and not longer than a slice may be (checked above); ours alone by this function's contract. Bytes
    // that C has not set may be anything; they are only written (`copy_out`), and any value is a `u8`.
    Ok(unsafe { core::slice::from_raw_parts_mut(start, bytes) })
}

#[inline(always)]
fn check_length(start: *const u8, bytes: usize, what: &str) -> Outcome<()> {
    if start.is_null() && bytes > 0 {
        return Err(Failure::invalid(format!("{what} is NULL, with a length of {bytes} bytes")));
    }
    if bytes > isize::MAX as usize {
        return Err(Failure::invalid(format!("{what} has {bytes} bytes; nothing is that long")));
    }
    Ok(())
}

/// A text that C gives.
///
/// # Safety
/// NULL, or a string with a zero byte at its end that nobody writes during the call.
pub(crate) unsafe fn text_of<'a>(start: *const c_char, what: &str) -> Outcome<&'a str> {
    if start.is_null() {
        return Err(null(what));
    }
    // SAFETY: not NULL; ends in a zero byte and is unchanged by this function's contract.
    let text = unsafe { CStr::from_ptr(start) };
    text.to_str().map_err(|error| Failure::invalid(format!("{what} is not UTF-8: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_error() -> String {
        // SAFETY: the text of this thread, which is not replaced meanwhile.
        unsafe { CStr::from_ptr(beeline_rpc_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn failures_and_panics_become_codes_and_texts() {
        assert_eq!(last_error(), "");
        assert_eq!(edge("f", || Ok(7)), 7);
        assert_eq!(edge("f", || Err(Failure::invalid("x = 3\0; it must be 4"))), status::INVALID);
        assert_eq!(last_error(), "f: x = 3; it must be 4");
        assert_eq!(edge_or("g", |_| 0usize, || panic!("as asked")), 0);
        assert!(last_error().starts_with("g: a defect in the library"));
        std::thread::spawn(|| assert_eq!(last_error(), "")).join().unwrap();
    }

    #[test]
    fn pointers_are_looked_at_before_they_are_followed() {
        // SAFETY: NULL, which is allowed.
        let handle = unsafe { checked::<u64>(core::ptr::null(), "domain") };
        // SAFETY: as above.
        let bytes = unsafe { bytes_of(core::ptr::null(), 3, "request") };
        // SAFETY: as above.
        let text = unsafe { text_of(core::ptr::null(), "name") };
        assert_eq!(handle.unwrap_err().why, "domain is NULL");
        assert_eq!(bytes.unwrap_err().why, "request is NULL, with a length of 3 bytes");
        assert_eq!(text.unwrap_err().why, "name is NULL");
        // SAFETY: as above, with no bytes.
        assert_eq!(unsafe { bytes_of(core::ptr::null(), 0, "request") }.unwrap(), b"");
        // SAFETY: a length that is refused before anything is read.
        assert!(unsafe { bytes_of([1].as_ptr(), usize::MAX, "request") }.is_err());
        let text = [0xffu8 as c_char, 0];
        // SAFETY: a text that ends.
        let text = unsafe { text_of(text.as_ptr(), "name") };
        assert!(text.unwrap_err().why.contains("not UTF-8"));
    }
}
