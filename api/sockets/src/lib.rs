//! The library that is preloaded into programs that use sockets: it carries the bytes of TCP connections by windows where both ends have it.
//!
//! What is here is hooks: functions with the names of the C library's, which a program finds first. A hook asks the engine (`host/sockets`) whether it
//! knows the number of the descriptor. If not, which is one load, the real function is called with what was given. If it does, what C passes becomes slices and flags,
//! the engine says what the call gives or that the kernel is to be asked, and that becomes a count and `errno`.
//! Which bytes go by which path, and when, is the engine's and not known here (record 0068).
//!
//! - `calls.rs` is the list of functions that are replaced (`exports.rs`, and `real.rs` for what is behind them), `prepared.rs` the one of those that run as they are behind a preparation;
//! - `hooks/` has what is done for each, by subject;
//! - `process.rs` says whether the library does anything in this process, and `origin.rs` which sockets may become connections of the engine.
//!
//! A hook may run in a signal handler, in a child of `vfork`, before any constructor and in a thread that is cancelled. So what it does for
//! numbers that are not known takes no lock and no memory, and `errno` is what the real function leaves.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_pointer_width = "64"
))]
#![expect(unsafe_code, reason = "functions of the C library")]
// Tests call none: nothing is exported from them, or they would run on these hooks themselves.
#![cfg_attr(test, allow(dead_code, reason = "hooks are called by programs"))]

mod asked;
mod calls;
mod cancellation;
mod errno;
mod exports;
mod find;
mod hooks;
mod kernel;
mod messages;
mod origin;
mod prepared;
mod process;
mod put_off;
mod real;
mod told;
