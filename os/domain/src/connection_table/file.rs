//! The file of the table of connections, as one process has it open. It is read and written by system calls and never mapped, so no
//! process can be harmed by who cuts it.

use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::{fmt, io};

use beeline_mmio::ThisProcess;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::words::{FILE_BYTES, FORMAT, KEY_BYTES, KEY_OFFSET, Key, Words, word_offset};
use crate::descriptor::{Descriptor, Held};
use crate::error::MisuseError;
use crate::folder::{Folder, own_uid};
use crate::moving::{self, Movable, Registered};
use crate::numbers::Purpose;
use crate::registry::words::WORD_BYTES;
use crate::registry::{Registry, RegistryError, make_room, open_file, write_whole};
use crate::sync::{Ordering, fence};

/// Name of the file in the domain's folder.
const FILE: &str = "connections.table";
/// Mode of a table that other users may read.
const READABLE: u32 = 0o644;

/// An open table.
pub(super) struct Table {
    folder: Arc<Folder>,
    file: Arc<File>,
    key: Key,
    process: ThisProcess,
    _moves: Registered,
}

struct File(Descriptor);

impl Movable for File {
    fn move_above(&self, lowest: RawFd) -> io::Result<()> {
        Ok(self.0.move_above(lowest, None)?)
    }
}

/// A table whose descriptor was found to be the table's; for one look.
pub(super) struct Checked<'a> {
    table: &'a Table,
    file: Held,
}

impl Table {
    /// Opens the table of this user's domain, which has this registry, and makes it if it is not there.
    pub(super) fn open_own(registry: &Registry) -> Result<Self, RegistryError> {
        let folder = registry.folder();
        let file = open_file(folder, FILE, OFlags::RDWR | OFlags::CREATE, own_uid())?;
        let mut table = Self::of(folder, file);
        if table.format()? == 0 {
            registry.make_alone(|| table.make())?;
        }
        table.read_key()?;
        Ok(table)
    }

    /// Opens the table of another user's domain for reading.
    pub(super) fn open_foreign(registry: &Registry) -> Result<Self, RegistryError> {
        let folder = registry.folder();
        let file = open_file(folder, FILE, OFlags::RDONLY, folder.owner_uid())?;
        let mut table = Self::of(folder, file);
        table.read_key()?;
        Ok(table)
    }

    fn of(folder: &Arc<Folder>, file: OwnedFd) -> Self {
        let file = Arc::new(File(Descriptor::new(file, Purpose::Connections)));
        let moves: Weak<File> = Arc::downgrade(&file);
        Table {
            folder: Arc::clone(folder),
            file,
            key: Key([0; KEY_BYTES]),
            process: ThisProcess::get(),
            _moves: moving::register(moves),
        }
    }

    /// Completes the file, whoever began it. The format is written last.
    fn make(&self) -> Result<(), RegistryError> {
        if self.format()? != 0 {
            return Ok(());
        }
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(|_| self.failed("get a random number for", Errno::NOSYS))?;
        let file = self.file.0.hold();
        make_room(file.as_fd(), FILE_BYTES).map_err(|errno| self.failed("make room for", errno))?;
        self.write_all(&file, KEY_OFFSET, &key)?;
        self.write_all(&file, 0, &FORMAT.to_le_bytes())
    }

    /// The first word of the file; 0 where it is not there yet.
    fn format(&self) -> Result<u64, RegistryError> {
        let mut word = [0; WORD_BYTES];
        let read = rustix::io::retry_on_intr(|| rustix::io::pread(self.file.0.hold(), &mut word, 0));
        read.map_err(|errno| self.failed("read", errno))?;
        Ok(u64::from_le_bytes(word))
    }

    fn read_key(&mut self) -> Result<(), RegistryError> {
        match self.format()? {
            FORMAT => {}
            0 => return Err(RegistryError::Absent { path: self.path() }),
            found => return Err(RegistryError::Format { path: self.path(), found }),
        }
        // Pairs with the order in which `make` writes the two.
        fence(Ordering::Acquire);
        let mut key = [0; KEY_BYTES];
        let file = self.file.0.hold();
        self.read_all(&file, KEY_OFFSET, &mut key)?;
        // A file that was cut has no last word.
        self.read_all(&file, FILE_BYTES - WORD_BYTES as u64, &mut [0; WORD_BYTES])?;
        self.key = Key(key);
        Ok(())
    }

    pub(super) fn key(&self) -> Key {
        self.key
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(FILE)
    }

    pub(super) fn check_process(&self) -> Result<(), MisuseError> {
        match self.process.is_this() {
            true => Ok(()),
            false => Err(MisuseError::Forked { opened_by: self.process.pid(), pid: std::process::id() }),
        }
    }

    /// Whether this process may use it, and its descriptor is there: a word must not be written into a file of the program's that has
    /// taken the number.
    pub(super) fn check(&self) -> Result<Checked<'_>, RegistryError> {
        self.check_process()?;
        let file = self.file.0.check().map_err(|_| MisuseError::DescriptorLost)?;
        Ok(Checked { table: self, file })
    }

    /// Whether what is written is found by others: the file has its name.
    pub(super) fn check_name(&self) -> Result<(), RegistryError> {
        match self.file.0.has_name(self.folder.fd().as_fd(), Path::new(FILE)) {
            true => Ok(()),
            false => Err(RegistryError::Removed { path: self.path() }),
        }
    }

    pub(super) fn let_others_read(&self) -> Result<(), RegistryError> {
        rustix::fs::fchmod(self.file.0.hold(), Mode::from_raw_mode(READABLE))
            .map_err(|errno| self.failed("let other users read", errno))
    }

    fn read_all(&self, file: &Held, offset: u64, bytes: &mut [u8]) -> Result<(), RegistryError> {
        match rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut *bytes, offset)) {
            Ok(read) if read == bytes.len() => Ok(()),
            Ok(_) => Err(RegistryError::Short { path: self.path() }),
            Err(errno) => Err(self.failed("read", errno)),
        }
    }

    fn write_all(&self, file: &Held, offset: u64, bytes: &[u8]) -> Result<(), RegistryError> {
        write_whole(file, bytes, offset).map_err(|errno| self.failed("write all to", errno))
    }

    fn failed(&self, what: &'static str, errno: Errno) -> RegistryError {
        RegistryError::System { what, path: self.path(), errno }
    }
}

impl Words for Checked<'_> {
    type Error = RegistryError;

    fn write(&self, slot: usize, word: u64) -> Result<(), RegistryError> {
        self.table.write_all(&self.file, word_offset(slot), &word.to_le_bytes())
    }

    fn barrier(&self) {
        // The kernel's copies are this thread's stores and loads. Pairs with the same fence of the process at the other end.
        fence(Ordering::SeqCst);
    }

    fn read(&self, slot: usize) -> Result<u64, RegistryError> {
        let mut word = [0; WORD_BYTES];
        self.table.read_all(&self.file, word_offset(slot), &mut word)?;
        Ok(u64::from_le_bytes(word))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Table").field(&self.path()).finish()
    }
}
