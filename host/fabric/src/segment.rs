//! Segments, as their member and as others see them.

pub(crate) mod holder;
pub(crate) mod local;
pub(crate) mod memory;
pub(crate) mod remote;
pub(crate) mod slots;
pub(crate) mod users;
pub(crate) mod waiters;
