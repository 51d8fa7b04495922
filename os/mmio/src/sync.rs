//! The atomics of this crate, in one place.
//!
//! They are always those of `core`: most words they stand for lie in memory another process maps, where loom's models
//! of atomics cannot stand. The protocols made of those are modelled with loom in `host/window` and `os/domain`. What this process
//! keeps for itself is modelled in `tests/loom_*.rs`, which take the files in with loom's atomics in this module's place.

pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
