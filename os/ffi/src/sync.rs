//! The atomics of what loom runs (`tests/loom_pinned.rs` takes the files in with loom's in this module's place).

pub(crate) use core::hint::spin_loop;
pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
