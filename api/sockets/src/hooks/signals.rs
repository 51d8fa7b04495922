//! Handlers of signals: whether the kernel would make a call again that one interrupts.

use core::ffi::{c_int, c_long};

use crate::process::restart_no_calls;

/// Prepares for `sigaction`. A handler without `SA_RESTART` ends calls with `EINTR`.
pub fn before_action([_, action, _]: [c_long; 3]) {
    let action = action as *const libc::sigaction;
    // SAFETY: null, or the action that the program gives.
    if let Some(action) = unsafe { action.as_ref() }
        && !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
        && action.sa_flags & libc::SA_RESTART == 0
    {
        restart_no_calls();
    }
}

/// Prepares for `siginterrupt`.
pub fn before_interrupt([_, interrupts, _]: [c_long; 3]) {
    if interrupts as c_int != 0 {
        restart_no_calls();
    }
}

/// Prepares for handlers of System V, which end calls.
pub fn before_unreliable_handler(_arguments: [c_long; 3]) {
    restart_no_calls();
}
