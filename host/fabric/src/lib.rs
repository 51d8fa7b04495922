//! The semantics of a fabric of nodes: segments of memory that members of other nodes connect to and store into.
//!
//! A member is a process of a node. It *publishes what it is* in words that it alone stores, its board, and *what it uses* of
//! another member in words that it alone stores, its claims. Everybody else only loads. So connecting, removing and checking are
//! stores and loads of a few words, exact by one barrier on each side; a ring between members says "look" and carries nothing
//! (`docs/decisions/0039-boards-and-claims.md`).
//!
//! [`Member`] is one member's part of it: a state machine without a clock, a thread, a lock or a system call. What blocks or asks
//! the kernel leaves it as a [`Want`], and comes back by [`Member::answered`] and [`Member::reached`]. Calls are SISCI's (eXpressWare,
//! SISCI), and so are their refusals ([`Refusal`]). The data of segments does not pass here: members map the memory and store.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod bank;
mod board;
mod call;
mod calls;
mod claims;
#[cfg(all(test, not(loom)))]
mod claims_states;
mod dma;
mod event;
mod held;
mod ids;
mod index;
mod interrupt;
mod lent;
mod link;
mod linked;
mod look;
#[cfg(all(test, loom))]
#[path = "interrupt/bell_loom.rs"]
mod loom_bell;
#[cfg(all(test, loom))]
#[path = "claims_loom.rs"]
mod loom_claims;
mod member;
mod note;
mod pairs;
mod refusal;
mod report;
mod segment;
mod sequence;
mod told;
mod want;

pub use access::Access;
pub use bank::BANK_BYTES;
pub use board::group_at;
pub use board::layout::{
    BOARD_WORDS, CLAIM_WORDS, COUNT_STRIDE, ENTRY_WORDS, FORMAT_WORD, HEADER_WORDS, USE_WORDS,
};
pub use call::{Call, Done, Value};
pub use calls::FIRST_CONTACT_NANOS;
pub use dma::{DmaDirection, DmaEntry, DmaQueue, DmaSides, DmaState, MAX_DMA_ENTRIES, PIECE_BYTES, Piece};
pub use event::{LocalEvent, RemoteEvent};
pub use ids::{
    AdapterNumber, AskId, InterruptNumber, LocalInterrupt, LocalSegment, MemberNumber, MemberRange, Name,
    NameKind, Nanos, NodeId, PairId, RemoteInterrupt, RemoteSegment, SegmentId, Slot, Ticket,
};
pub use interrupt::bell::{Announced, Bell, Sleepers, ring, rouse};
pub use interrupt::remote::Trigger;
pub use interrupt::take::{Take, has_begun};
pub use interrupt::{InterruptKind, MAX_MESSAGE_BYTES, Place};
pub use lent::Borrowed;
pub use linked::until_linked;
pub use member::{Config, Member};
pub use refusal::Refusal;
pub use report::{EntryReport, Holding, LinkReport, MemberReport, SegmentReport, SegmentStage};
pub use segment::holder::{Holder, Lent};
pub use segment::memory::{Memory, Part};
pub use sequence::{ConnectionView, SequenceStart, SequenceStatus};
pub use told::Told;
pub use want::{Answer, Candidate, Found, NameOp, Reached, Want};
