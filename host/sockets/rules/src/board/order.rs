//! Taking connections of running processes off their windows, and letting them go back: what somebody orders, and what processes say that they have done.
//!
//! A folder of boards has a file `down` while windows of its domain are down, for processes that begin later. Each board has a word that whoever
//! orders writes, by a system call, and one in which its process says which order it has carried out. The order is written behind the file: a
//! process whose board is not there yet finds the file, and any other one finds the order.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::layout::header;
use super::look::{LookError, failed, names, open_folder, see};
use super::name::FOLDER;
use super::own::{self, Board, BoardError};
use super::process::Life;

/// The file that says that windows of the domain are down.
const DOWN: &str = "down";
const IS_DOWN: u64 = 1;
/// What an order's word is larger by than that of the one before: the lowest bit is its direction.
const COUNT: u64 = 2;

/// Why nobody was given an order.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    #[error(transparent)]
    Look(#[from] LookError),
    #[error(transparent)]
    Make(#[from] BoardError),
}

/// By which path connections may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// Connections may go by them.
    Up,
    /// All connections go by the kernel's socket.
    Down,
}

/// The last order that a process was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order(u64);

/// A process that was given an order.
#[derive(Debug)]
pub struct Ordered {
    /// As it is called in its own pid namespace.
    pub pid: u32,
    /// What it says where its bell is; all zero: it has none yet, and sees the order when it begins to use it.
    pub bell: [u64; 4],
    board: OwnedFd,
    order: u64,
}

impl Order {
    /// What it orders; `None` where nobody has ordered anything.
    pub fn windows(self) -> Option<Windows> {
        (self.0 != 0).then(|| windows(self.0 & IS_DOWN != 0))
    }
}

fn windows(is_down: bool) -> Windows {
    if is_down { Windows::Down } else { Windows::Up }
}

impl Board {
    /// Says by which bell this process is told of orders. Those that were given before are found by [`Board::order`] behind it.
    pub fn set_bell(&self, bell: [u64; 4]) {
        let words = self.header();
        (header::BELL..).zip(bell).for_each(|(at, word)| words.store(at, word));
        // Of this and whoever writes an order and then reads the bell at least one sees the other one.
        beeline_mmio::fence::order_all();
    }

    /// What was ordered last, by whichever command; the same as before where nothing was.
    pub fn order(&self) -> Order {
        Order(self.header().load_acquire(header::ORDER))
    }

    /// What windows of the domain are for a process that was given no order. A system call.
    pub fn windows_of_domain(&self) -> Windows {
        windows(self.path().parent().is_some_and(is_down))
    }

    /// Says that an order was carried out.
    pub fn carried_out(&self, order: Order) {
        self.header().store_release(header::CARRIED_OUT, order.0);
    }
}

fn is_down(folder: &Path) -> bool {
    rustix::fs::lstat(folder.join(DOWN)).is_ok()
}

/// What windows of a domain are for processes that begin now.
pub fn windows_of(domain_folder: &Path) -> Windows {
    windows(is_down(&domain_folder.join(FOLDER)))
}

/// Orders all processes of a domain, those that begin later too, or only those with these numbers, to take their connections off windows or to let them
/// go back. Returns those that have to be rung.
///
/// # Errors
/// The folder or its file cannot be read or written. A board that is odd, or has gone, is left out.
pub fn order(domain_folder: &Path, pids: &[u32], to: Windows) -> Result<Vec<Ordered>, OrderError> {
    let path = domain_folder.join(FOLDER);
    if pids.is_empty() && to == Windows::Down {
        own::open_folder(&path)?;
    }
    let Some(folder) = open_folder(&path)? else { return Ok(Vec::new()) };
    // One at a time: the file and the words say the same in the end.
    rustix::io::retry_on_intr(|| rustix::fs::flock(&folder, FlockOperation::LockExclusive))
        .map_err(failed("lock", &path))?;
    if pids.is_empty() {
        set_file(&folder, to).map_err(failed("change the file `down` in", &path))?;
    }
    let mut ordered = Vec::new();
    for name in names(&folder, &path)? {
        let Ok(view) = see(&folder, &path, &name) else { continue };
        let is_meant = pids.is_empty() || pids.contains(&view.pid());
        if is_meant && view.life() != Life::Ended {
            let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let Ok(board) = rustix::fs::openat(&folder, &name, flags, Mode::empty()) else { continue };
            ordered.extend(give(board, view.pid(), to));
        }
    }
    Ok(ordered)
}

fn set_file(folder: &OwnedFd, to: Windows) -> Result<(), Errno> {
    match to {
        Windows::Down => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::openat(folder, DOWN, flags, Mode::from_raw_mode(0o600)).map(drop)
        }
        Windows::Up => match rustix::fs::unlinkat(folder, DOWN, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => removed,
        },
    }
}

fn give(board: OwnedFd, pid: u32, to: Windows) -> Result<Ordered, Errno> {
    let before = word(&board, header::ORDER)? & !IS_DOWN;
    let order = before.wrapping_add(COUNT) | if to == Windows::Down { IS_DOWN } else { 0 };
    rustix::io::pwrite(&board, &order.to_le_bytes(), (header::ORDER * 8) as u64)?;
    let mut bell = [0; 4];
    for (at, half) in (header::BELL..).zip(&mut bell) {
        *half = word(&board, at)?;
    }
    Ok(Ordered { pid, bell, board, order })
}

fn word(board: impl AsFd, at: usize) -> Result<u64, Errno> {
    let mut bytes = [0; 8];
    rustix::io::pread(board, &mut bytes, (at * 8) as u64)?;
    Ok(u64::from_le_bytes(bytes))
}

impl Ordered {
    /// Whether the process says that it has carried the order out, or a later one came. A system call.
    pub fn is_carried_out(&self) -> bool {
        word(&self.board, header::CARRIED_OUT).is_ok_and(|done| done == self.order)
            || word(&self.board, header::ORDER).is_ok_and(|order| order != self.order)
    }
}
