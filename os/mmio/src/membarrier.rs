//! The barrier that lets senders do without a fence: the sleeper pays (docs/design.md, decision 5).
//!
//! A sender stores its message and looks at the receiver's flag, without a fence between the two, so that its look
//! may come before its stores are seen. The receiver therefore sets the flag, has the kernel run a full barrier on
//! every core that runs a registered process, and looks at its window again before it sleeps: either it sees the
//! message, or the sender sees the flag.

use rustix::io::Errno;
use rustix::thread::{MembarrierCommand, MembarrierQuery, membarrier, membarrier_query};

use crate::sync::{AtomicU32, Ordering};

/// Why the barrier is not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembarrierError {
    /// The kernel lacks the command.
    #[error(
        "this kernel has no MEMBARRIER_CMD_GLOBAL_EXPEDITED (Linux 4.16 with CONFIG_MEMBARRIER has it, and a container \
         must allow the system call): senders fence once a message instead"
    )]
    Unsupported,
    /// The kernel refused it.
    #[error("membarrier: {0}")]
    Refused(Errno),
}

/// The process that has registered; 0 for none. It is a number and not a flag, because a child inherits memory.
static REGISTERED: AtomicU32 = AtomicU32::new(0);

/// Whether the kernel has the barrier.
pub fn is_supported() -> bool {
    let needed = MembarrierQuery::GLOBAL_EXPEDITED | MembarrierQuery::REGISTER_GLOBAL_EXPEDITED;
    // Miri has no such system call.
    !cfg!(miri) && membarrier_query().contains(needed)
}

/// Registers this process: from now on [`global_expedited`], in whatever process, is a barrier for its threads too.
/// Once a process; doing it again is harmless.
pub fn register() -> Result<(), MembarrierError> {
    if !is_supported() {
        return Err(MembarrierError::Unsupported);
    }
    membarrier(MembarrierCommand::RegisterGlobalExpedited).map_err(MembarrierError::Refused)?;
    // Relaxed: it is only compared with this process's own number.
    REGISTERED.store(std::process::id(), Ordering::Relaxed);
    Ok(())
}

/// Whether this very process has registered. A child has not, until it does so itself.
pub fn is_registered() -> bool {
    REGISTERED.load(Ordering::Relaxed) == std::process::id()
}

/// A full barrier on every core that runs a registered process, this one included: when it returns, every store such
/// a process made before is seen here, and every load it makes from now on sees what was stored here. Some
/// microseconds; for those who are about to sleep.
pub fn global_expedited() -> Result<(), MembarrierError> {
    if cfg!(miri) {
        return Err(MembarrierError::Unsupported);
    }
    membarrier(MembarrierCommand::GlobalExpedited).map_err(|source| match source {
        Errno::INVAL | Errno::NOSYS => MembarrierError::Unsupported,
        source => MembarrierError::Refused(source),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_barrier_is_had_or_its_absence_is_told() {
        if is_supported() {
            assert_eq!(register(), Ok(()));
            assert!(is_registered());
            assert_eq!(global_expedited(), Ok(()));
        } else {
            assert_eq!((register(), is_registered()), (Err(MembarrierError::Unsupported), false));
            let text = global_expedited().unwrap_err().to_string();
            assert!(text.contains("fence once a message"), "{text}");
        }
    }

    #[test]
    #[cfg(not(miri))]
    fn a_child_is_not_registered() {
        if register().is_err() {
            return;
        }
        // SAFETY: the child only reads an atomic and its process number, and ends without running any destructor.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = i32::from(is_registered());
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) };
        }
        let mut status = -1;
        // SAFETY: waits for the child that was just made; `status` is ours.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0), "the child says that it has registered");
    }
}
