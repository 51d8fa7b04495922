//! Notifications: what `include/beeline_notify.h` declares.
//!
//! Objects here may be used by any thread at any time (`os/ffi`, `Shared`). Callbacks run on threads of the library
//! (`callback.rs`).

mod answering;
mod callback;
mod notifier;
mod subscription;
