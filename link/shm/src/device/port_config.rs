//! How a port is served.

use beeline_mmio::MemoryOptions;

/// How a port is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Lines beyond an incomplete one that are looked at, so that disorder reaches the device's reorder unit. At most
    /// the reorder span less one; 0 hides disorder from the device.
    pub look_ahead_lines: u32,
    /// Lines of a window delivered in one turn, at least 1.
    pub burst_lines: u32,
    /// How far ahead of the frontier lines are fetched into the cache.
    pub prefetch_lines: u32,
    /// Bytes that a port may have mapped in this process, in total: its windows, and the memory its host registers. What
    /// was closed counts until the loop has let go of it.
    pub max_memory_bytes: u64,
    /// Regions that a port may register.
    pub max_regions: u32,
    /// How the windows and doorbells are backed.
    pub memory: MemoryOptions,
}

impl Default for PortConfig {
    fn default() -> Self {
        PortConfig {
            look_ahead_lines: 16,
            burst_lines: 96,
            prefetch_lines: 32,
            max_memory_bytes: 256 << 20,
            max_regions: 4096,
            memory: MemoryOptions::default(),
        }
    }
}
