//! Messages and calls in nanoseconds for C and C++: what the headers in `include/` declare.
//!
//! FFI and nothing else: every function checks what it is given, calls the facade of Rust or `beeline-rpc`, and gives
//! a code. Documentation for users is in the headers, and only there.
//!
//! What holds whatever C does, as long as the memory that it passes is there:
//! - no panic crosses the edge: it becomes `BEELINE_INTERNAL` or `BEELINE_RPC_INTERNAL` (`os/ffi`);
//! - a handle that is closed, of another kind or none is a code, and so is one that two threads use, or one that is used
//!   from inside itself (`os/ffi`);
//! - an answer lies in the window while C reads it, and is let go before anything else is done with its client
//!   (`inside.rs`), as a message does with its receiver (`window/inside.rs`); a request and its reply, and a message of a
//!   drain, cannot be reached once the handler or the callback has returned (`exchange.rs`, `window/message.rs`).
#![expect(unsafe_code, reason = "the C interface")]
#![expect(non_camel_case_types, reason = "types have the names that C knows them by")]

mod admission;
mod bytes;
mod client;
mod descriptor;
mod domain;
mod exchange;
mod inside;
mod notify;
mod options;
mod reply;
mod request;
mod segment;
mod server;
mod status;
mod window;
mod worker;
