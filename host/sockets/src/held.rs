//! Whether connections of this process are to leave windows alone, because somebody has ordered it.

use std::sync::atomic::{AtomicBool, Ordering};

use beeline_socket_rules::Windows;

static ARE_DOWN: AtomicBool = AtomicBool::new(false);

/// Whoever has a writer's lock and looks, and whoever sets it and then takes that lock: one of them sees the other.
pub(crate) fn are_down() -> bool {
    ARE_DOWN.load(Ordering::SeqCst)
}

pub(crate) fn set(windows: Windows) {
    ARE_DOWN.store(windows == Windows::Down, Ordering::SeqCst);
}
