//! The one source of what crosses a window or a register: offsets, words, messages, rings.
//!
//! Constants come from `nic.rdl` and `formats.toml` (generated, drift-checked); this crate adds the few functions
//! that turn words into meaning, so that the host library, the behavioural NIC and the tests cannot disagree. It
//! knows no memory, no link and no device. `no_std`, no unsafe code, no allocation.
//!
//! Sources: HotOS'25 §3.1 (a length at a fixed place, next start); docs/design.md, Vocabulary (blank, escape, batch).
#![no_std]
#![forbid(unsafe_code)]

#[rustfmt::skip]
#[path = "../generated/rust/formats.rs"]
pub mod formats;
#[rustfmt::skip]
#[path = "../generated/rust/regs.rs"]
pub mod regs;

pub mod batch;
pub mod caps;
pub mod coherent;
pub mod entry;
pub mod escape;
pub mod flow;
pub mod header;
pub mod interface;
pub mod lap;
pub mod pipe;
pub mod rpc;

pub use header::{Header, HeaderError, Kind};
pub use interface::{Interface, Stores, Writes};

/// Bytes of a word, the unit of single-copy atomicity.
pub const WORD_BYTES: usize = formats::WORD_BYTES;
/// Bytes of a line, the unit of storing, crediting and padding.
pub const LINE_BYTES: usize = formats::LINE_BYTES;
/// Words of 8 bytes in a line of 64.
pub const WORDS_PER_LINE: usize = formats::WORDS_PER_LINE;

/// One line as the words it is made of.
pub type Line = [u64; WORDS_PER_LINE];
