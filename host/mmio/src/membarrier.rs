//! The barrier that lets senders do without a fence: the sleeper pays.

use rustix::io::Errno;
use rustix::thread::{MembarrierCommand, MembarrierQuery, membarrier, membarrier_query};

use crate::sync::{AtomicU32, Ordering};

/// Why the barrier is not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembarrierError {
    /// The kernel lacks the command.
    #[error("the kernel has no MEMBARRIER_CMD_GLOBAL_EXPEDITED (Linux 4.16 or later with CONFIG_MEMBARRIER)")]
    Unsupported,
    /// The kernel refused it.
    #[error("membarrier failed: {0}")]
    Refused(Errno),
}

static REGISTERED: AtomicU32 = AtomicU32::new(0);

/// Whether the kernel has the command.
pub fn is_supported() -> bool {
    let query = membarrier_query();
    query.contains(MembarrierQuery::GLOBAL_EXPEDITED | MembarrierQuery::REGISTER_GLOBAL_EXPEDITED)
}

/// Registers this process as one whose stores [`global_expedited`] of others orders.
pub fn register() -> Result<(), MembarrierError> {
    if !is_supported() {
        return Err(MembarrierError::Unsupported);
    }
    membarrier(MembarrierCommand::RegisterGlobalExpedited).map_err(MembarrierError::Refused)?;
    REGISTERED.store(std::process::id(), Ordering::Relaxed);
    Ok(())
}

/// Whether this very process has registered (a child after fork has not).
pub fn is_registered() -> bool {
    REGISTERED.load(Ordering::Relaxed) == std::process::id()
}

/// A full barrier on every core that runs a registered process.
pub fn global_expedited() -> Result<(), MembarrierError> {
    membarrier(MembarrierCommand::GlobalExpedited).map_err(MembarrierError::Refused)
}
