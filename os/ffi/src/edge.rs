//! Panics end here, and failures become a code and a text.

use core::cell::RefCell;
use core::ffi::{c_char, c_int};
use core::ops::Deref;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::status;

/// Why a function did not do what it was asked for. As small as a pointer, so that an [`Outcome`] stays in registers.
#[derive(Debug)]
pub struct Failure(Box<Reason>);

/// What a [`Failure`] says.
#[derive(Debug)]
pub struct Reason {
    /// The code that the function gives.
    pub status: c_int,
    /// The text of [`last_error`], without the function's name.
    pub why: String,
}

impl Deref for Failure {
    type Target = Reason;

    fn deref(&self) -> &Reason {
        &self.0
    }
}

/// What the body of an exported function gives.
pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// A failure with a code and a text.
    #[cold]
    pub fn new(status: c_int, why: impl Into<String>) -> Self {
        Failure(Box::new(Reason { status, why: why.into() }))
    }

    /// An argument is not what it must be.
    pub fn invalid(why: impl Into<String>) -> Self {
        Failure::new(status::INVALID, why)
    }

    /// The failure of a field, whose name its text begins with, as one of the struct that C knows as `whole`.
    #[cold]
    pub(crate) fn in_struct(self, whole: &str) -> Self {
        Failure::new(self.status, format!("{whole}->{}", self.why))
    }
}

#[cold]
pub(crate) fn null(what: &str) -> Failure {
    Failure::invalid(format!("{what} is NULL"))
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs the body of an exported function. `name` is the function's, for the text of the error.
#[inline(always)]
pub fn edge(name: &str, body: impl FnOnce() -> Outcome<c_int>) -> c_int {
    edge_or(name, |failure| failure, body)
}

/// Runs the body of an exported function that gives something else than a code; `none` makes its value on failure.
#[inline(always)]
pub fn edge_or<T>(name: &str, none: impl FnOnce(c_int) -> T, body: impl FnOnce() -> Outcome<T>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(failure)) => none(keep(name, &failure)),
        Err(_) => none(keep(
            name,
            &Failure::new(status::INTERNAL, "a defect in the library; its text is on standard error"),
        )),
    }
}

/// Keeps the text of a failure for [`last_error`]; returns its code.
#[cold]
pub fn keep(name: &str, failure: &Failure) -> c_int {
    let text: Vec<u8> =
        format!("{name}: {}", failure.why).into_bytes().into_iter().filter(|byte| *byte != 0).collect();
    let text = CString::new(text).unwrap_or_default();
    // A thread that is ending keeps nothing.
    let _ = LAST.try_with(|last| last.replace(text));
    failure.status
}

/// The text of this thread's last failure, which the next one replaces; empty if there was none.
pub fn last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use core::ffi::CStr;

    use super::*;

    fn text() -> String {
        // SAFETY: `last_error` gives a string that ends; this thread fails no function while it is copied.
        unsafe { CStr::from_ptr(last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn failures_and_panics_become_codes_and_texts() {
        assert_eq!(text(), "");
        assert_eq!(edge("f", || Ok(7)), 7);
        assert_eq!(edge("f", || Err(Failure::invalid("x = 3\0; it must be 4"))), status::INVALID);
        assert_eq!(text(), "f: x = 3; it must be 4");
        assert_eq!(edge_or("g", |_| 0usize, || panic!("as asked")), 0);
        assert!(text().starts_with("g: a defect in the library"));
        std::thread::spawn(|| assert_eq!(text(), "")).join().unwrap();
    }
}
