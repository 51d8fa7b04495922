//! What may be chosen of a window, and why there is none.

use beeline_mmio::{MapError, MemoryOptions, StoreKernel};
use beeline_spec::LINE_BYTES;
use beeline_spec::formats::CONTROL_PAGE_BYTES;

use crate::Admissions;
use crate::error::{ConnectError, OfferError};

/// Most lines of a window: 1 GiB.
pub const MAX_WINDOW_LINES: u32 = 1 << 24;

/// A window of so many bytes is made where it is asked for, on the domain's thread too: a page comes in and is blanked in about a
/// microsecond. Larger ones are made by the workers.
pub(super) const SMALL_BYTES: usize = 16 << 10;

/// The window a receiver offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowOptions {
    /// Lines of 64 bytes, a power of two from 2 to [`MAX_WINDOW_LINES`]. The longest message must fit, and the lines
    /// must cover what is sent during a credit round trip.
    pub lines: u32,
    /// How its memory is backed.
    pub memory: MemoryOptions,
    /// Users besides the owner who may send.
    pub allowed_uids: Vec<u32>,
    /// Who may send besides, because it shares a connection with this process; `None`: nobody.
    pub admissions: Option<Admissions>,
}

impl Default for WindowOptions {
    /// 1 MiB, ordinary memory, this user only.
    fn default() -> Self {
        let (lines, memory, allowed_uids) = (16 * 1024, MemoryOptions::default(), Vec::new());
        WindowOptions { lines, memory, allowed_uids, admissions: None }
    }
}

/// How a sender stores into a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// The instruction sequence that stores a line.
    pub kernel: StoreKernel,
    /// Whether this side locks its mapping of the window, and whether it accepts huge pages: only from a receiver that
    /// it trusts, see [`beeline_mmio::SharedMemory::from_fd_with`].
    pub memory: MemoryOptions,
}

impl StoreOptions {
    /// This kernel; ordinary memory.
    pub fn with_kernel(kernel: StoreKernel) -> Self {
        StoreOptions { kernel, memory: MemoryOptions::default() }
    }
}

/// Why there is no window.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// The number of lines cannot be.
    #[error("a window of {lines} lines; it must be a power of two from 2 to {MAX_WINDOW_LINES}")]
    Lines {
        /// Lines asked for, or said by the receiver.
        lines: u32,
    },
    /// The name cannot be offered.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// The receiver cannot be reached, or refuses.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Memory cannot be had or is not what it must be.
    #[error(transparent)]
    Memory(#[from] MapError),
    /// The receiver's answer makes no sense.
    #[error("the receiver's answer is not that of a window: {what}")]
    Malformed { what: String },
    /// An arena or a window of it cannot be as it was asked for.
    #[error("an arena of {what}")]
    Arena { what: String },
}

pub(super) fn check_lines(lines: u32) -> Result<(), WindowError> {
    if lines.is_power_of_two() && (2..=MAX_WINDOW_LINES).contains(&lines) {
        return Ok(());
    }
    Err(WindowError::Lines { lines })
}

/// Bytes of the lines of a window.
pub(super) fn line_bytes(lines: u32) -> usize {
    lines as usize * LINE_BYTES
}

/// Bytes of a window's memory, its control page included, before rounding to pages.
pub(super) fn window_bytes(lines: u32) -> usize {
    CONTROL_PAGE_BYTES + line_bytes(lines)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn only_powers_of_two_in_bounds_are_lines() {
        for lines in [2, 64, MAX_WINDOW_LINES] {
            assert!(check_lines(lines).is_ok());
        }
        for lines in [0, 1, 3, 65, MAX_WINDOW_LINES * 2, u32::MAX] {
            assert!(matches!(check_lines(lines), Err(WindowError::Lines { lines: l }) if l == lines));
        }
    }
}
