//! A BAR of a PCI function, mapped through sysfs: no driver, no module, but the permission to open a file.
//!
//! `resourceN` maps it uncached: for registers. `resourceN_wc` maps it write-combining: for windows; it is there for
//! prefetchable BARs only. VFIO and ivshmem give other ways to the same registers and are not here.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::mapping::{Backing, Mapping};
use crate::{MapError, PciAddress, Region};

/// How the CPU treats a mapped BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarKind {
    /// Every access is its own transaction, in program order.
    Uncached,
    /// Stores gather in 64-byte buffers and leave in no order.
    WriteCombining,
}

/// A mapped BAR.
#[derive(Debug)]
pub struct PciBar {
    region: Region,
    path: PathBuf,
    kind: BarKind,
}

impl PciBar {
    /// Maps BAR `index` (0 to 5) of a function, whole. Its size is that of the sysfs file.
    pub fn open(address: PciAddress, index: u8, kind: BarKind) -> Result<Self, MapError> {
        Self::open_under(Path::new("/sys"), address, index, kind)
    }

    /// As [`PciBar::open`], with another root than `/sys`: for tests.
    pub fn open_under(sysfs: &Path, address: PciAddress, index: u8, kind: BarKind) -> Result<Self, MapError> {
        let file = open(sysfs, address, index, kind, true)?;
        let mapping = map(&file.fd, file.bytes).map_err(|source| {
            let (why, remedy) = explain_map(source, address);
            MapError::Bar { path: file.path.clone(), why, remedy }
        })?;
        Ok(PciBar { region: Region::new(mapping), path: file.path, kind })
    }

    /// The mapped BAR: registers are its words, windows its lines.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The file that is mapped.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How the CPU treats it, as asked for; [`crate::selftest`] measures whether it does.
    pub fn kind(&self) -> BarKind {
        self.kind
    }
}

/// A BAR's file, open and of a BAR's size.
pub(crate) struct BarFile {
    pub(crate) fd: OwnedFd,
    pub(crate) bytes: usize,
    pub(crate) path: PathBuf,
}

/// Opens the file of BAR `index` of a function.
pub(crate) fn open(
    sysfs: &Path,
    address: PciAddress,
    index: u8,
    kind: BarKind,
    to_write: bool,
) -> Result<BarFile, MapError> {
    let folder = sysfs.join("bus/pci/devices").join(address.to_string());
    let suffix = if kind == BarKind::WriteCombining { "_wc" } else { "" };
    let path = folder.join(format!("resource{index}{suffix}"));
    let refused = |why: String, remedy: String| MapError::Bar { path: path.clone(), why, remedy };
    if index > 5 {
        return Err(refused(format!("a PCI function has no BAR {index}"), "name one of 0 to 5".to_owned()));
    }
    check_enabled(&folder)?;
    let fd = open_file(&path, to_write).map_err(|source| {
        let (why, remedy) = explain_open(source, &folder, kind);
        refused(why, remedy)
    })?;
    let bytes =
        size(&fd).map_err(|why| refused(why, "name another BAR (`lspci -vv` shows them)".to_owned()))?;
    Ok(BarFile { fd, bytes, path })
}

/// A function whose memory decoding is off answers every load with ones and drops every store.
fn check_enabled(folder: &Path) -> Result<(), MapError> {
    let path = folder.join("enable");
    match std::fs::read_to_string(&path) {
        Ok(text) if text.trim() == "0" => Err(MapError::Bar {
            remedy: format!("switch it on with `echo 1 > {}` as root, or load its driver", path.display()),
            path,
            why: "the function's memory is switched off".to_owned(),
        }),
        // Without the file, or without the right to read it, opening the BAR says what is wrong.
        _ => Ok(()),
    }
}

/// Opens without following a link in the last component: sysfs has none there, so a link is somebody's trick.
fn open_file(path: &Path, to_write: bool) -> Result<OwnedFd, Errno> {
    let access = if to_write { OFlags::RDWR } else { OFlags::RDONLY };
    let flags = access | OFlags::SYNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::open(path, flags, Mode::empty())
}

fn size(fd: &OwnedFd) -> Result<usize, String> {
    let stat = rustix::fs::fstat(fd).map_err(|source| format!("it cannot be examined ({source})"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err("it is not a regular file".to_owned());
    }
    match usize::try_from(stat.st_size) {
        // Lines are what windows are made of, and no BAR is smaller than 16 bytes or not a power of two.
        Ok(bytes) if bytes.is_power_of_two() && bytes >= 16 => Ok(bytes),
        _ => Err(format!("{} bytes is not the size of a BAR", stat.st_size)),
    }
}

fn map(fd: &OwnedFd, bytes: usize) -> Result<Mapping, Errno> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh address range chosen by the kernel; nothing of this process is replaced.
    let start =
        unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, fd, 0) }?;
    let start = NonNull::new(start.cast()).expect("mmap without MAP_FIXED never gives address 0");
    // SAFETY: the range was just mapped for reading and writing, and nobody else knows it.
    Ok(unsafe { Mapping::from_mmap(start, bytes, Backing::Device) })
}

/// Why the file cannot be opened, and what to do.
fn explain_open(source: Errno, folder: &Path, kind: BarKind) -> (String, String) {
    match source {
        Errno::NOENT if !folder.exists() => {
            ("there is no such PCI function".to_owned(), "see `lspci -D` for those there are".to_owned())
        }
        Errno::NOENT if kind == BarKind::WriteCombining => (
            "the BAR cannot be mapped write-combining".to_owned(),
            "use a prefetchable BAR (`lspci -vv` says which are), or map this one uncached".to_owned(),
        ),
        Errno::NOENT => {
            ("the function has no such BAR".to_owned(), "`lspci -vv` shows those it has".to_owned())
        }
        Errno::LOOP => {
            ("it is a symbolic link".to_owned(), "sysfs has none there: check what is mounted".to_owned())
        }
        Errno::ACCESS => (
            "permission denied".to_owned(),
            "run as root, or give this user the file with a udev rule (`chown` for a trial)".to_owned(),
        ),
        Errno::PERM => (
            "operation not permitted".to_owned(),
            "the kernel is locked down (Secure Boot): switch lockdown off, or use VFIO".to_owned(),
        ),
        source => (io::Error::from(source).to_string(), "see `dmesg` for the kernel's reason".to_owned()),
    }
}

/// Why the open file cannot be mapped, and what to do.
fn explain_map(source: Errno, address: PciAddress) -> (String, String) {
    match source {
        Errno::INVAL => (
            "it cannot be mapped: it is an I/O port BAR, or its driver has claimed it for itself".to_owned(),
            format!(
                "name a memory BAR, or unbind the driver (`echo {address} > /sys/bus/pci/drivers/<driver>/unbind`)"
            ),
        ),
        Errno::PERM => (
            "it may not be mapped".to_owned(),
            "the kernel is locked down (Secure Boot): switch lockdown off, or use VFIO".to_owned(),
        ),
        source => {
            (format!("it cannot be mapped ({source})"), "see `dmesg` for the kernel's reason".to_owned())
        }
    }
}

#[cfg(test)]
#[path = "bar_tests.rs"]
mod tests;
