//! Many windows between two processes, in memory that each of them has made once: an arena.
//!
//! A client joins ([`join_windows`]) what an owner offers ([`offer_windows`]), over one connection, and opens windows on it as
//! often as it likes. Each of the two passes the other one sparse memory: the owner the lines of all windows and the word that
//! each sender sleeps on, the client the credits of all windows. So ten thousand windows take two mappings and one connection of
//! each process. The two share their arena with nobody else: whoever has such memory can write all of it.
//!
//! The owner *lends* windows before they are wanted: blank, with a blank and an epoch of their own. The client opens one by telling
//! so in memory, and wakes whoever waits for it; its first message may be there before the owner hears of it. Each window ends by itself:
//! its peer ([`crate::Peer`]) is gone when the other side drops its half, while the connection and the other windows go on.
//! A window is lent anew only when both halves are gone, handles of its memory included, so that no late store, blank or credit of
//! an honest process reaches what was lent anew. A process that stores on all the same spoils its own windows: the arena has no others.
//!
//! What both tell each other is in `messages.rs`, how the client does in `tells.rs`, who hears it in `queue.rs`, and how the owner does
//! in `untold.rs`. What each keeps account of is in `slots.rs` (the owner) and `leases.rs` (the client), and what windows of clients that
//! have gone cost in `departed.rs`. docs/decisions/0035-arenas.md and docs/decisions/0041-windows-of-arenas-open-by-stores.md say why.

mod departed;
#[cfg(fuzzing)]
pub(crate) mod fuzzed;
mod leases;
mod listener;
mod messages;
mod options;
mod owner;
mod queue;
mod sender;
mod slots;
mod tells;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
mod untold;

pub use listener::{ArenaListener, offer_windows};
pub use options::{ArenaOptions, MAX_ARENA_BYTES, MAX_ARENA_WINDOWS};
pub use sender::{SenderArena, join_windows, join_windows_proving};
