//! A NIC as a PCI function: what an emulator (or any client of vfio-user) puts into a guest's PCI bus.
//!
//! The vfio-user protocol carries what VFIO's ioctls say over a UNIX socket. [`Function`] serves it: configuration space, register
//! accesses (trapped, BAR 0), windows (memory that the guest maps, BAR 2), vectors (MSI-X, BAR 4), and the guest's memory, which
//! is mapped so that the device reaches it by bus address. Its other half is a [`beeline_link_shm::DevicePort`] with a
//! [`FunctionHost`] behind it, which the NIC process's loop polls like the port of a process. [`FunctionLink`] is the client: a
//! driver of user space reaches the function without a guest, and the tests do.
//!
//! Whoever may connect to the socket is trusted as its owner is: it has the guest's memory. The guest is not: whatever it stores,
//! reads or programs as an address, nothing outside its own memory is touched, and what is wrong is counted and answered as a bus
//! would, by ones (docs/decisions/0092-a-function-over-vfio-user.md).
//!
//! The protocol is our own code: the crate that there is ends its process on a malformed message.
#![forbid(unsafe_code)]

mod client;
mod config_space;
mod error;
mod function;
mod guest_memory;
mod host;
mod layout;
mod link;
mod message;
mod orders;
#[cfg(any(test, fuzzing))]
mod played;
mod serving;
mod socket;
mod windows;

pub use client::ClientError;
pub use error::FunctionError;
pub use function::{Function, FunctionStop};
pub use host::FunctionHost;
pub use link::{FunctionDoorbell, FunctionLink};
pub use message::Malformed;
pub use socket::Ended;

#[cfg(fuzzing)]
pub use played::{GUEST_BYTES, MOST_RECORDS, Record, play};
