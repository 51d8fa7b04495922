//! The edge between C and Rust, shared by every C library of this repository: arguments, handles, panics, errors.
//!
//! - [`edge`](edge()) runs the body of an exported function: a panic ends there, a [`Failure`] becomes a code and a text that
//!   [`last_error`] gives to the same thread.
//! - [`Text`], [`Bytes`], [`Memory`], [`Array`], [`Pieces`], [`Places`], [`Out`], [`Options`], [`ParcelPointer`] and
//!   [`SpacePointer`] are pointers as C passes them. No other crate can make one, so a value exists only where C passed one;
//!   the library's header obliges C to pass NULL or memory that is there during the call. Each is looked at for NULL, length
//!   and alignment before it is followed.
//! - [`Handle`] names an object in a table: [`Owned`] for objects of one thread at a time, [`Shared`] and [`Pinned`] for objects of
//!   any. A use of a pinned object costs next to nothing, and lasts as long as the closure that it is shown to.
//!
//! # Handles are numbers
//! A handle has the type of a pointer in C, and is a number: a tag of its kind, the index of a slot, and the slot's
//! generation. It is never followed. NULL, a handle that was closed (also through a copy, also after its slot was used
//! again), a handle of another kind and an address of something else are refused with [`status::INVALID`]. A raw pointer
//! could be compared with NULL only; every other mistake would be undefined behaviour. A pair of index and generation is
//! given once: a slot whose generations are used up is retired.
//!
//! Tables are static arrays of fixed size, all zero at the start, so that they take address space but no memory until
//! slots are used, and that the slot of a handle is found without a load, a lock or a branch on the table's size.
#![expect(unsafe_code, reason = "pointers that C passes are followed here")]

mod argument;
mod arrays;
mod edge;
mod errno;
mod handle;
mod options;
mod owned;
mod parcel;
mod pinned;
mod shared;
pub mod status;
mod sync;
mod thread;

pub use argument::{Array, Bytes, Memory, Out, Text};
pub use arrays::{Piece, Pieces, Places};
pub use edge::{Failure, Outcome, Reason, edge, edge_or, keep, last_error};
pub use errno::{EINVAL, set_errno};
pub use handle::{Handle, HandleVariable, Kind};
pub use options::{Options, OptionsOfC};
pub use owned::{Caller, Owned, Pass, SlotRef};
pub use parcel::{EmptySpace, MAX_FDS, Parcel, ParcelPointer, Space, SpacePointer, duplicate, duplicate_all};
pub use pinned::{Pinned, ShortLook};
pub use shared::Shared;
