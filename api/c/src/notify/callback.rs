//! Callbacks that threads of the library call.

use core::ffi::c_void;
use std::os::fd::{AsRawFd, OwnedFd};

/// What C wants its callback to be given.
#[derive(Clone, Copy)]
pub(crate) struct Context(pub(crate) *mut c_void);

// SAFETY: an address that is given back to C and never followed; the header says that callbacks run on other threads.
unsafe impl Send for Context {}

impl Context {
    pub(crate) fn get(self) -> *mut c_void {
        self.0
    }
}

/// Calls C, and ends the process if an exception comes out of it: there is nobody on this thread who would catch it.
pub(crate) fn without_unwinding<T>(call: impl FnOnce() -> T) -> T {
    struct EndOfProcess;
    impl Drop for EndOfProcess {
        fn drop(&mut self) {
            std::process::abort();
        }
    }
    let unwinding = EndOfProcess;
    let result = call();
    std::mem::forget(unwinding);
    result
}

/// The numbers of descriptors, as C is shown them.
pub(crate) fn numbers(fds: &[OwnedFd]) -> Vec<core::ffi::c_int> {
    fds.iter().map(AsRawFd::as_raw_fd).collect()
}
