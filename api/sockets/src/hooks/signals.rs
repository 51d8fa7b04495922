//! Handlers of signals: whether the kernel would make a call again that one interrupts.

use core::ffi::{c_int, c_long};

use crate::process::set_ends_calls;

/// Prepares for `sigaction`. A handler without `SA_RESTART` ends calls with `EINTR`.
pub fn before_action([signal, action, _]: [c_long; 3]) {
    let action = action as *const libc::sigaction;
    // SAFETY: null, or the action that the program gives.
    if let Some(action) = unsafe { action.as_ref() } {
        let has_handler = !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN);
        set_ends_calls(signal as c_int, has_handler && action.sa_flags & libc::SA_RESTART == 0);
    }
}

/// Prepares for `signal`, whose handlers have calls made again.
pub fn before_handler([signal, ..]: [c_long; 3]) {
    set_ends_calls(signal as c_int, false);
}

/// Prepares for `siginterrupt`.
pub fn before_interrupt([signal, interrupts, _]: [c_long; 3]) {
    set_ends_calls(signal as c_int, interrupts as c_int != 0);
}

/// Prepares for handlers of System V, which end calls.
pub fn before_unreliable_handler([signal, ..]: [c_long; 3]) {
    set_ends_calls(signal as c_int, true);
}
