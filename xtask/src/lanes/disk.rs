//! Room on the disk, looked at before the lanes: one that runs out of it fails half an hour later, in whichever lane comes to
//! write then.

use std::path::Path;

use crate::run::{Program, root};

/// What `ci` writes below the workspace from a clean clone, in MiB: 3.9 GB left in the end, 0.8 of it what guests are made of, and
/// 1.6 for what lanes write and remove.
const CLEAN_MIB: u64 = 5_500;

/// What to say when `ci` may run out of room; nothing where there is enough, or where `df` does not tell.
pub fn warning() -> Option<String> {
    let root = root();
    let free_mib = available_mib(&df(&root)?)?;
    // What an earlier run left is written over, and needs no more room.
    let there_mib = ["target", "fuzz/target"].iter().filter_map(|folder| used_mib(&root.join(folder))).sum();
    short_of(free_mib, there_mib).map(|short| {
        format!(
            "{} has {free_mib} MiB free, and these lanes may write {short} MiB: a lane may fail with \"No space left on \
             device\". Make room, or remove what earlier builds left (cargo clean)",
            root.display()
        )
    })
}

/// What is still to be written when `there_mib` are there already, if that is more than `free_mib`.
fn short_of(free_mib: u64, there_mib: u64) -> Option<u64> {
    let needed_mib = CLEAN_MIB.saturating_sub(there_mib);
    (free_mib < needed_mib).then_some(needed_mib)
}

fn df(folder: &Path) -> Option<String> {
    Program::new("df").quiet().arg("-Pm").arg(folder).output().ok()
}

/// The fourth column of POSIX's `df -P`, in its second line.
fn available_mib(table: &str) -> Option<u64> {
    table.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

fn used_mib(folder: &Path) -> Option<u64> {
    let said = folder.is_dir().then(|| Program::new("du").quiet().arg("-sm").arg(folder).output().ok())??;
    said.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_of_what_is_free_is_read() {
        let table = "Filesystem     1048576-blocks  Used Available Capacity Mounted on\n/dev/vda1 257026 21541 71234 24% /\n";
        assert_eq!(available_mib(table), Some(71234));
        assert_eq!(available_mib("df: no such file"), None);
        assert!(df(&root()).as_deref().and_then(available_mib).is_some());
    }

    #[test]
    fn what_is_there_already_needs_no_room() {
        assert_eq!(short_of(CLEAN_MIB, 0), None);
        assert_eq!(short_of(100, 0), Some(CLEAN_MIB));
        assert_eq!(short_of(100, CLEAN_MIB + 5), None);
        assert_eq!(short_of(100, CLEAN_MIB - 200), Some(200));
    }
}
