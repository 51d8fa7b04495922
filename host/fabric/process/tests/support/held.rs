//! What this process holds, and what a domain's folder does.

use std::collections::BTreeSet;
use std::ffi::OsString;

use super::threads::Thread;
use super::{Fabric, wait_until};

/// Descriptors and mappings of this process.
pub fn held() -> (usize, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let of_members = maps.lines().filter(|line| line.contains("/memfd:beeline"));
    (std::fs::read_dir("/proc/self/fd").unwrap().count(), of_members.count())
}

/// As [`held`], once no other thread of this process runs. A thread that has passed on copies of descriptors closes them after the other side
/// has them, and a busy machine may let it wait with that.
pub fn held_at_rest() -> (usize, usize) {
    let mut found = None;
    wait_until(|| {
        found = Thread::is_alone().then(held).filter(|_| Thread::is_alone());
        found.is_some()
    });
    found.unwrap()
}

/// The files of a fabric, once somebody who opens its domain has taken out what the dead have left.
pub fn files(fabric: &Fabric) -> BTreeSet<OsString> {
    let _sweeps = fabric.domain();
    let folder = std::fs::read_dir(fabric.root().join("fabric")).unwrap();
    folder.map(|file| file.unwrap().file_name()).collect()
}
