//! Windows between two processes: the rendezvous that gives each side its half, ready for `host/window`.
//!
//! The receiver owns the window (a control page, then the lines, all blank), the sender its credit page; each passes
//! the other a descriptor of sealed memory over the connection. Blank, epoch and size travel in the answer, never in
//! shared memory. A window has one sender. When that one goes, in order or not, its window is never used again: the
//! next sender gets a fresh one, so that late stores of the old one reach nothing that is read.
//!
//! Many windows between two processes, without a descriptor and a mapping for each, are in an arena (`arena/`).
//!
//! Neither messages nor credits are understood here; see `host/window` for both.

mod arena;
mod halves;
mod hello;
mod listener;
mod options;
mod sender;
mod spare;
mod store;
mod waiting;

pub use arena::{
    ArenaListener, ArenaOptions, MAX_ARENA_BYTES, MAX_ARENA_WINDOWS, SenderArena, join_windows,
    join_windows_proving, offer_windows,
};
pub use halves::{CreditPage, FreshWindow, ReceiverParts, SenderParts, WindowTerms};
pub use listener::{WindowListener, offer_window};
pub use options::{MAX_WINDOW_LINES, StoreOptions, WindowError, WindowOptions};
pub use sender::{connect_window, connect_window_proving};
pub use store::PeerWindow;

/// Reads a sender's request, for [`crate::fuzzing`].
#[cfg(fuzzing)]
pub(crate) fn decode_request(request: &[u8]) -> Result<Option<beeline_mmio::StoreKernel>, String> {
    hello::Request::decode(request)
}

#[cfg(fuzzing)]
pub(crate) use arena::fuzzed;

/// Reads lines and bytes of a receiver's answer, for [`crate::fuzzing`].
#[cfg(fuzzing)]
pub(crate) fn decode_answer(answer: &[u8]) -> Result<(u32, usize), WindowError> {
    let terms = hello::decode_answer(answer)?;
    terms.check(true)?;
    Ok((terms.lines, terms.bytes))
}
