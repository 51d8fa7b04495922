//! How much disorder there was: the reorder span that each write would have needed.
//!
//! For every write into a window: how many lines a receiver has to hold, from the line of the first byte that has not
//! arrived up to the line that the write is in. In order that is one. What a receiver holds at most is its reorder span
//! (a capability register); disorder beyond it fails a queue. HotOS'25, section 2.5.

use std::collections::VecDeque;

use beeline_contract_device::{Enables, Write};
use beeline_link_sim::machine::Aperture;

const LINE_BYTES: u64 = 64;

/// A histogram of spans that were needed, over the windows of all queues.
///
/// It stands for senders that fill their windows line by line, every byte once a time, as `mmio` and `kpio` do. Costs a few
/// operations a write and 8 bytes for each line that is out of order.
#[derive(Clone, Debug)]
pub struct Spans {
    aperture: Aperture,
    windows: Vec<Window>,
    /// Writes by the lines that they needed, from one on.
    needed: Vec<u64>,
}

/// Bytes of a window that have arrived.
#[derive(Clone, Debug, Default)]
struct Window {
    /// Lines that have arrived whole, and all before them.
    frontier: u64,
    /// Bytes that have arrived of the lines from there on, a bit each.
    arrived: VecDeque<u64>,
}

impl Spans {
    /// None yet, of windows that lie as `aperture` says.
    pub fn new(aperture: Aperture) -> Spans {
        Spans { aperture, windows: vec![Window::default(); aperture.queues as usize], needed: Vec::new() }
    }

    /// A write arrived; those outside windows are not counted.
    pub fn arrived(&mut self, write: &Write<'_>) {
        let Some(at) = write.offset_bytes.checked_sub(self.aperture.offset_bytes) else { return };
        let (queue, at) = (at / self.aperture.stride_bytes, at % self.aperture.stride_bytes);
        let lines = u64::from(self.aperture.window_lines);
        let Some(window) = self.windows.get_mut(queue as usize) else { return };
        if at >= lines * LINE_BYTES {
            return;
        }
        let mut needed = 0;
        let mut from = 0;
        while from < write.data.len() as u64 {
            let first = (at + from) % LINE_BYTES;
            let count = (LINE_BYTES - first).min(write.data.len() as u64 - from);
            let mask = (u64::MAX >> (LINE_BYTES - count)) << first;
            let mask = match write.enables {
                Enables::All => mask,
                Enables::Mask(enabled) => mask & ((enabled >> from) << first),
            };
            needed = needed.max(window.arrived((at + from) / LINE_BYTES, mask, lines));
            from += count;
        }
        let needed = needed as usize;
        if self.needed.len() < needed {
            self.needed.resize(needed, 0);
        }
        if let Some(count) = self.needed.get_mut(needed.wrapping_sub(1)) {
            *count += 1;
        }
    }

    /// Those of the windows of another device too. What is whole of a window stays what it was.
    pub fn merge(&mut self, others: &Spans) {
        if self.needed.len() < others.needed.len() {
            self.needed.resize(others.needed.len(), 0);
        }
        for (count, more) in self.needed.iter_mut().zip(&others.needed) {
            *count += more;
        }
    }

    /// Writes that were counted.
    pub fn writes(&self) -> u64 {
        self.needed.iter().sum()
    }

    /// Writes that needed more than so many lines.
    pub fn beyond(&self, lines: usize) -> u64 {
        self.needed.iter().skip(lines).sum()
    }

    /// Most lines that a write needed; 0 without any write.
    pub fn most(&self) -> usize {
        self.needed.len()
    }
}

impl Window {
    /// Bytes of a line arrived; how many lines were to be held.
    fn arrived(&mut self, line: u64, mask: u64, lines: u64) -> u64 {
        // Line numbers come round, and no line is stored again before it was whole.
        let ahead = line.wrapping_sub(self.frontier) & (lines - 1);
        let index = ahead as usize;
        if self.arrived.len() <= index {
            self.arrived.resize(index + 1, 0);
        }
        self.arrived[index] |= mask;
        while self.arrived.front() == Some(&u64::MAX) {
            self.arrived.pop_front();
            self.frontier += 1;
        }
        ahead + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APERTURE: Aperture =
        Aperture { offset_bytes: 4096, stride_bytes: 4096, window_lines: 8, queues: 2 };

    fn write(spans: &mut Spans, queue: u64, from_bytes: u64, bytes: usize) {
        let offset_bytes = 4096 * (1 + queue) + from_bytes;
        spans.arrived(&Write { offset_bytes, data: &vec![1; bytes], enables: Enables::All });
    }

    #[test]
    fn lines_in_order_need_one_line_lap_after_lap() {
        let mut spans = Spans::new(APERTURE);
        for line in 0..32 {
            write(&mut spans, 0, line % 8 * 64, 64);
        }
        assert_eq!((spans.writes(), spans.most(), spans.beyond(1)), (32, 1, 0));
    }

    #[test]
    fn a_line_that_is_late_is_counted_by_those_that_pass_it() {
        let mut spans = Spans::new(APERTURE);
        for line in [1, 2, 0, 3] {
            write(&mut spans, 0, line * 64, 64);
        }
        // Lines 1 and 2 came while line 0 was missing; then the frontier was behind line 2.
        assert_eq!((spans.beyond(0), spans.beyond(1), spans.beyond(2), spans.most()), (4, 2, 1, 3));
        write(&mut spans, 1, 64, 64);
        assert_eq!(spans.beyond(1), 3, "each window has a frontier of its own");
    }

    #[test]
    fn a_line_in_two_pieces_holds_the_frontier_until_both_are_there() {
        let mut spans = Spans::new(APERTURE);
        write(&mut spans, 0, 32, 32);
        write(&mut spans, 0, 64, 128);
        write(&mut spans, 0, 0, 32);
        write(&mut spans, 0, 3 * 64, 64);
        assert_eq!(
            (spans.beyond(1), spans.beyond(2), spans.most()),
            (1, 1, 3),
            "only the packet of two lines passed"
        );
    }

    #[test]
    fn the_spans_of_two_devices_are_added() {
        let mut merged = Spans::new(APERTURE);
        write(&mut merged, 0, 0, 64);
        let mut other = Spans::new(APERTURE);
        for line in [1, 0] {
            write(&mut other, 0, line * 64, 64);
        }
        merged.merge(&other);
        assert_eq!((merged.writes(), merged.beyond(1), merged.most()), (3, 1, 2));
        other.merge(&Spans::new(APERTURE));
        assert_eq!((other.writes(), other.beyond(1), other.most()), (2, 1, 2));
    }

    #[test]
    fn what_is_outside_the_windows_is_not_counted() {
        let mut spans = Spans::new(APERTURE);
        spans.arrived(&Write { offset_bytes: 8, data: &[0; 8], enables: Enables::All });
        write(&mut spans, 2, 0, 64);
        write(&mut spans, 0, 8 * 64, 8);
        assert_eq!(spans.writes(), 0);
    }
}
