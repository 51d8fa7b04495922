//! What a process holds, as `/proc` shows it.

use std::fs::{read_dir, read_to_string};

#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub fds: usize,
    pub threads: usize,
    pub mappings: usize,
    pub mappings_of_memfds: usize,
    pub resident_kib: u64,
}

impl Held {
    pub fn by(pid: u32) -> Self {
        let count = |name| read_dir(format!("/proc/{pid}/{name}")).unwrap().count();
        let text = |name| read_to_string(format!("/proc/{pid}/{name}")).unwrap();
        let (maps, status) = (text("maps"), text("status"));
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.expect("a process that has not ended");
        Held {
            fds: count("fd"),
            threads: count("task"),
            mappings: maps.lines().count(),
            mappings_of_memfds: maps.lines().filter(|line| line.contains("/memfd:")).count(),
            resident_kib: resident.trim().trim_end_matches(" kB").parse().unwrap(),
        }
    }

    /// Whether it is no more than before, of what reading `/proc` and allocators do not move.
    pub fn is_within(self, before: Held) -> bool {
        self.fds <= before.fds
            && self.threads <= before.threads
            && self.mappings_of_memfds <= before.mappings_of_memfds
    }
}
