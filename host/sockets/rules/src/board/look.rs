//! Reading boards, by system calls: whoever cuts a file, or writes anything into it, harms nobody who looks.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::layout::Odd;
use super::layout::{HEADER_BYTES, board_of, rows_bytes};
use super::name::{FOLDER, pid_of};
use super::process::Life;
use super::run::Run;
use super::view::BoardView;

/// Boards that a process that makes one looks at, to remove what is left of others.
const SWEPT: usize = 64;

/// Why a board, or the folder of them, is not seen.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    #[error("cannot {what} {}: {errno}", path.display())]
    System { what: &'static str, path: PathBuf, errno: Errno },
    #[error("{} is no file", path.display())]
    NotAFile { path: PathBuf },
    #[error("{} is no board: {odd}", path.display())]
    Odd { path: PathBuf, odd: Odd },
}

/// The processes that have boards in a domain's folder, and their connections; none where there are none. Boards of processes that have ended are removed, but for those that a
/// run is to read: these are seen.
///
/// # Errors
/// The folder cannot be read. What is wrong with one board is said in its place.
pub fn boards(domain_folder: &Path) -> Result<impl Iterator<Item = Result<BoardView, LookError>>, LookError> {
    let path = domain_folder.join(FOLDER);
    let (folder, names) = match open_folder(&path)? {
        Some(folder) => {
            let names = names(&folder, &path)?;
            (Some(folder), names)
        }
        None => (None, Vec::new()),
    };
    let look = move |name: OsString| {
        let folder = folder.as_ref()?;
        let seen = match see(folder, &path, &name) {
            // It was removed since.
            Err(LookError::System { errno: Errno::NOENT, .. }) => return None,
            seen => seen,
        };
        if seen.as_ref().is_ok_and(is_left) {
            let _ = rustix::fs::unlinkat(folder, &name, AtFlags::empty());
            return None;
        }
        Some(seen)
    };
    Ok(names.into_iter().filter_map(look))
}

/// The boards of a run, for the process that reads it. Those of processes that have ended are removed: they are seen once.
///
/// # Errors
/// As for [`boards`].
pub fn boards_of_run(domain_folder: &Path, run: Run) -> Result<Vec<BoardView>, LookError> {
    let path = domain_folder.join(FOLDER);
    let Some(folder) = open_folder(&path)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for name in names(&folder, &path)? {
        let Ok(view) = see(&folder, &path, &name) else { continue };
        if view.run != Some(run) {
            continue;
        }
        if view.life() == Life::Ended {
            let _ = rustix::fs::unlinkat(&folder, &name, AtFlags::empty());
        }
        found.push(view);
    }
    Ok(found)
}

/// Removes boards of processes that have ended, of those that are found first.
pub(super) fn sweep(folder: &OwnedFd, path: &Path) {
    for name in names(folder, path).unwrap_or_default().into_iter().take(SWEPT) {
        // One look at a number, so that a folder full of living processes costs little.
        let is_there = pid_of(&name).is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists());
        if !is_there && see(folder, path, &name).is_ok_and(|view| is_left(&view)) {
            let _ = rustix::fs::unlinkat(folder, &name, AtFlags::empty());
        }
    }
}

/// Whether nobody needs it any more.
fn is_left(view: &BoardView) -> bool {
    view.life() == Life::Ended && !view.run.is_some_and(|run| run.is_awaited(&view.process))
}

pub(super) fn failed(what: &'static str, path: &Path) -> impl Fn(Errno) -> LookError {
    let path = path.to_owned();
    move |errno| LookError::System { what, path: path.clone(), errno }
}

pub(super) fn open_folder(path: &Path) -> Result<Option<OwnedFd>, LookError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Err(Errno::NOENT) => Ok(None),
        opened => opened.map(Some).map_err(failed("open", path)),
    }
}

/// Names of boards, by process.
pub(super) fn names(folder: &OwnedFd, path: &Path) -> Result<Vec<OsString>, LookError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder).map_err(failed("list", path))? {
        let entry = entry.map_err(failed("list", path))?;
        let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
        names.extend(pid_of(&name).map(|pid| (pid, name)));
    }
    names.sort();
    Ok(names.into_iter().map(|(_, name)| name).collect())
}

pub(super) fn see(folder: &OwnedFd, path: &Path, name: &OsString) -> Result<BoardView, LookError> {
    let path = path.join(name);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty()).map_err(failed("open", &path))?;
    let stat = rustix::fs::fstat(&file).map_err(failed("examine", &path))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(LookError::NotAFile { path });
    }
    let read = |offset, bytes| read(&file, offset, bytes).map_err(failed("read", &path));
    let header = read(0, HEADER_BYTES)?;
    let rows = rows_bytes(&header);
    let [before, after] = [read(HEADER_BYTES, rows)?, read(HEADER_BYTES, rows)?];
    board_of(&header, &before, &after).map_err(|odd| LookError::Odd { path: path.clone(), odd })
}

/// The bytes that there are, at most so many.
fn read(file: impl AsFd, offset: usize, bytes: usize) -> Result<Vec<u8>, Errno> {
    let mut read = vec![0; bytes];
    let mut filled = 0;
    while filled < bytes {
        let at = (offset + filled) as u64;
        match rustix::io::retry_on_intr(|| rustix::io::pread(&file, &mut read[filled..], at))? {
            0 => break,
            more => filled += more,
        }
    }
    read.truncate(filled);
    Ok(read)
}
