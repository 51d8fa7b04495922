//! Windows that somebody writes over who has nothing to do with the connection.
#![allow(dead_code, reason = "each test uses a part of it")]
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;

use beeline_socket_rules::Rules;

/// Where windows begin in the memory of a pair, as `memory.rs` lays it out: bells, then words of 16,384 slots.
const WINDOWS_AT: u64 = 2 * 1024 * 64 + 16_384 * 1152;
/// From one window of a slot to the other.
const PLACE_BYTES: u64 = 128 << 10;
const LINE_BYTES: usize = 64;

/// The memory that a process has in common with the only other one that it shares connections with.
pub struct Windows {
    memory: File,
    start: u64,
}

impl Windows {
    /// `process` as `/proc` has it. `None` while it shares none.
    pub fn of(process: &str) -> Option<Self> {
        let mut maps = String::new();
        File::open(format!("/proc/{process}/maps")).ok()?.read_to_string(&mut maps).ok()?;
        let mut ranges = maps.lines().filter_map(|line| {
            let (from, rest) = line.split_once('-')?;
            let (to, rest) = rest.split_once(' ')?;
            let [from, to] = [from, to].map(|number| u64::from_str_radix(number, 16).unwrap());
            (rest.starts_with("rw-s") && to - from > 1 << 32).then_some(from)
        });
        let start = ranges.next()?;
        assert_eq!(ranges.next(), None, "{maps}");
        let path = format!("/proc/{process}/mem");
        let memory = OpenOptions::new().read(true).write(true).open(path).ok()?;
        Some(Windows { memory, start })
    }

    fn place(&self, slot: u64, direction: u64) -> u64 {
        self.start + WINDOWS_AT + (2 * slot + direction) * PLACE_BYTES
    }

    /// Writes into a window of a slot. The process may have ended.
    pub fn write(&self, slot: u64, direction: u64, at: u64, bytes: &[u8]) {
        let _ = self.memory.write_all_at(bytes, self.place(slot, direction) + at);
    }

    pub fn read(&self, slot: u64, direction: u64, at: u64, out: &mut [u8]) {
        let _ = self.memory.read_exact_at(out, self.place(slot, direction) + at);
    }

    /// Fills both windows of a slot with the line that its last one has, to which nothing has come yet: what stands where no message is.
    pub fn blank(&self, slot: u64) {
        for direction in 0..2 {
            let mut line = [0; LINE_BYTES];
            self.read(slot, direction, u64::from(Rules::default().window_bytes) - 64, &mut line);
            self.fill(slot, direction, line);
        }
    }

    /// Fills both windows of a slot with what no window has.
    pub fn spoil(&self, slot: u64) {
        (0..2).for_each(|direction| self.fill(slot, direction, [0xa5; LINE_BYTES]));
    }

    fn fill(&self, slot: u64, direction: u64, line: [u8; LINE_BYTES]) {
        let lines = line.repeat(Rules::default().window_bytes as usize / LINE_BYTES);
        self.write(slot, direction, 0, &lines);
    }
}
