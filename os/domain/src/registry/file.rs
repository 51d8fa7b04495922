//! The two files of a registry, as one process has them open: words that are read and written, and locks.
//!
//! The locks are in a file of their own, which is always its owner's alone: whoever may read a file may put a lock on it that keeps
//! writers out, and the words may be there for other users to read.
//!
//! A process has each file open once. Closing *any* descriptor of a file ends all locks that the process has on it, so all handles of
//! one registry share this.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};
use std::{io, thread};

use beeline_mmio::{PerProcess, ThisProcess};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::error::RegistryError;
use super::room::{make_room, write_whole};
use super::words::{BUCKETS, FILE_BYTES, FORMAT, WORD_BYTES};
use crate::descriptor::Descriptor;
use crate::error::MisuseError;
use crate::folder::{Folder, NameKey, own_uid};
use crate::modes;
use crate::moving::{self, Movable, Registered};
use crate::name::Name;
use crate::numbers::Purpose;
use crate::record_lock::{self, Bytes};

/// How long a writer waits for another one in the same bucket.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// How long somebody waits who tidies up.
pub(super) const TIDY_PATIENCE: Duration = Duration::from_millis(10);
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Mode of both files; the words may get [`READABLE`].
const OWNERS: u32 = 0o600;
const READABLE: u32 = 0o644;

// Bytes of the file of locks. There is nothing in it: a lock may lie past the end of a file.
const MAKING_LOCK: Bytes = Bytes(0, 1);
const BUCKET_LOCKS: i64 = 4096;
const HOLDER_LOCKS: i64 = 65_536;

/// `f_type` of file systems that several hosts may have mounted.
const NETWORK_FILE_SYSTEMS: [u64; 13] = [
    0x6969,      // NFS
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB 2
    0x517b,      // SMB
    0x0102_1997, // 9P
    0x5346_414f, // AFS
    0x6b41_4653, // the kernel's AFS
    0x00c3_6400, // Ceph
    0x7375_7245, // Coda
    0x0116_1970, // GFS2
    0x7461_636f, // OCFS2
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS
];

/// What this process has open. A child of fork begins with nothing.
static OPEN: PerProcess<Mutex<BTreeMap<NameKey, Opened>>> = PerProcess::new();

/// How far a process is with the files of a registry.
#[derive(Debug)]
enum Opened {
    /// A thread has them open, or is about to, and may wait for another process: not with the table locked, which those need who
    /// open or leave other registries.
    UnderWay,
    Open(Weak<Files>),
}

fn open_files() -> MutexGuard<'static, BTreeMap<NameKey, Opened>> {
    // Changed by single inserts and removals.
    OPEN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right of one thread to open the files of a registry.
struct Opening(NameKey);

impl Opening {
    /// Has the files appear in the table.
    fn complete(self, mut files: Files) -> Arc<Files> {
        files.key = Some(self.0.clone());
        let files = Arc::new(files);
        open_files().insert(self.0.clone(), Opened::Open(Arc::downgrade(&files)));
        files
    }
}

/// What a thread finds that opens a registry.
enum Turn {
    Open(Arc<Files>),
    First(Opening),
}

impl Drop for Opening {
    fn drop(&mut self) {
        let mut open = open_files();
        if let Some(Opened::UnderWay) = open.get(&self.0) {
            open.remove(&self.0);
        }
    }
}

/// The open files of a registry.
#[derive(Debug)]
pub(super) struct Files {
    folder: Arc<Folder>,
    name: Name,
    /// Under which it is in [`OPEN`].
    key: Option<NameKey>,
    words: Arc<Words>,
    locks: Option<Locks>,
    process: ThisProcess,
    /// Held by who joins, leaves or sweeps: a record lock keeps no other thread of the process out.
    moving: Mutex<()>,
    /// The places of this process, which its own locks do not keep out, with their numbers.
    own: Mutex<BTreeMap<u16, NonZeroU64>>,
    _moves: Registered,
}

/// The file of words.
#[derive(Debug)]
struct Words(Descriptor);

impl Movable for Words {
    fn move_above(&self, lowest: RawFd) -> io::Result<()> {
        Ok(self.0.move_above(lowest, None)?)
    }
}

/// The file of locks; not of a registry of another user.
#[derive(Debug)]
struct Locks {
    /// `None` once it is being closed.
    file: Option<Descriptor>,
    /// A record lock keeps other processes out, and no thread of this one.
    buckets: Box<[Mutex<()>]>,
}

/// A locked bucket.
pub(super) struct BucketLock<'a> {
    files: &'a Files,
    bucket: usize,
    _thread: MutexGuard<'a, ()>,
}

impl Drop for BucketLock<'_> {
    fn drop(&mut self) {
        self.files.unlock(bucket_lock(self.bucket));
    }
}

fn bucket_lock(bucket: usize) -> Bytes {
    Bytes(BUCKET_LOCKS + bucket as i64, 1)
}

/// The record lock of a holder has two bytes. A sweeper has the first one while it tidies up after a dead holder; only a holder has
/// the second, so the second alone says that somebody lives.
fn holder_lock(holder: u16) -> Bytes {
    Bytes(HOLDER_LOCKS + 2 * i64::from(holder), 2)
}

fn sweep_lock(holder: u16) -> Bytes {
    Bytes(holder_lock(holder).0, 1)
}

fn life_lock(holder: u16) -> Bytes {
    Bytes(holder_lock(holder).0 + 1, 1)
}

impl Files {
    /// Opens the files of this user's registry, and makes them if they are not there.
    pub(super) fn open_own(folder: &Arc<Folder>, name: &Name) -> Result<Arc<Self>, RegistryError> {
        let refused = |errno| system("examine", folder.path(), errno);
        let kind = rustix::fs::fstatfs(folder.fd()).map_err(refused)?.f_type as u64;
        if is_of_network(kind) {
            return Err(RegistryError::NetworkFileSystem { path: folder.path().to_owned(), kind });
        }
        let key = folder.key(name).map_err(refused)?;
        let started = Instant::now();
        let path = || folder.path().join(words_file(name));
        let turn = until(started, PATIENCE, path, || {
            let mut open = open_files();
            Ok(match open.get(&key) {
                // Another thread is opening or closing them, and would end locks of ours when it closes its own.
                Some(Opened::UnderWay) => None,
                Some(Opened::Open(files)) => files.upgrade().map(Turn::Open),
                None => {
                    open.insert(key.clone(), Opened::UnderWay);
                    Some(Turn::First(Opening(key.clone())))
                }
            })
        })?;
        match turn {
            Turn::Open(files) => Ok(files),
            Turn::First(opening) => Ok(opening.complete(Self::open_first(folder, name, started)?)),
        }
    }

    /// Opens them for who alone may, and has been waiting since `started`. What fails has closed them.
    fn open_first(folder: &Arc<Folder>, name: &Name, started: Instant) -> Result<Self, RegistryError> {
        let locks = open_file(folder, &locks_file(name), OFlags::RDWR | OFlags::CREATE, own_uid())?;
        let locks = Descriptor::new(locks, Purpose::Registry);
        let words = open_file(folder, &words_file(name), OFlags::RDWR | OFlags::CREATE, own_uid())?;
        let buckets = (0..BUCKETS).map(|_| Mutex::new(())).collect();
        let files = Self::of(folder, name, words, Some(Locks { file: Some(locks), buckets }));
        until(started, PATIENCE, || files.path(), || Ok(files.try_lock(MAKING_LOCK)?.then_some(())))?;
        let made = files.make();
        files.unlock(MAKING_LOCK);
        made.map(|()| files)
    }

    /// Opens the words of another user's registry.
    pub(super) fn open_foreign(folder: &Arc<Folder>, name: &Name) -> Result<Arc<Self>, RegistryError> {
        let words = open_file(folder, &words_file(name), OFlags::RDONLY, folder.owner_uid())?;
        let files = Self::of(folder, name, words, None);
        match files.format()? {
            FORMAT => Ok(Arc::new(files)),
            0 => Err(RegistryError::Absent { path: files.path() }),
            found => Err(RegistryError::Format { path: files.path(), found }),
        }
    }

    fn of(folder: &Arc<Folder>, name: &Name, words: OwnedFd, locks: Option<Locks>) -> Self {
        let words = Arc::new(Words(Descriptor::new(words, Purpose::Registry)));
        let moves: Weak<Words> = Arc::downgrade(&words);
        Files {
            folder: Arc::clone(folder),
            name: name.clone(),
            key: None,
            words,
            locks,
            process: ThisProcess::get(),
            moving: Mutex::default(),
            own: Mutex::default(),
            _moves: moving::register(moves),
        }
    }

    /// Completes the file of words, whoever began it, for who has the lock for that. The format is written last.
    fn make(&self) -> Result<(), RegistryError> {
        match self.format()? {
            0 => {}
            FORMAT if self.size()? < FILE_BYTES => return Err(RegistryError::Short { path: self.path() }),
            FORMAT => return Ok(()),
            found => return Err(RegistryError::Format { path: self.path(), found }),
        }
        let fd = self.words.0.hold();
        make_room(fd.as_fd(), FILE_BYTES).map_err(|errno| system("make room for", &self.path(), errno))?;
        self.write(0, &FORMAT.to_le_bytes())
    }

    /// The first word of the file; 0 where it is not there yet.
    fn format(&self) -> Result<u64, RegistryError> {
        let mut word = [0; WORD_BYTES];
        let read = rustix::io::pread(self.words.0.hold(), &mut word, 0);
        read.map_err(|errno| system("read", &self.path(), errno))?;
        Ok(u64::from_le_bytes(word))
    }

    fn size(&self) -> Result<u64, RegistryError> {
        let stat = rustix::fs::fstat(self.words.0.hold());
        let stat = stat.map_err(|errno| system("examine", &self.path(), errno))?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// The file of words.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(words_file(&self.name))
    }

    pub(super) fn folder(&self) -> &Arc<Folder> {
        &self.folder
    }

    pub(super) fn is_foreign(&self) -> bool {
        self.locks.is_none()
    }

    pub(super) fn is_of_this_process(&self) -> bool {
        self.process.is_this()
    }

    /// Whether this process may use it, and the descriptor is there.
    pub(super) fn check(&self) -> Result<(), RegistryError> {
        if !self.process.is_this() {
            let misuse = MisuseError::Forked { opened_by: self.process.pid(), pid: std::process::id() };
            return Err(misuse.into());
        }
        match self.words.0.check() {
            Ok(_) => Ok(()),
            Err(_) => Err(MisuseError::DescriptorLost.into()),
        }
    }

    /// Whether what is written is found by others: this process is an owner's, and both files have their names.
    pub(super) fn check_to_write(&self) -> Result<(), RegistryError> {
        self.check()?;
        let locks = self.locks()?;
        locks.check().map_err(|_| MisuseError::DescriptorLost)?;
        for (file, opened) in [(words_file(&self.name), &self.words.0), (locks_file(&self.name), locks)] {
            if !opened.has_name(self.folder.fd().as_fd(), Path::new(&file)) {
                return Err(RegistryError::Removed { path: self.folder.path().join(file) });
            }
        }
        Ok(())
    }

    fn locks(&self) -> Result<&Descriptor, RegistryError> {
        let file = self.locks.as_ref().and_then(|locks| locks.file.as_ref());
        file.ok_or_else(|| MisuseError::NotOwner { owner: self.folder.owner_uid() }.into())
    }

    /// Keeps other threads from joining, leaving and sweeping.
    pub(super) fn move_alone(&self) -> MutexGuard<'_, ()> {
        self.moving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The places of this process.
    pub(super) fn own(&self) -> MutexGuard<'_, BTreeMap<u16, NonZeroU64>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads bytes that are all there.
    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RegistryError> {
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pread(self.words.0.hold(), &mut bytes[done..], offset + done as u64) {
                Ok(0) => return Err(RegistryError::Short { path: self.path() }),
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(system("read", &self.path(), errno)),
            }
        }
        Ok(())
    }

    pub(super) fn read_word(&self, offset: u64) -> Result<u64, RegistryError> {
        let mut word = [0; WORD_BYTES];
        self.read(offset, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    /// Writes a word as a whole: a process that is killed has written it or not.
    pub(super) fn write_word(&self, offset: u64, word: u64) -> Result<(), RegistryError> {
        self.write(offset, &word.to_le_bytes())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), RegistryError> {
        write_whole(self.words.0.hold(), bytes, offset)
            .map_err(|errno| system("write all to", &self.path(), errno))
    }

    /// Gives other users the right to read the words.
    pub(super) fn let_others_read(&self) -> Result<(), RegistryError> {
        self.folder.make_searchable()?;
        rustix::fs::fchmod(self.words.0.hold(), Mode::from_raw_mode(READABLE))
            .map_err(|errno| system("let other users read", &self.path(), errno))
    }

    /// Locks a bucket against other threads and processes.
    pub(super) fn lock_bucket(
        &self,
        bucket: usize,
        patience: Duration,
    ) -> Result<BucketLock<'_>, RegistryError> {
        let Some(locks) = &self.locks else {
            return Err(MisuseError::NotOwner { owner: self.folder.owner_uid() }.into());
        };
        until(
            Instant::now(),
            patience,
            || self.path(),
            || {
                let thread = match locks.buckets[bucket].try_lock() {
                    Ok(thread) => thread,
                    Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                    Err(TryLockError::WouldBlock) => return Ok(None),
                };
                let is_had = self.try_lock(bucket_lock(bucket))?;
                Ok(is_had.then(|| BucketLock { files: self, bucket, _thread: thread }))
            },
        )
    }

    /// Whether this process has the place of a holder now, for a sweep or to live there. Not where it lives there already.
    pub(super) fn try_lock_place(&self, holder: u16) -> Result<bool, RegistryError> {
        self.try_lock(sweep_lock(holder))
    }

    /// Says that somebody lives at a place that was locked.
    pub(super) fn settle(&self, holder: u16) -> Result<bool, RegistryError> {
        self.try_lock(life_lock(holder))
    }

    pub(super) fn leave_place(&self, holder: u16) {
        self.unlock(holder_lock(holder));
    }

    /// Whether another process lives at this place, by the kernel's word.
    pub(super) fn is_lived_in(&self, holder: u16) -> Result<bool, RegistryError> {
        Ok(self.life(holder)?.is_some())
    }

    /// Which other process lives at this place, by the kernel's word; 0 for one outside this pid namespace.
    pub(super) fn life(&self, holder: u16) -> Result<Option<u32>, RegistryError> {
        Ok(record_lock::other(self.locks()?.hold(), life_lock(holder))
            .map_err(|errno| self.locks_failed(errno))?
            .map(|other| other.pid))
    }

    fn try_lock(&self, bytes: Bytes) -> Result<bool, RegistryError> {
        record_lock::try_lock(self.locks()?.hold(), bytes).map_err(|errno| self.locks_failed(errno))
    }

    fn unlock(&self, bytes: Bytes) {
        let unlocked = self.locks().and_then(|locks| {
            record_lock::unlock(locks.hold(), bytes).map_err(|errno| self.locks_failed(errno))
        });
        if let Err(error) = unlocked {
            tracing::error!(%error, "a part of a registry stays locked");
        }
    }

    fn locks_failed(&self, errno: Errno) -> RegistryError {
        system("lock", &self.folder.path().join(locks_file(&self.name)), errno)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // Of files that could not be opened whoever tried keeps others from opening them.
        let (Some(locks), Some(key)) = (self.locks.as_mut(), &self.key) else { return };
        let mut open = open_files();
        let is_own = self.process.is_this();
        if is_own || !open.contains_key(key) {
            // Under the lock of the table: who opens them next does so after they are closed.
            drop(locks.file.take());
        } else {
            // A forked child that has them open itself: closing the copy would end the child's own locks.
            std::mem::forget(locks.file.take());
        }
        if is_own {
            open.remove(key);
        }
    }
}

/// Tries until something is had, or others have been busy with the registry for as long as this.
fn until<T>(
    started: Instant,
    patience: Duration,
    path: impl FnOnce() -> PathBuf,
    mut attempt: impl FnMut() -> Result<Option<T>, RegistryError>,
) -> Result<T, RegistryError> {
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(had) = attempt()? {
            return Ok(had);
        }
        if started.elapsed() >= patience {
            return Err(RegistryError::Busy { path: path(), waited: patience });
        }
        thread::sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// What the file of words of a registry ends in.
const WORDS_SUFFIX: &str = ".registry";

fn words_file(name: &Name) -> String {
    format!("{name}{WORDS_SUFFIX}")
}

/// The name of the registry whose words a file has, if its name is one of those.
pub(super) fn name_of(file: &str) -> Option<String> {
    Name::new(file.strip_suffix(WORDS_SUFFIX)?).ok().map(|name| name.as_str().to_owned())
}

fn locks_file(name: &Name) -> String {
    format!("{name}.registry-locks")
}

fn is_of_network(kind: u64) -> bool {
    NETWORK_FILE_SYSTEMS.contains(&(kind & 0xffff_ffff))
}

fn system(what: &'static str, path: &Path, errno: Errno) -> RegistryError {
    RegistryError::System { what, path: path.to_owned(), errno }
}

/// Opens a file in the folder that is a file, and the owner's.
pub(crate) fn open_file(
    folder: &Folder,
    file: &str,
    access: OFlags,
    owner_uid: u32,
) -> Result<OwnedFd, RegistryError> {
    let path = || folder.path().join(file);
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let is_made = access.contains(OFlags::CREATE);
    let opened = match is_made {
        true => modes::open(folder.fd(), Path::new(file), flags, OWNERS),
        false => rustix::fs::openat(folder.fd(), file, flags, Mode::empty()),
    };
    let opened = opened.map_err(|errno| match errno {
        Errno::NOENT if !is_made => RegistryError::Absent { path: path() },
        Errno::ACCESS if !is_made => RegistryError::NotAllowed { path: path() },
        Errno::LOOP | Errno::ISDIR | Errno::NXIO => RegistryError::NotOwners { path: path() },
        errno => system("open", &path(), errno),
    })?;
    let stat = rustix::fs::fstat(&opened).map_err(|errno| system("examine", &path(), errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_uid != owner_uid {
        return Err(RegistryError::NotOwners { path: path() });
    }
    Ok(opened)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn folders_that_hosts_share_are_refused() {
        const TMPFS: u64 = 0x0102_1994;
        const EXT4: u64 = 0xef53;
        assert!(NETWORK_FILE_SYSTEMS.into_iter().all(is_of_network));
        assert_eq!([TMPFS, EXT4].map(is_of_network), [false; 2]);
        // Where the kernel's word for it is signed.
        assert!(is_of_network(0xff53_4d42_u32.cast_signed() as u64));
    }

    #[test]
    fn locks_of_buckets_and_of_places_are_apart() {
        let holders = holder_lock(0).0..holder_lock(super::super::words::HOLDERS as u16).0;
        assert!(MAKING_LOCK.0 < BUCKET_LOCKS && BUCKET_LOCKS + BUCKETS as i64 <= holders.start);
        assert_eq!(holders.end - holders.start, 2 * super::super::words::HOLDERS as i64);
    }
}
