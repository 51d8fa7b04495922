//! The client's account of what the owner has lent it.
//!
//! The owner is not trusted: a window must lie in the arena, on a page, have a size and a blank that can be, and share no byte and
//! no name with another one that is lent.

use std::collections::{BTreeMap, HashMap};

use beeline_mmio::ARENA_PAGE_BYTES;
use beeline_spec::escape::is_blank_value;

use super::messages::Lease;
use super::options::{CONTROL_BYTES, part_bytes};
use crate::window::options::check_lines;

/// What is lent, open or not.
#[derive(Debug)]
pub(super) struct Leases {
    /// Bytes of the owner's memory.
    bytes: usize,
    /// Lines of the windows that are kept in stock.
    lines: u32,
    /// The end of each window by its start.
    ranges: BTreeMap<usize, usize>,
    /// Each window by its name.
    held: HashMap<u32, Holding>,
    stock: Vec<Lease>,
}

#[derive(Debug)]
struct Holding {
    start: usize,
    /// Whether its receiver has ended.
    is_ended: bool,
}

impl Leases {
    /// Nothing is lent of `bytes` bytes of memory; windows of `lines` lines are to be.
    pub(super) fn new(bytes: usize, lines: u32) -> Self {
        Leases { bytes, lines, ranges: BTreeMap::new(), held: HashMap::new(), stock: Vec::new() }
    }

    /// Takes a window in, and keeps it in stock if it has as many lines as those.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn take_in(&mut self, lease: Lease) -> Result<(), String> {
        self.add(lease)?;
        if lease.lines == self.lines {
            self.stock.push(lease);
        }
        Ok(())
    }

    /// Takes a window in that is opened at once.
    ///
    /// # Errors
    /// As [`Leases::take_in`].
    pub(super) fn add(&mut self, lease: Lease) -> Result<(), String> {
        let Lease { name, lines, offset_bytes, blank, .. } = lease;
        check_lines(lines).map_err(|error| error.to_string())?;
        let start = usize::try_from(offset_bytes).map_err(|_| format!("offset {offset_bytes}"))?;
        let end = start.checked_add(part_bytes(lines)).filter(|end| *end <= self.bytes);
        let Some(end) = end.filter(|_| start >= CONTROL_BYTES && start.is_multiple_of(ARENA_PAGE_BYTES))
        else {
            return Err(format!("{lines} lines at offset {start} of {} bytes", self.bytes));
        };
        if !is_blank_value(blank) {
            return Err(format!("blank {blank:#018x} has bit 63 clear"));
        }
        // The one that begins last before the end is the only one that can reach beyond the start.
        if let Some((other, _)) =
            self.ranges.range(..end).next_back().filter(|(_, other_end)| **other_end > start)
        {
            return Err(format!(
                "the window at offset {start} and the one at {other}, which is lent, overlap"
            ));
        }
        if self.held.contains_key(&name) {
            return Err(format!("window {name} is lent twice"));
        }
        self.ranges.insert(start, end);
        self.held.insert(name, Holding { start, is_ended: false });
        Ok(())
    }

    /// Takes a window out of the stock: the one that came last, whose lines may still be in a cache.
    pub(super) fn take(&mut self) -> Option<Lease> {
        self.stock.pop()
    }

    /// The receiver of a window has ended; `false` if this side has returned it meanwhile.
    pub(super) fn receiver_ended(&mut self, name: u32) -> bool {
        self.held.get_mut(&name).map(|holding| holding.is_ended = true).is_some()
    }

    /// The window is about to be returned; whether its receiver has ended before, as far as is known.
    pub(super) fn give_up(&mut self, name: u32) -> bool {
        self.held.remove(&name).is_some_and(|holding| {
            self.ranges.remove(&holding.start);
            holding.is_ended
        })
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::window::arena::options::MAX_ARENA_WINDOWS;

    const BYTES: usize = CONTROL_BYTES + 64 * 4096;
    const GOOD: Lease =
        Lease { name: 1, lines: 128, offset_bytes: CONTROL_BYTES as u64 + 8192, blank: 1 << 63, epoch: 0 };

    #[test]
    fn hostile_leases_are_refused() {
        for bad in [
            Lease { lines: 0, ..GOOD },
            Lease { lines: 100, ..GOOD },
            Lease { lines: 1 << 25, ..GOOD },
            Lease { lines: 1 << 24, ..GOOD },
            Lease { offset_bytes: 0, ..GOOD },
            Lease { offset_bytes: CONTROL_BYTES as u64 - 4096, ..GOOD },
            Lease { offset_bytes: CONTROL_BYTES as u64 + 64, ..GOOD },
            Lease { offset_bytes: BYTES as u64 - 4096, ..GOOD },
            Lease { offset_bytes: BYTES as u64, ..GOOD },
            Lease { offset_bytes: u64::MAX - 4095, ..GOOD },
            Lease { blank: 5, ..GOOD },
        ] {
            let mut leases = Leases::new(BYTES, 128);
            assert!(leases.take_in(bad).is_err(), "{bad:?}");
            leases.take_in(GOOD).unwrap();
        }
    }

    #[test]
    fn windows_that_share_bytes_or_a_name_with_one_that_is_lent_are_refused() {
        let mut leases = Leases::new(BYTES, 128);
        leases.take_in(GOOD).unwrap();
        assert!(
            leases.take_in(Lease { offset_bytes: GOOD.offset_bytes + 8192, ..GOOD }).is_err(),
            "its name"
        );
        for (pages, lines, is_free) in [
            (0i64, 128, false),
            (1, 64, false),
            (1, 128, false),
            (-1, 64, true),
            (-1, 128, false),
            (2, 64, true),
            (-2, 512, false),
            (-2, 64, true),
        ] {
            let offset_bytes = GOOD.offset_bytes.strict_add_signed(pages * 4096);
            let taken = leases.take_in(Lease { name: 2, lines, offset_bytes, ..GOOD });
            assert_eq!(taken.is_ok(), is_free, "{pages} {lines}");
            leases.give_up(2);
            assert_eq!(leases.ranges.len(), 1);
        }
        assert!(leases.receiver_ended(1) && leases.give_up(1));
        assert!(!leases.receiver_ended(1) && !leases.give_up(1));
        leases.take_in(Lease { name: MAX_ARENA_WINDOWS, ..GOOD }).unwrap();
    }

    #[test]
    fn only_windows_of_the_usual_size_are_in_stock() {
        let mut leases = Leases::new(BYTES, 128);
        leases.take_in(GOOD).unwrap();
        let other = Lease { name: 2, lines: 64, offset_bytes: GOOD.offset_bytes + 8192, ..GOOD };
        leases.take_in(other).unwrap();
        assert_eq!((leases.take(), leases.take()), (Some(GOOD), None));
        assert!(leases.take_in(GOOD).is_err(), "it is open");
    }
}
