//! Marks of ports: a word a port in a file of the domain's folder, which is another one behind each change of who has the port.
//!
//! A process that gives a socket of UDP a port says so here before its `bind` returns ([`PortMarks::mark`]). Who sends to all that have a port looks who they are behind
//! a mark ([`PortMarks::watch`]), and goes by what it found as long as the mark is the same ([`PortMarks::read`]): one system call.
//!
//! A mark is drawn at random and is never 0, so of two that mark at once, in whatever order, neither has the mark back that somebody went by. There is no lock, no list and
//! no owner. The file is read and written by system calls and never mapped: who cuts it has marks vanish, which is a change as well. Somebody else who writes into it,
//! as its owner can, causes looks, or has one left out (record 0085).

mod mark;

use std::io;
use std::num::NonZeroU64;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::DomainConfig;
use crate::descriptor::Descriptor;
use crate::error::{DomainError, MisuseError};
use crate::folder::{Folder, own_uid};
use crate::moving::{self, Movable, Registered};
use crate::numbers::Purpose;
use crate::place::Place;
use crate::registry::{RegistryError, open_file, write_whole};
use crate::sync::{Ordering, fence};
use mark::MarkWord;

/// Name of the file in the domain's folder.
const FILE: &str = "ports.marks";
const WORD_BYTES: usize = 8;

/// The marks of all ports of a domain, as this process has them open. A child of fork may go on with them.
#[derive(Debug)]
pub struct PortMarks {
    folder: Arc<Folder>,
    file: Arc<File>,
    _moves: Registered,
}

/// Why there are no marks.
#[derive(Debug, thiserror::Error)]
pub enum PortMarksError {
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The domain lies in a network namespace, or the file cannot be opened.
    #[error(transparent)]
    File(#[from] RegistryError),
}

#[derive(Debug)]
struct File(Descriptor);

impl Movable for File {
    fn move_above(&self, lowest: RawFd) -> io::Result<()> {
        Ok(self.0.move_above(lowest, None)?)
    }
}

/// The word of one port.
struct Word<'a> {
    marks: &'a PortMarks,
    port: u16,
}

impl PortMarks {
    /// Opens the marks of this user's domain, and makes the file if it is not there.
    ///
    /// # Errors
    /// The domain cannot be opened, has no folder, or the file is not this user's.
    pub fn open(config: &DomainConfig) -> Result<Self, PortMarksError> {
        let Place::Folder(folder) = Place::open_own(config)? else {
            return Err(RegistryError::NoFolder.into());
        };
        let file = open_file(&folder, FILE, OFlags::RDWR | OFlags::CREATE, own_uid())?;
        let file = Arc::new(File(Descriptor::new(file, Purpose::PortMarks)));
        let moves: Weak<File> = Arc::downgrade(&file);
        Ok(PortMarks { folder, file, _moves: moving::register(moves) })
    }

    /// Gives a port another mark: who has it has changed.
    ///
    /// # Errors
    /// The descriptor was lost, or the file cannot be written. Others go on as if nothing had changed.
    pub fn mark(&self, port: u16) -> Result<(), RegistryError> {
        mark::renew(&Word { marks: self, port })
    }

    /// What `look` finds of who has the port, and the mark behind which it looked.
    ///
    /// # Errors
    /// As [`PortMarks::mark`].
    pub fn watch<T>(&self, port: u16, look: impl FnOnce() -> T) -> Result<(NonZeroU64, T), RegistryError> {
        // A word of a file of the program's that has the number would stay what it is.
        self.file.0.check().map_err(|_| MisuseError::DescriptorLost)?;
        mark::watch(&Word { marks: self, port }, look)
    }

    /// The mark of a port; `None` where it has none. One system call. Where the descriptor was lost it is not the one that [`PortMarks::watch`] gave: no other file has that.
    ///
    /// # Errors
    /// The file cannot be read.
    #[inline]
    pub fn read(&self, port: u16) -> Result<Option<NonZeroU64>, RegistryError> {
        Word { marks: self, port }.read()
    }

    fn failed(&self, what: &'static str, errno: Errno) -> RegistryError {
        RegistryError::System { what, path: self.path(), errno }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(FILE)
    }
}

impl Word<'_> {
    fn at(&self) -> u64 {
        u64::from(self.port) * WORD_BYTES as u64
    }
}

impl MarkWord for Word<'_> {
    type Error = RegistryError;

    fn read(&self) -> Result<Option<NonZeroU64>, RegistryError> {
        let mut word = [0; WORD_BYTES];
        let file = self.marks.file.0.hold();
        match rustix::io::retry_on_intr(|| rustix::io::pread(&file, &mut word, self.at())) {
            Ok(WORD_BYTES) => Ok(NonZeroU64::new(u64::from_le_bytes(word))),
            // A file of the program's that has the number may be shorter as well.
            Ok(_) => Ok(None),
            Err(errno) => Err(self.marks.failed("read", errno)),
        }
    }

    fn write(&self, mark: NonZeroU64) -> Result<(), RegistryError> {
        let file = self.marks.file.0.check().map_err(|_| MisuseError::DescriptorLost)?;
        let word = mark.get().to_le_bytes();
        write_whole(&file, &word, self.at()).map_err(|errno| self.marks.failed("write all to", errno))
    }

    fn barrier(&self) {
        // The kernel's copies are this thread's stores and loads.
        fence(Ordering::SeqCst);
    }

    fn draw(&self) -> Result<NonZeroU64, RegistryError> {
        loop {
            let mut bytes = [0; WORD_BYTES];
            getrandom::fill(&mut bytes)
                .map_err(|_| self.marks.failed("get a random number for", Errno::NOSYS))?;
            if let Some(mark) = NonZeroU64::new(u64::from_le_bytes(bytes)) {
                return Ok(mark);
            }
        }
    }
}
