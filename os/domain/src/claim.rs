//! Who owns a name: a POSIX record lock, which the kernel ends with its process.
//!
//! Sockets, `flock` and open-file-description locks are inherited by forked children, so that a name would look owned
//! as long as any child of a killed owner lives. A record lock (`fcntl(F_SETLK)`) belongs to the one process that took
//! it: children do not have it, the kernel drops it at death, and `F_GETLK` names the holder. It is the only arbiter:
//! of two comers one gets the lock, and only its holder unlinks a dead owner's socket or binds a new one.
//!
//! A sweep ([`sweep`]) removes what dead owners left. It holds the lock of a name for as long as two files take to
//! unlink, on the first byte only, so that a comer can tell it from an owner and tries again.
//!
//! Record locks have one trap: closing *any* descriptor of the file ends the process's lock. So the lock file is
//! opened only here, under a process-wide table of the names this process holds.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use beeline_mmio::{PerProcess, ThisProcess};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::descriptor::Descriptor;
use crate::folder::{Folder, NameKey};
use crate::in_use;
use crate::modes;
use crate::name::{LOCK_SUFFIX, Name, SOCKET_SUFFIX};
use crate::numbers::Purpose;
use crate::record_lock::{self, Bytes, Other};

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
    key: NameKey,
    owner: ThisProcess,
    /// Closing it ends the lock; only [`Claim::drop`] does, after the files are gone.
    lock: Option<Descriptor>,
}

/// The names held by this process. A forked child holds none of its parent's, and the parent's lock may be locked for ever
/// there.
static HELD: PerProcess<Mutex<BTreeSet<NameKey>>> = PerProcess::new();

fn held() -> MutexGuard<'static, BTreeSet<NameKey>> {
    // The table is changed by single inserts and removals, so a panic elsewhere cannot leave it half changed.
    HELD.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often a lock file may vanish between open and lock before we give up; each time somebody else gave it up.
const MAX_TRIES: u32 = 1000;
/// How long a comer leaves a sweep alone before it tries again.
const SWEEP_PAUSE: Duration = Duration::from_millis(1);
/// Mode of a lock file.
const LOCK_MODE: u32 = 0o600;
/// Bytes locked by a sweep: the first one.
const SWEPT: Bytes = Bytes(0, 1);
/// Bytes locked by an owner: all there can be.
const OWNED: Bytes = Bytes(0, 0);

impl Claim {
    /// Claims `name`, reclaiming it from a dead owner. Never waits: an owner that lives, stopped or not, wins.
    pub(crate) fn take(folder: &Arc<Folder>, name: &Name) -> Result<Self, ClaimError> {
        let key = folder.key(name).map_err(|e| ClaimError::System("examine the folder of", e))?;
        let owner = ThisProcess::get();
        let mut table = held();
        if table.contains(&key) {
            return Err(ClaimError::Taken(owner.pid()));
        }
        for _ in 0..MAX_TRIES {
            if let Some(lock) = try_lock(folder, name, OWNED)? {
                remove(folder, &name.socket_file())
                    .map_err(|e| ClaimError::System("remove the stale socket of", e))?;
                table.insert(key.clone());
                return Ok(Claim {
                    folder: Arc::clone(folder),
                    name: name.clone(),
                    key,
                    owner,
                    lock: Some(lock),
                });
            }
        }
        Err(ClaimError::System("keep the lock file of", Errno::AGAIN))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut table = held();
        if !self.owner.is_this() {
            // A forked child: neither the lock nor the files are its own, and closing its copy ends nothing of the parent's. It
            // would end the child's own lock, if the child has the name now: then the copy stays open.
            if table.contains(&self.key) {
                std::mem::forget(self.lock.take());
            }
            return;
        }
        // With its descriptor the lock has gone, and the files may be the next owner's.
        let is_held = self.lock.as_ref().is_some_and(Descriptor::is_ours) && self.folder.is_ours();
        let files = is_held.then(|| [self.name.socket_file(), self.name.lock_file()]);
        for file in files.into_iter().flatten() {
            // The lock file goes while the lock is held; a comer that has opened it already sees that it is unlinked.
            if let Err(error) = remove(&self.folder, &file) {
                tracing::warn!(%file, %error, "cannot remove a file of a withdrawn offer");
            }
        }
        drop(self.lock.take());
        table.remove(&self.key);
    }
}

/// Removes the files of every name in the folder whose owner has ended, on the kernel's word that nobody holds its
/// lock. What cannot be looked at or removed stays: nothing depends on it.
pub(crate) fn sweep(folder: &Folder) {
    let Ok(mut files) = folder.files() else { return };
    files.sort_unstable();
    let mut names: Vec<&str> = files
        .iter()
        .filter_map(|file| file.strip_suffix(LOCK_SUFFIX).or_else(|| file.strip_suffix(SOCKET_SUFFIX)))
        .collect();
    names.dedup();
    for name in names.into_iter().filter_map(|name| Name::new(name).ok()) {
        // One's own lock is no obstacle to oneself, and closing any descriptor of the file would end it.
        let table = held();
        let is_own = folder.key(&name).is_ok_and(|key| table.contains(&key));
        if !is_own && let Ok(Some(lock)) = try_lock(folder, &name, SWEPT) {
            for file in [name.socket_file(), name.lock_file()] {
                if let Err(error) = remove(folder, &file) {
                    tracing::debug!(%file, %error, "cannot remove what a dead owner left");
                }
            }
            drop(lock);
        }
    }
}

/// Whether a process that lives has the name, by the kernel's word: one that holds the lock of its file. Takes no lock.
///
/// The lock file of a name of one's own is never opened, here as everywhere: closing it again would end the lock.
pub(crate) fn is_held(folder: &Folder, name: &Name) -> Result<bool, ClaimError> {
    let key = folder.key(name).map_err(|e| ClaimError::System("examine the folder of", e))?;
    let table = held();
    if table.contains(&key) {
        return Ok(true);
    }
    let file = name.lock_file();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    for _ in 0..MAX_TRIES {
        let opened = match rustix::fs::openat(folder.fd(), &*file, flags, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(ClaimError::System("open the lock file of", error)),
        };
        // A sweep holds it because no owner does.
        if lock_of(&opened)?.is_some_and(|lock| lock.bytes != SWEPT) {
            return Ok(true);
        }
        // Where the file has lost its name, the next owner has another one.
        if in_use::has_name(folder.fd().as_fd(), Path::new(&file), opened.as_fd()) {
            return Ok(false);
        }
    }
    Err(ClaimError::System("keep the lock file of", Errno::AGAIN))
}

/// Opens and locks the lock file; `None` when the file was unlinked meanwhile, so that the lock protects nothing.
fn try_lock(folder: &Folder, name: &Name, bytes: Bytes) -> Result<Option<Descriptor>, ClaimError> {
    let file = name.lock_file();
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = modes::open(folder.fd(), Path::new(&file), flags, LOCK_MODE)
        .map_err(|e| ClaimError::System("open the lock file of", e))?;
    // Before it is locked: it may get another number, and closing the first would end the lock.
    let lock = Descriptor::new(lock, Purpose::Claim);
    lock_opened(folder, &file, lock, bytes)
}

/// Locks an open lock file, unless it is no longer the one that has the name.
fn lock_opened(
    folder: &Folder,
    file: &str,
    lock: Descriptor,
    bytes: Bytes,
) -> Result<Option<Descriptor>, ClaimError> {
    if !record_lock::try_lock(lock.hold(), bytes).map_err(|e| ClaimError::System("lock", e))? {
        return holder(&lock).map(|()| None);
    }
    let ours =
        rustix::fs::fstat(lock.hold()).map_err(|e| ClaimError::System("examine the lock file of", e))?;
    match rustix::fs::statat(folder.fd(), file, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) if (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino) => Ok(Some(lock)),
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(ClaimError::System("examine the lock file of", error)),
    }
}

/// Fails with the owner's process id; returns when the lock has just been given up, or is about to be.
fn holder(lock: &Descriptor) -> Result<(), ClaimError> {
    match lock_of(lock.hold())? {
        None => Ok(()),
        Some(Other { bytes: SWEPT, .. }) => {
            std::thread::sleep(SWEEP_PAUSE);
            Ok(())
        }
        Some(Other { pid, .. }) => Err(ClaimError::Taken(pid)),
    }
}

/// The lock of another process that keeps this one from the file.
fn lock_of(file: impl AsFd) -> Result<Option<Other>, ClaimError> {
    record_lock::other(file, OWNED).map_err(|e| ClaimError::System("ask who holds", e))
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
    use std::io::Read;
    use std::process::{Child, Command, Stdio};
    use std::sync::Barrier;

    use super::*;

    fn folder(dir: &tempfile::TempDir) -> Arc<Folder> {
        Arc::new(Folder::open_own(dir.path(), &Name::new("d").unwrap()).unwrap())
    }

    /// A process that locks so many bytes of a file, 0: all, and says so; it ends when its input does.
    fn locker(path: &Path, bytes: usize) -> (Child, bool) {
        let lock = "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB,int(sys.argv[2])); \
                    print(); sys.stdout.flush(); sys.stdin.read()";
        let mut python = Command::new("python3");
        python.args(["-c", lock]).arg(path).arg(bytes.to_string());
        let mut child =
            python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let said = child.stdout.as_mut().unwrap().read(&mut [0]).unwrap();
        (child, said == 1)
    }

    fn another_process_locks(path: &Path) -> bool {
        let (mut child, has_locked) = locker(path, 0);
        child.stdin = None;
        child.wait().unwrap();
        has_locked
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
        let open = || {
            let file = std::fs::File::options().create(true).truncate(false).write(true).open(&path).unwrap();
            Descriptor::new(file.into(), Purpose::Claim)
        };
        // The last owner withdrew between our open and our lock.
        let gone = open();
        std::fs::remove_file(&path).unwrap();
        assert!(lock_opened(&folder, &file, gone, OWNED).unwrap().is_none());
        // And the next comer was faster than we.
        let replaced = open();
        std::fs::remove_file(&path).unwrap();
        let current = open();
        assert!(lock_opened(&folder, &file, replaced, OWNED).unwrap().is_none());
        assert!(lock_opened(&folder, &file, current, OWNED).unwrap().is_some());
    }

    #[test]
    fn sweep_removes_names_without_an_owner_and_keeps_a_held_one() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, name) = (folder(&dir), Name::new("held").unwrap());
        let claim = Claim::take(&folder, &name).unwrap();
        for file in ["dead.lock", "dead.sock", "bare.sock", "held.sock", "not a name.lock", "notes.txt"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        sweep(&folder);
        let mut files = folder.files().unwrap();
        files.sort();
        assert_eq!(files, [".", "..", "held.lock", "held.sock", "not a name.lock", "notes.txt"]);
        // The lock of the held name is still there for others to see.
        assert!(!another_process_locks(&folder.path().join("held.lock")));
        drop(claim);
    }

    #[test]
    fn name_is_held_by_its_owner_and_by_no_sweep_and_looking_ends_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, name) = (folder(&dir), Name::new("held").unwrap());
        assert_eq!(is_held(&folder, &name), Ok(false));
        let claim = Claim::take(&folder, &name).unwrap();
        assert_eq!(is_held(&folder, &name), Ok(true));
        assert!(!another_process_locks(&folder.path().join("held.lock")), "looking ended the lock");
        drop(claim);
        assert_eq!(is_held(&folder, &name), Ok(false));
        std::fs::write(folder.path().join("held.lock"), "").unwrap();
        assert_eq!(is_held(&folder, &name), Ok(false), "a dead owner left the file");
        for (bytes, is_owner) in [(SWEPT, false), (OWNED, true)] {
            let (mut child, has_locked) = locker(&folder.path().join("held.lock"), bytes.1 as usize);
            assert_eq!((has_locked, is_held(&folder, &name)), (true, Ok(is_owner)));
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(is_held(&folder, &name), Ok(false));
        }
        std::fs::remove_file(folder.path().join("held.lock")).unwrap();
        rustix::fs::mkfifoat(folder.fd(), "held.lock", Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(is_held(&folder, &name), Ok(false), "it waited for a writer");
    }

    #[test]
    fn sweeping_and_claiming_at_once_gives_the_name_away_exactly_once() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, name) = (folder(&dir), Name::new("n").unwrap());
        for _ in 0..50 {
            std::fs::write(folder.path().join("n.lock"), "").unwrap();
            let claim = std::thread::scope(|scope| {
                let sweeper = scope.spawn(|| sweep(&folder));
                let claim = Claim::take(&folder, &name);
                sweeper.join().unwrap();
                claim
            });
            assert!(claim.is_ok() && folder.path().join("n.lock").exists());
        }
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
