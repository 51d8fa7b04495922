//! Which uids name a user.
//!
//! A user namespace that leaves users out shows every one of them as the same number, the overflow uid: in the
//! credentials of a socket and as the owner of a file. It is 65534 unless the administrator chose another, which is also
//! the uid of `nobody`, and the kernel does not tell the two apart. So where users are left out that number is no evidence
//! of who somebody is, and whoever asks for a user by it gets nothing (docs/decisions/0023).

use std::io::ErrorKind;

/// Users that a user namespace can map: every uid but the one that means none.
const ALL_UIDS: u64 = u32::MAX as u64;
/// The overflow uid where the system does not say.
const DEFAULT_OVERFLOW_UID: u32 = 65_534;

/// Whether a uid that the kernel gave names exactly one user in this process's user namespace.
///
/// Looks anew each time, because a process that was forked may have gone to another namespace since. Two small files at
/// most, and only rendezvous asks.
pub(crate) fn names_one_user(uid: u32) -> bool {
    uid != overflow_uid() || every_user_is_mapped()
}

fn overflow_uid() -> u32 {
    let said = std::fs::read_to_string("/proc/sys/kernel/overflowuid");
    said.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(DEFAULT_OVERFLOW_UID)
}

fn every_user_is_mapped() -> bool {
    match std::fs::read_to_string("/proc/self/uid_map") {
        Ok(map) => maps_every_user(&map),
        // A kernel without user namespaces. Whatever else hides the map hides what it leaves out.
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Whether the extents of a `uid_map`, each `first here, first outside, length`, leave nobody out. They never overlap, and
/// a namespace can map only what the one outside it maps.
fn maps_every_user(map: &str) -> bool {
    let lengths = map.lines().filter_map(|line| line.split_ascii_whitespace().nth(2)?.parse::<u64>().ok());
    lengths.sum::<u64>() >= ALL_UIDS
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn only_a_map_of_every_uid_leaves_nobody_out() {
        assert!(maps_every_user("         0          0 4294967295\n"));
        assert!(maps_every_user("0 0 1000\n1000 1000 4294966295\n"));
        for map in ["", "0 1000 1\n", "0 100000 65536\n", "0 0 4294967294\n", "no numbers here\n"] {
            assert!(!maps_every_user(map), "{map:?}");
        }
    }

    #[test]
    fn uid_that_is_not_the_overflow_uid_names_a_user() {
        assert!([0, 1, overflow_uid() - 1].into_iter().all(names_one_user));
        assert_eq!(names_one_user(overflow_uid()), every_user_is_mapped());
    }
}
