//! SISCI for C: what programs that were written for its headers link, over a fabric of either kind (`member.rs`).
//!
//! FFI and nothing else: every function checks what it is given, makes a call of the fabric and gives a code of SISCI.
//! `exports.rs` is the list of functions, each of which is exported under three names; the modules are named for what is in them.
//! What a function does is said where C programs look it up: in the headers.
//!
//! What holds whatever C does, as long as the memory that it passes is there:
//! - no panic crosses the edge: it becomes `SCI_ERR_SYSTEM` (`os/ffi`);
//! - a handle that is removed, of another kind or none is `SCI_ERR_ILLEGAL_PARAMETER`, before `SCIInitialize` and for a handle of the
//!   parent in a child of fork `SCI_ERR_NOT_INITIALIZED` (`handles.rs`);
//! - what something else was made of is not removed before that: `SCI_ERR_BUSY` (`uses.rs`).
#![expect(unsafe_code, reason = "the C interface")]

mod absent;
mod callback;
mod constants;
mod copy;
mod data_interrupt;
mod dma;
mod edge;
mod errors;
mod exports;
mod flags;
mod handles;
mod interrupt;
mod lifecycle;
mod local;
mod map;
mod member;
mod message_queue;
mod node;
mod plain_interrupt;
mod query;
mod registered;
mod remote;
mod sequence;
mod session;
mod uses;
