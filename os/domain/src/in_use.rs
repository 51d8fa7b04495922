//! Whether anybody has a domain open: a shared `flock` on its folder, held as long as the folder is open.
//!
//! The kernel ends it with the last process that has the descriptor, so a folder whose lock can be had exclusively is
//! one that nobody uses: the evidence by which [`remove_unused_domains`] tells what a killed run left. Programs that
//! clean temporary folders by age (systemd-tmpfiles) pass over locked ones too.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// Marks an open folder as in use until the descriptor is closed; `false` when somebody has it exclusively just now.
///
/// A file system without such locks counts as marked: it refuses the exclusive one too.
pub(crate) fn mark(folder: BorrowedFd<'_>) -> bool {
    rustix::fs::flock(folder, FlockOperation::NonBlockingLockShared) != Err(Errno::WOULDBLOCK)
}

/// Whether `relative` in `parent` still leads to the open folder.
pub(crate) fn has_name(parent: BorrowedFd<'_>, relative: &Path, folder: BorrowedFd<'_>) -> bool {
    let named = rustix::fs::statat(parent, relative, AtFlags::SYMLINK_NOFOLLOW);
    let open = rustix::fs::fstat(folder);
    matches!((named, open), (Ok(named), Ok(open)) if (named.st_dev, named.st_ino) == (open.st_dev, open.st_ino))
}

/// Removes the domains in `root` whose name begins with `prefix` and that no process has open, with everything in them.
///
/// For domains that nobody asks for a second time. What cannot be looked at or removed stays: this is tidying, and
/// nobody's task depends on it. Nothing is followed out of `root`, and no folder of another user is touched.
pub fn remove_unused_domains(root: &Path, prefix: &str) {
    let Ok(root) = open_folder(rustix::fs::CWD, root) else { return };
    for name in names(&root) {
        if name.starts_with(prefix) {
            remove_if_unused(root.as_fd(), Path::new(&name));
        }
    }
}

fn remove_if_unused(root: BorrowedFd<'_>, name: &Path) {
    let Ok(folder) = open_folder(root, name) else { return };
    let is_own =
        rustix::fs::fstat(&folder).is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw());
    let is_unused = rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok();
    // Locked now, so that whoever opens it waits, and then sees that it has no name any more.
    if is_own && is_unused && has_name(root, name, folder.as_fd()) {
        for file in names(&folder) {
            let _ = rustix::fs::unlinkat(&folder, file, AtFlags::empty());
        }
        let _ = rustix::fs::unlinkat(root, name, AtFlags::REMOVEDIR);
    }
}

fn open_folder(parent: BorrowedFd<'_>, relative: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, relative, flags, Mode::empty())
}

fn names(folder: &OwnedFd) -> Vec<String> {
    let Ok(entries) = Dir::read_from(folder) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    names.filter(|name| name != "." && name != "..").collect()
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{Domain, DomainConfig};

    #[test]
    fn only_unused_domains_with_the_prefix_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let root = Some(dir.path().to_owned());
        let open =
            |name: &str| Domain::open(&DomainConfig { root: root.clone(), name: name.to_owned() }).unwrap();
        let used = open("private-1-used");
        for name in ["private-2-left", "default"] {
            drop(open(name));
            for file in ["nic.lock", "nic.sock"] {
                std::fs::write(dir.path().join(name).join(file), "").unwrap();
            }
        }
        std::fs::write(dir.path().join("private-3-file"), "").unwrap();
        std::os::unix::fs::symlink(dir.path().join("default"), dir.path().join("private-4-link")).unwrap();
        remove_unused_domains(dir.path(), "private-");
        let left = |name: &str| dir.path().join(name).exists();
        assert!(!left("private-2-left"));
        assert!(
            ["private-1-used", "private-3-file", "private-4-link", "default/nic.lock"].into_iter().all(left)
        );
        drop(used);
        remove_unused_domains(dir.path(), "private-");
        assert!(!left("private-1-used"));
    }

    #[test]
    fn domain_opened_while_it_is_swept_is_usable() {
        let dir = tempfile::tempdir().unwrap();
        let config = DomainConfig { root: Some(dir.path().to_owned()), name: "private-1".to_owned() };
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    remove_unused_domains(dir.path(), "private-");
                    // As often as no program would, and yet not always.
                    std::thread::sleep(std::time::Duration::from_micros(200));
                }
            });
            for _ in 0..50 {
                let domain = Domain::open(&config);
                let is_there = domain.as_ref().is_ok_and(|domain| domain.path().is_dir());
                if !is_there {
                    stop.store(true, std::sync::atomic::Ordering::Relaxed);
                }
                assert!(is_there, "{domain:?}");
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
