//! What may be chosen of an arena, and how its two memories are laid out.

use beeline_mmio::ARENA_PAGE_BYTES;
use beeline_spec::formats::{ARENA_TELLS, arena_client_memory, credit_page, window_control};

use crate::Admissions;
use crate::window::options::{SMALL_BYTES, WindowError, check_lines, line_bytes};

/// Most windows of one arena at a time.
pub const MAX_ARENA_WINDOWS: u32 = 16 * 1024;
/// Most bytes of the windows of one arena: 64 GiB. It is address space; memory is what is lent of it.
pub const MAX_ARENA_BYTES: usize = 1 << 36;

/// The owner's memory begins with a line for each window that there may be.
pub(super) const CONTROL_BYTES: usize = MAX_ARENA_WINDOWS as usize * window_control::BYTES;
/// The client's memory begins with the credits of each window that there may be.
pub(super) const CREDIT_BYTES: usize = MAX_ARENA_WINDOWS as usize * credit_page::BYTES;
/// Behind them is how much it has told, and what.
pub(super) const TELLS_OFFSET: usize = CREDIT_BYTES + arena_client_memory::BYTES;
/// All of the client's memory.
pub(super) const CLIENT_BYTES: usize = TELLS_OFFSET + ARENA_TELLS * 8;
const _: () = assert!(CONTROL_BYTES.is_multiple_of(ARENA_PAGE_BYTES));
const _: () = assert!(CREDIT_BYTES.is_multiple_of(ARENA_PAGE_BYTES));
// A window is opened, ended and returned before it is lent anew.
const _: () = assert!(ARENA_TELLS > 3 * MAX_ARENA_WINDOWS as usize && ARENA_TELLS.is_power_of_two());

/// Small windows, which are lent before they are wanted, that a client has in stock, at most.
pub(super) const STOCK: u32 = 32;
/// Of those, how many are lent together; all of them are at most a piece of a long work ([`beeline_mmio::PIECE_BYTES`]).
pub(super) const BATCH: u32 = 16;
const _: () = assert!(BATCH as usize * SMALL_BYTES <= beeline_mmio::PIECE_BYTES);
/// Bytes of memory that free windows of an arena keep.
pub(super) const KEPT_BYTES: usize = 1 << 20;

/// Windows that a receiver offers to each of several processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArenaOptions {
    /// Most lines of a window, as [`crate::WindowOptions::lines`]; clients may ask for fewer.
    pub lines: u32,
    /// Most windows of one client at a time, those included that are lent to it and not open: at most [`MAX_ARENA_WINDOWS`].
    pub windows: u32,
    /// Most bytes of a client's windows, each rounded up to a power of two of pages of 4 KiB; at most [`MAX_ARENA_BYTES`].
    pub bytes: usize,
    /// Clients at the same time. One process may be a sixteenth of them, and another user half; at least one. Nobody joins
    /// while windows of as many clients that have gone wait to be accepted; a process and another user have the same shares of these.
    pub clients: usize,
    /// Users besides the owner who may send.
    pub allowed_uids: Vec<u32>,
    /// Who may send besides, because it shares a connection with this process; `None`: nobody.
    pub admissions: Option<Admissions>,
}

impl Default for ArenaOptions {
    /// Up to 4,096 windows of up to 16 KiB in 64 MiB for each of 64 clients, this user only.
    fn default() -> Self {
        ArenaOptions {
            lines: 256,
            windows: 4096,
            bytes: 64 << 20,
            clients: 64,
            allowed_uids: Vec::new(),
            admissions: None,
        }
    }
}

impl ArenaOptions {
    pub(super) fn check(&self) -> Result<(), WindowError> {
        check_lines(self.lines)?;
        check_bytes(self.bytes)?;
        if self.windows == 0 || self.windows > MAX_ARENA_WINDOWS {
            return Err(WindowError::Arena {
                what: format!("{} windows; there may be 1 to {MAX_ARENA_WINDOWS}", self.windows),
            });
        }
        if part_bytes(self.lines) > self.bytes {
            return Err(WindowError::Arena {
                what: format!("{} bytes, in which no window of {} lines has room", self.bytes, self.lines),
            });
        }
        Ok(())
    }
}

/// Checks the bytes of an arena's windows.
pub(super) fn check_bytes(bytes: usize) -> Result<(), WindowError> {
    if bytes.is_multiple_of(ARENA_PAGE_BYTES) && (ARENA_PAGE_BYTES..=MAX_ARENA_BYTES).contains(&bytes) {
        return Ok(());
    }
    Err(WindowError::Arena {
        what: format!(
            "{bytes} bytes; it must be a multiple of {ARENA_PAGE_BYTES} from {ARENA_PAGE_BYTES} to {MAX_ARENA_BYTES}"
        ),
    })
}

/// Bytes that a window of so many lines takes.
pub(super) fn part_bytes(lines: u32) -> usize {
    line_bytes(lines).max(ARENA_PAGE_BYTES)
}

/// Where the line of a window lies in the owner's memory.
pub(super) fn control_offset(name: u32) -> usize {
    (name as usize - 1) * window_control::BYTES
}

/// Where the credits of a window lie in the client's memory.
pub(super) fn credit_offset(name: u32) -> usize {
    (name as usize - 1) * credit_page::BYTES
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn arenas_that_cannot_be_are_refused() {
        let good = ArenaOptions::default();
        good.check().unwrap();
        for bad in [
            ArenaOptions { lines: 3, ..good.clone() },
            ArenaOptions { windows: 0, ..good.clone() },
            ArenaOptions { windows: MAX_ARENA_WINDOWS + 1, ..good.clone() },
            ArenaOptions { bytes: 0, ..good.clone() },
            ArenaOptions { bytes: 4097, ..good.clone() },
            ArenaOptions { bytes: MAX_ARENA_BYTES * 2, ..good.clone() },
            ArenaOptions { bytes: 8192, ..good.clone() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        assert!(ArenaOptions { windows: MAX_ARENA_WINDOWS, bytes: MAX_ARENA_BYTES, ..good }.check().is_ok());
    }
}
