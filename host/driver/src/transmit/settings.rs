//! What the transmit queues of every interface are told.

/// Settings common to all transmit queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxQueueConfig {
    /// Epoch the queue starts with; recovery raises it by one.
    pub epoch: u8,
    /// Strict priority class, 0 served first; at most 15.
    pub class: u8,
    /// Weight inside the class; 0 reads as 1.
    pub weight: u8,
    /// Whether complete messages may wait in the device's pool instead of counting on credits alone.
    pub backpressure: bool,
    /// Whether the device fills in the checksums of IPv4, TCP and UDP; it must have the feature.
    pub checksums: bool,
    /// How long the device lets a hole stand before it quarantines the queue, in ns; 0 leaves the device's default.
    pub hole_timeout_ns: u64,
}

impl Default for TxQueueConfig {
    fn default() -> Self {
        TxQueueConfig {
            epoch: 1,
            class: 0,
            weight: 1,
            backpressure: false,
            checksums: false,
            hole_timeout_ns: 0,
        }
    }
}

/// When the device pushes the credit count into the sender's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditCoalescing {
    /// At the latest after this many freed lines; 0 takes an eighth of the window.
    pub lines: u32,
    /// At the latest after this many ns.
    pub time_ns: u32,
}

impl Default for CreditCoalescing {
    fn default() -> Self {
        CreditCoalescing { lines: 0, time_ns: 2_000 }
    }
}
