//! What a machine counts.

/// What a machine has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes of memory that the device has read.
    pub memory_read_bytes: u64,
    /// Bytes of memory that the device has written.
    pub memory_written_bytes: u64,
    /// Interrupts that it has raised.
    pub interrupts: u64,
    /// Accesses of it that were no memory of its port.
    pub faults: u64,
    /// Frames that ended with an abort mark.
    pub aborted: u64,
    pub writes_taken: u64,
}
