//! Who owns a name: a POSIX record lock, which the kernel ends with its process.
//!
//! Sockets, `flock` and open-file-description locks are inherited by forked children, so that a name would look owned
//! as long as any child of a killed owner lives. A record lock (`fcntl(F_SETLK)`) belongs to the one process that took
//! it: children do not have it, the kernel drops it at death, and `F_GETLK` names the holder. It is the only arbiter:
//! of two comers one gets the lock, and only its holder unlinks a dead owner's socket or binds a new one.
//!
//! Record locks have one trap: closing *any* descriptor of the file ends the process's lock. So the lock file is
//! opened only here, under a process-wide table of the names this process holds.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::fcntl::FcntlArg;
use nix::libc;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::folder::Folder;
use crate::name::Name;

/// Why a name cannot be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimError {
    /// Its owner is alive: its process id, 0 for one outside this pid namespace.
    Taken(u32),
    /// The kernel refused something: what was tried, what it said.
    System(&'static str, Errno),
}

/// A name that this process owns until the claim is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Claim {
    folder: Arc<Folder>,
    name: Name,
    key: Key,
    owner_pid: u32,
    /// Closing it ends the lock; only [`Claim::drop`] does, after the files are gone.
    lock: Option<OwnedFd>,
}

/// Device and inode of the folder, and the name in it.
type Key = (u64, u64, String);

/// The names held by this process, with the process id: an entry a parent made means nothing to a forked child.
static HELD: Mutex<BTreeMap<Key, u32>> = Mutex::new(BTreeMap::new());

fn held() -> MutexGuard<'static, BTreeMap<Key, u32>> {
    // The table is changed by single inserts and removals, so a panic elsewhere cannot leave it half changed.
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often a lock file may vanish between open and lock before we give up; each time somebody else gave it up.
const MAX_TRIES: u32 = 1000;

impl Claim {
    /// Claims `name`, reclaiming it from a dead owner. Never waits: an owner that lives, stopped or not, wins.
    pub(crate) fn take(folder: &Arc<Folder>, name: &Name) -> Result<Self, ClaimError> {
        let stat =
            rustix::fs::fstat(folder.fd()).map_err(|e| ClaimError::System("examine the folder of", e))?;
        let key = (stat.st_dev, stat.st_ino, name.as_str().to_owned());
        let owner_pid = std::process::id();
        let mut table = held();
        if table.get(&key) == Some(&owner_pid) {
            return Err(ClaimError::Taken(owner_pid));
        }
        for _ in 0..MAX_TRIES {
            if let Some(lock) = try_lock(folder, name)? {
                remove(folder, &name.socket_file())
                    .map_err(|e| ClaimError::System("remove the stale socket of", e))?;
                table.insert(key.clone(), owner_pid);
                return Ok(Claim {
                    folder: Arc::clone(folder),
                    name: name.clone(),
                    key,
                    owner_pid,
                    lock: Some(lock),
                });
            }
        }
        Err(ClaimError::System("keep the lock file of", Errno::AGAIN))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.owner_pid != std::process::id() {
            // A forked child: neither the lock nor the files are its own, and closing its copy ends nothing.
            return;
        }
        let mut table = held();
        for file in [self.name.socket_file(), self.name.lock_file()] {
            // The lock file goes while the lock is held; a comer that has opened it already sees that it is unlinked.
            if let Err(error) = remove(&self.folder, &file) {
                tracing::warn!(%file, %error, "cannot remove a file of a withdrawn offer");
            }
        }
        drop(self.lock.take());
        table.remove(&self.key);
    }
}

/// Opens and locks the lock file; `None` when the file was unlinked meanwhile, so that the lock protects nothing.
fn try_lock(folder: &Folder, name: &Name) -> Result<Option<OwnedFd>, ClaimError> {
    let file = name.lock_file();
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = rustix::fs::openat(folder.fd(), &*file, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|e| ClaimError::System("open the lock file of", e))?;
    lock_opened(folder, &file, lock)
}

/// Locks an open lock file, unless it is no longer the one that has the name.
fn lock_opened(folder: &Folder, file: &str, lock: OwnedFd) -> Result<Option<OwnedFd>, ClaimError> {
    let wanted = record_lock();
    match nix::fcntl::fcntl(&lock, FcntlArg::F_SETLK(&wanted)) {
        Ok(_) => {}
        Err(nix::Error::EAGAIN | nix::Error::EACCES) => return holder(&lock).map(|()| None),
        Err(error) => return Err(ClaimError::System("lock", Errno::from_raw_os_error(error as i32))),
    }
    let ours = rustix::fs::fstat(&lock).map_err(|e| ClaimError::System("examine the lock file of", e))?;
    match rustix::fs::statat(folder.fd(), file, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) if (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino) => Ok(Some(lock)),
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(ClaimError::System("examine the lock file of", error)),
    }
}

/// Fails with the holder's process id; returns when the lock has just been given up.
fn holder(lock: &OwnedFd) -> Result<(), ClaimError> {
    let mut found = record_lock();
    nix::fcntl::fcntl(lock, FcntlArg::F_GETLK(&mut found))
        .map_err(|e| ClaimError::System("ask who holds", Errno::from_raw_os_error(e as i32)))?;
    if found.l_type == libc::F_UNLCK as libc::c_short {
        return Ok(());
    }
    // 0 or -1: a process that this pid namespace does not show, or a lock of another kind on the same file.
    Err(ClaimError::Taken(u32::try_from(found.l_pid).unwrap_or(0)))
}

/// An exclusive lock on the whole file.
fn record_lock() -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

fn remove(folder: &Folder, file: &str) -> Result<(), Errno> {
    match rustix::fs::unlinkat(folder.fd(), file, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn folder(dir: &tempfile::TempDir) -> Arc<Folder> {
        Arc::new(Folder::open_own(dir.path(), &Name::new("d").unwrap()).unwrap())
    }

    #[test]
    fn a_name_has_one_owner_and_is_free_after_the_drop() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, name) = (folder(&dir), Name::new("n").unwrap());
        let claim = Claim::take(&folder, &name).unwrap();
        assert_eq!(Claim::take(&folder, &name).unwrap_err(), ClaimError::Taken(std::process::id()));
        // A second opening of the same folder is the same name.
        let again = Arc::new(Folder::open_own(dir.path(), &Name::new("d").unwrap()).unwrap());
        assert_eq!(Claim::take(&again, &name).unwrap_err(), ClaimError::Taken(std::process::id()));
        drop(claim);
        assert_eq!(folder.files().unwrap().len(), 2, "only `.` and `..` are left");
        assert!(Claim::take(&folder, &name).is_ok());
    }

    #[test]
    fn a_stale_socket_is_removed_by_the_next_comer() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, name) = (folder(&dir), Name::new("n").unwrap());
        let socket = folder.path().join(name.socket_file());
        std::fs::write(&socket, "left behind").unwrap();
        let _claim = Claim::take(&folder, &name).unwrap();
        assert!(!socket.exists());
    }

    #[test]
    fn a_lock_on_a_file_that_lost_its_name_owns_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(&dir);
        let file = Name::new("n").unwrap().lock_file();
        let path = folder.path().join(&file);
        let open =
            || std::fs::File::options().create(true).truncate(false).write(true).open(&path).unwrap().into();
        // The last owner withdrew between our open and our lock.
        let gone = open();
        std::fs::remove_file(&path).unwrap();
        assert!(lock_opened(&folder, &file, gone).unwrap().is_none());
        // And the next comer was faster than we.
        let replaced: OwnedFd = open();
        std::fs::remove_file(&path).unwrap();
        let current: OwnedFd = open();
        assert!(lock_opened(&folder, &file, replaced).unwrap().is_none());
        assert!(lock_opened(&folder, &file, current).unwrap().is_some());
    }

    #[test]
    fn of_threads_that_come_at_once_one_wins() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, name) = (folder(&dir), Name::new("n").unwrap());
        for _ in 0..50 {
            let barrier = Barrier::new(4);
            let claims: Vec<_> = std::thread::scope(|scope| {
                let comer = || {
                    barrier.wait();
                    Claim::take(&folder, &name)
                };
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(comer)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(claims.iter().filter(|claim| claim.is_ok()).count(), 1);
        }
    }
}
