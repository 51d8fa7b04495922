//! What clients and servers are told, and the bounds of windows.

use std::time::Duration;

use beeline_domain::Admissions;
use beeline_mmio::{MemoryOptions, StoreKernel};
use beeline_window::WaitPolicy;

use crate::calls::MAX_OUTSTANDING;
use crate::error::RpcError;

/// Settings of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Threads that share every client's requests, 1 to 64. One alone claims requests without an atomic operation.
    pub workers: usize,
    /// Lines of each client's request window, a power of two from 16. A window that is larger takes longer bursts; one
    /// that fits a core's own cache answers sooner (`docs/performance.md`).
    pub request_lines: u32,
    /// Backing of request windows.
    pub memory: MemoryOptions,
    /// Store kernel for answers.
    pub kernel: StoreKernel,
    /// Clients at the same time.
    pub max_clients: usize,
    /// Lines that a client's reply windows may have, each: their pages are brought in here. Together with the longest
    /// payload, twice a client and thread, it bounds what a client can make the server hold.
    pub max_reply_lines: u32,
    /// Users besides the owner who may call.
    pub allowed_uids: Vec<u32>,
    /// Who may call besides, because it shares a connection with this process. `None`: nobody. Clients with a token connect by
    /// [`crate::shm::Client::connect_proving`].
    pub admissions: Option<Admissions>,
}

impl Default for ServerOptions {
    /// One thread, 32 KiB a client, cached stores, 1024 clients of this user, reply windows to 1 MiB.
    fn default() -> Self {
        ServerOptions {
            workers: 1,
            request_lines: 512,
            memory: MemoryOptions::default(),
            kernel: StoreKernel::Cached,
            max_clients: 1024,
            max_reply_lines: 16 * 1024,
            allowed_uids: Vec::new(),
            admissions: None,
        }
    }
}

/// Settings of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Calls that may be outstanding, a power of two up to 32,768.
    pub max_outstanding: u32,
    /// Lines of each reply window, a power of two from 16.
    pub reply_lines: u32,
    /// Store kernel for requests.
    pub kernel: StoreKernel,
    /// How this side maps the request window; huge pages only from a server that it trusts
    /// ([`beeline_domain::StoreOptions::memory`]).
    pub memory: MemoryOptions,
    /// How [`crate::Client::wait`] and [`crate::Client::call`] wait.
    pub policy: WaitPolicy,
    /// Longest time that the first connection may take.
    pub timeout: Duration,
}

impl Default for ClientOptions {
    /// 1024 calls, 32 KiB windows, cached stores; spins, then sleeps.
    fn default() -> Self {
        ClientOptions {
            max_outstanding: 1024,
            reply_lines: 512,
            kernel: StoreKernel::Cached,
            memory: MemoryOptions::default(),
            policy: WaitPolicy::default(),
            timeout: Duration::from_secs(10),
        }
    }
}

impl ClientOptions {
    pub(super) fn check(&self) -> Result<(), RpcError> {
        check_lines("reply_lines", self.reply_lines)?;
        let slots = self.max_outstanding;
        if !slots.is_power_of_two() || slots > MAX_OUTSTANDING {
            let bounds = "a power of two up to 32768";
            return Err(RpcError::Option { option: "max_outstanding", value: u64::from(slots), bounds });
        }
        Ok(())
    }
}

/// The bounds of a window that carries calls.
pub(crate) fn check_lines(option: &'static str, lines: u32) -> Result<(), RpcError> {
    if lines.is_power_of_two() && (16..=1 << 17).contains(&lines) {
        return Ok(());
    }
    let bounds = "a power of two from 16 to 131072 lines";
    Err(RpcError::Option { option, value: u64::from(lines), bounds })
}
