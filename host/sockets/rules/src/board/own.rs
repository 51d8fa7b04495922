//! The board of this process.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use beeline_mmio::{SegmentError, ThisProcess, Words};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use super::layout::{
    CLOSED, FORMAT, FREE, GENERATION, OPEN, OPENING, ROW_WORDS, ROWS, STATE_MASK, address_words, header, row,
};
use super::look;
use super::name::FOLDER;
use super::parts::{PartError, Parts};
use super::process::Recorded;
use super::rows::{Row, tally};
use super::run::Run;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Why a process has no board. It works without one; nobody sees its connections.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    #[error("cannot {what} {}: {errno}; connections of this process are not listed", path.display())]
    System { what: &'static str, path: PathBuf, errno: Errno },
    /// The folder is not this user's alone.
    #[error("{} is of uid {uid} and has mode {mode:04o}; remove it: it is this user's alone, with mode 0700", path.display())]
    Folder { path: PathBuf, uid: u32, mode: u32 },
    #[error(transparent)]
    Map(#[from] SegmentError),
}

/// The board of this process. It has no descriptor: programs close those that they did not open.
#[derive(Debug)]
pub struct Board {
    parts: Parts,
    process: ThisProcess,
    run: Option<Run>,
    /// Where the search for a free row begins.
    next: AtomicUsize,
}

impl Board {
    /// Makes a board in a domain's folder, which is there. What processes that have ended left there is removed, some of it.
    /// With a run, the file stays when the process ends, and connections that have ended stay listed as long as there is room, until that run has read it.
    ///
    /// # Errors
    /// The folder is none, as where a domain lies in a network namespace; there is no room; the kernel refuses.
    pub fn create(domain_folder: &Path, run: Option<Run>) -> Result<Self, BoardError> {
        let folder_path = domain_folder.join(FOLDER);
        let folder = open_folder(&folder_path)?;
        look::sweep(&folder, &folder_path);
        let random =
            getrandom::u64().map_err(|_| failed("get a random number for", &folder_path)(Errno::NOSYS))?;
        let name = format!("{}-{random:016x}", std::process::id());
        let path = folder_path.join(&name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&folder, &name, flags, Mode::from_raw_mode(FILE_MODE))
            .map_err(failed("make", &path))?;
        let made = Self::in_file(&file, &path, run);
        if made.is_err() {
            let _ = rustix::fs::unlink(&path);
        }
        made
    }

    fn in_file(file: &OwnedFd, path: &Path, run: Option<Run>) -> Result<Self, BoardError> {
        // Whatever the umask took.
        rustix::fs::fchmod(file, Mode::from_raw_mode(FILE_MODE)).map_err(failed("set the mode of", path))?;
        let parts = Parts::of_new(file, path).map_err(|error| match error {
            PartError::System(errno) => failed("make room for", path)(errno),
            PartError::Map(error) => error.into(),
        })?;
        let words = parts.header();
        let Recorded { pid, start, namespace, boot, image } = Recorded::of_this_process();
        for (at, word) in [
            (header::ROWS, ROWS as u64),
            (header::PID, pid.into()),
            (header::START, start),
            (header::NAMESPACE, namespace),
            (header::BOOT, boot),
            (header::IMAGE, image),
        ] {
            words.store(at, word);
        }
        if let Some(run) = run {
            for (at, word) in [header::RUN, header::RUN_PID, header::RUN_START].into_iter().zip(run.words()) {
                words.store(at, word);
            }
        }
        let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
        let program = program.as_os_str().as_bytes();
        parts.store_text(header::PROGRAM_OFFSET, &program[..program.len().min(header::PROGRAM_BYTES)]);
        // Release: whoever reads the format finds the rest. The kernel's read is the other side.
        words.store_release(header::FORMAT, FORMAT);
        let process = ThisProcess::get();
        Ok(Board { parts, process, run, next: AtomicUsize::new(0) })
    }

    /// Whether it is this process's, and not that of the parent of a child of fork, which makes its own.
    pub fn is_of_this_process(&self) -> bool {
        self.process.is_this()
    }

    pub(super) fn header(&self) -> Words {
        self.parts.header()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.parts.path()
    }

    /// A row for a connection; `None` where all are taken, which is counted, and in a child of fork.
    pub fn row(&self, socket: u32, local: SocketAddr, peer: SocketAddr) -> Option<Row> {
        if !self.is_of_this_process() {
            return None;
        }
        let taken = self.take(FREE).or_else(|| if self.parts.grow() { self.take(FREE) } else { None });
        let Some((words, taken)) = taken.or_else(|| self.take(CLOSED)) else {
            self.parts.header().raise_release(header::UNLISTED);
            return None;
        };
        (1..ROW_WORDS).for_each(|word| words.store(word, 0));
        words.store(row::SOCKET, socket.into());
        words.store(row::PORTS, u64::from(local.port()) | u64::from(peer.port()) << 16);
        for (at, end) in [(row::LOCAL, local), (row::PEER, peer)] {
            let [low, high] = address_words(end.ip());
            words.store(at, low);
            words.store(at + 1, high);
        }
        // Release: a reader that finds it open finds the rest.
        words.store_release(row::STATE, taken | OPEN);
        Some(Row::new(words, self.parts.header(), self.process, self.run.is_some()))
    }

    /// Takes a row that is in this state: its words, and how often it was taken.
    fn take(&self, wanted: u64) -> Option<(Words, u64)> {
        // Relaxed: where to begin is a hint.
        let (first, rows) = (self.next.load(Ordering::Relaxed), self.parts.rows());
        for index in (0..rows).map(|step| (first + step) % rows) {
            let (region, offset) = self.parts.place(index)?;
            let state = region.word(offset);
            let found = state.load();
            if found & STATE_MASK != wanted {
                continue;
            }
            let taken = (found & !STATE_MASK).wrapping_add(GENERATION);
            // Pairs with the release of a row that is dropped.
            if state.compare_exchange(found, taken | OPENING).is_err() {
                continue;
            }
            self.next.store(index + 1, Ordering::Relaxed);
            let words = self.parts.row(index)?;
            if wanted == CLOSED {
                tally(&self.parts.header(), words.load(row::WHY));
            }
            return Some((words, taken));
        }
        None
    }

    /// Says that the process ends, and removes the file unless a run is to read it. For whoever keeps the board to the end, as in a static, which
    /// is not dropped.
    pub fn end(&self) {
        if !self.is_of_this_process() {
            return;
        }
        self.parts.header().store(header::ENDED, 1);
        if self.run.is_none() {
            let _ = rustix::fs::unlink(self.path());
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.end();
    }
}

fn failed(what: &'static str, path: &Path) -> impl Fn(Errno) -> BoardError {
    let path = path.to_owned();
    move |errno| BoardError::System { what, path: path.clone(), errno }
}

/// Opens the folder of boards, and makes it if it is not there.
pub(super) fn open_folder(path: &Path) -> Result<OwnedFd, BoardError> {
    let mode = Mode::from_raw_mode(FOLDER_MODE);
    match rustix::fs::mkdir(path, mode) {
        // Whatever the umask took. It lies in a folder that is this user's alone.
        Ok(()) => rustix::fs::chmod(path, mode).map_err(failed("set the mode of", path))?,
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(failed("make the folder", path)(errno)),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder =
        rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(failed("open the folder", path))?;
    let stat = rustix::fs::fstat(&folder).map_err(failed("examine", path))?;
    let (uid, mode) = (stat.st_uid, stat.st_mode & 0o777);
    if uid != rustix::process::geteuid().as_raw() || mode != FOLDER_MODE {
        return Err(BoardError::Folder { path: path.to_owned(), uid, mode });
    }
    Ok(folder)
}

#[cfg(test)]
mod tests;
