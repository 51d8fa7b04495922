//! The atomics of what several receivers share, in one place: std's, or loom's when a model is run.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};
