//! How windows are offered and used. Options are made with `new()` and changed by methods; more of them can come.

use std::time::Duration;

use beeline_domain::WindowOptions;
use beeline_mmio::{Choice, MemoryOptions, NotChosen, StoreKernel, Traffic};
use beeline_tuning::{ReceiveTuning, kernel_for};
use beeline_window::{FencePolicy, WaitPolicy};

use crate::Admissions;

/// The window that a receiver offers: 16,384 lines (1 MiB) of ordinary memory, for senders of this user; the receiver looks,
/// then sleeps.
///
/// ```
/// let options = beeline::ReceiverOptions::new().lines(512).huge_pages(true);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ReceiverOptions {
    pub(crate) window: WindowOptions,
    pub(crate) wait: WaitPolicy,
    pub(crate) tuning: Option<ReceiveTuning>,
}

impl ReceiverOptions {
    /// 16,384 lines of ordinary memory, for senders of this user.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lines of 64 bytes, a power of two from 2 to 2^24. The longest message must fit, with 8 bytes of header.
    pub fn lines(mut self, lines: u32) -> Self {
        self.window.lines = lines;
        self
    }

    /// Looks, yields and sleeps as `policy` says while nothing has arrived.
    pub fn wait(mut self, policy: WaitPolicy) -> Self {
        self.wait = policy;
        self
    }

    /// Looks at the window this way, whatever was timed before; [`crate::Domain::receiver`] says what stands otherwise.
    pub fn tuning(mut self, tuning: ReceiveTuning) -> Self {
        self.tuning = Some(tuning);
        self
    }

    /// Backs the window with huge pages that the administrator has reserved. The sender must accept them too
    /// ([`SenderOptions::huge_pages`]).
    pub fn huge_pages(mut self, huge: bool) -> Self {
        self.window.memory.huge_pages = huge;
        self
    }

    /// Locks the window into RAM; it counts against `RLIMIT_MEMLOCK`.
    pub fn locked(mut self, locked: bool) -> Self {
        self.window.memory.locked = locked;
        self
    }

    /// Users besides the domain's owner who may send. They open the domain with [`crate::Domain::open_foreign`].
    pub fn allowed_uids(mut self, uids: impl IntoIterator<Item = u32>) -> Self {
        self.window.allowed_uids = uids.into_iter().collect();
        self
    }

    /// Who may send besides, because it shares a connection with this process.
    pub fn admissions(mut self, admissions: &Admissions) -> Self {
        self.window.admissions = Some(admissions.0.clone());
        self
    }
}

/// How a sender stores and waits: with the instructions of the lowest latency, without fences; it looks, then sleeps. The
/// receiver must be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct SenderOptions {
    pub(crate) traffic: Traffic,
    pub(crate) kernel: Option<StoreKernel>,
    pub(crate) fences: FencePolicy,
    pub(crate) wait: WaitPolicy,
    pub(crate) memory: MemoryOptions,
    pub(crate) timeout: Duration,
}

impl Default for SenderOptions {
    fn default() -> Self {
        SenderOptions {
            traffic: Traffic::Latency,
            kernel: None,
            fences: FencePolicy::None,
            wait: WaitPolicy::default(),
            memory: MemoryOptions::default(),
            timeout: Duration::ZERO,
        }
    }
}

impl SenderOptions {
    /// The kernel that was asked for, or the one that is fastest here.
    pub(crate) fn store_kernel(&self) -> Result<StoreKernel, NotChosen> {
        match self.kernel {
            Some(named) => Ok(Choice::make(self.traffic, Some(named))?.kernel),
            None => Ok(kernel_for(self.traffic)),
        }
    }

    /// The kernel that is fastest for latency, no fence, and a receiver that must be there already.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the store instructions are chosen for; [`crate::Domain::sender`] says how.
    pub fn traffic(mut self, traffic: Traffic) -> Self {
        self.traffic = traffic;
        self
    }

    /// Stores with this kernel; nothing is timed or looked up. One that this machine lacks is an error of the connection.
    pub fn kernel(mut self, kernel: StoreKernel) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// Where the sender fences; nowhere, unless you want to see what it costs.
    pub fn fences(mut self, policy: FencePolicy) -> Self {
        self.fences = policy;
        self
    }

    /// How the sender waits for room.
    pub fn wait(mut self, policy: WaitPolicy) -> Self {
        self.wait = policy;
        self
    }

    /// Accepts a window of huge pages. Only from a receiver that you trust: it could take them back, which would stop this
    /// program.
    pub fn huge_pages(mut self, accepted: bool) -> Self {
        self.memory.huge_pages = accepted;
        self
    }

    /// Locks this side's mapping of the window into RAM.
    pub fn locked(mut self, locked: bool) -> Self {
        self.memory.locked = locked;
        self
    }

    /// How long to wait for a receiver that is not there yet; not at all by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}
