//! The atomics of this crate, in one place.
//!
//! They are always those of `core`: the words they stand for lie in memory another process maps, where loom's models
//! of atomics cannot stand. The protocols made of them are modelled with loom in `host/window` and `os/domain`.

pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
