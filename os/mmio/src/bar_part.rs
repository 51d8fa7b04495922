//! A part of a BAR by its address on the bus: found in sysfs, mapped, and passed to other processes by the BAR's file.
//!
//! Only BARs have such addresses for who is no driver. Memory of the host has, too, and whoever could open it (`/dev/mem`) would have all
//! of it; a kernel that is strict about it (`STRICT_DEVMEM`) gives it to nobody. So it is not there.

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::segment::{MappedSegment, SegmentError, SegmentOptions};
use crate::{BarKind, MapError, PciAddress, bar};

/// `SYSFS_MAGIC` of Linux's `magic.h`.
const SYSFS_MAGIC: u64 = 0x6265_6572;
/// Flags of a line of the file `resource`: memory, not ports.
const IORESOURCE_MEM: u64 = 0x200;
/// What a PCI function has at most.
const BARS: usize = 6;

/// A part of a BAR, whose file is open.
#[derive(Clone, Debug)]
pub struct BarPart {
    file: Arc<OwnedFd>,
    /// For people.
    path: PathBuf,
    offset_bytes: u64,
    bytes: u64,
    bus_address: u64,
}

/// Why a part of a BAR is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum BarPartError {
    #[error(
        "{bytes} bytes at {bus_address:#x} on the bus are in no memory BAR (`lspci -vv` shows BARs); addresses of the host's own memory \
         are given to nobody"
    )]
    NotABar { bus_address: u64, bytes: u64 },
    /// Its file is not opened.
    #[error(transparent)]
    Bar(#[from] MapError),
    /// What another process has passed is no file of a BAR.
    #[error("descriptor {fd} is no BAR's: {why}")]
    NotPassed { fd: i32, why: String },
    /// The file of the BAR is smaller.
    #[error("{bytes} bytes at offset {offset_bytes} are not in a BAR of {whole}")]
    Outside { bytes: u64, offset_bytes: u64, whole: u64 },
}

impl BarPart {
    /// Finds the BAR that has these bytes, and opens its file for loads and stores: the one that combines stores where there is one. Several
    /// domains may have the same address; the first of them is taken.
    ///
    /// # Errors
    /// [`BarPartError`]: there is no such BAR, or this process may not open it.
    pub fn find(bus_address: u64, bytes: u64) -> Result<Self, BarPartError> {
        Self::find_under(Path::new("/sys"), bus_address, bytes)
    }

    /// As [`BarPart::find`], with another root than `/sys`: for tests.
    ///
    /// # Errors
    /// As for [`BarPart::find`].
    pub fn find_under(sysfs: &Path, bus_address: u64, bytes: u64) -> Result<Self, BarPartError> {
        let not_a_bar = || BarPartError::NotABar { bus_address, bytes };
        let last =
            bytes.checked_sub(1).and_then(|more| bus_address.checked_add(more)).ok_or_else(not_a_bar)?;
        let found = bars(sysfs).into_iter().find(|bar| bar.first <= bus_address && last <= bar.last);
        let found = found.ok_or_else(not_a_bar)?;
        let open = |kind| bar::open(sysfs, found.function, found.index, kind, true);
        let file = match open(BarKind::WriteCombining) {
            // One whose stores may not be combined has no such file.
            Err(_) => open(BarKind::Uncached)?,
            Ok(file) => file,
        };
        let part = BarPart {
            file: Arc::new(file.fd),
            path: file.path,
            offset_bytes: bus_address - found.first,
            bytes,
            bus_address,
        };
        part.check(file.bytes as u64)
    }

    /// Takes over the file of a BAR that another process has passed. Only the kernel makes such files, and only root's hand may open them
    /// first, so a peer cannot pass one that it was not given.
    ///
    /// # Errors
    /// [`BarPartError::NotPassed`], [`BarPartError::Outside`].
    pub fn from_fd(
        file: OwnedFd,
        bus_address: u64,
        offset_bytes: u64,
        bytes: u64,
    ) -> Result<Self, BarPartError> {
        let fd = file.as_raw_fd();
        let refused = |why: String| BarPartError::NotPassed { fd, why };
        let failed = |errno: Errno| refused(errno.to_string());
        // Before anything else is asked: a file of another kind may belong to a program that never answers. The kernel knows the
        // mode by which a file is open without asking anybody, and so it does for those of sysfs.
        if rustix::fs::fcntl_getfl(&file).map_err(failed)? & (OFlags::RWMODE | OFlags::PATH) != OFlags::RDWR {
            return Err(refused("it is not open for loads and stores".to_owned()));
        }
        let path =
            std::fs::read_link(format!("/proc/self/fd/{fd}")).map_err(|error| refused(error.to_string()))?;
        if !is_bars_name(&path) {
            return Err(refused(format!("{} is another file", path.display())));
        }
        let found = rustix::fs::fstatfs(&file).map_err(failed)?.f_type as u64;
        if found != SYSFS_MAGIC {
            return Err(refused(format!(
                "its file system is {found:#x}, and that of the kernel's {SYSFS_MAGIC:#x}"
            )));
        }
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(refused("it is no file".to_owned()));
        }
        let part = BarPart { file: Arc::new(file), path, offset_bytes, bytes, bus_address };
        part.check(u64::try_from(stat.st_size).unwrap_or(0))
    }

    fn check(self, whole: u64) -> Result<Self, BarPartError> {
        let BarPart { offset_bytes, bytes, .. } = self;
        match offset_bytes.checked_add(bytes) {
            Some(end) if end <= whole && bytes > 0 => Ok(self),
            _ => Err(BarPartError::Outside { bytes, offset_bytes, whole }),
        }
    }

    /// The BAR's file, to be passed to a peer. It gives the peer all of the BAR.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Where in the BAR the part begins.
    pub fn offset_bytes(&self) -> u64 {
        self.offset_bytes
    }

    /// Returns the size of the part.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the part begins on the bus, as devices address it.
    pub fn bus_address(&self) -> u64 {
        self.bus_address
    }

    /// Maps some of the part; `options` say which of the BAR's bytes.
    ///
    /// # Errors
    /// As for [`MappedSegment::bar`].
    pub fn map(&self, options: &SegmentOptions) -> Result<MappedSegment, SegmentError> {
        let end = self.offset_bytes + self.bytes;
        MappedSegment::bar_file((&self.path, self.file.as_fd()), end, options)
    }
}

impl fmt::Display for BarPart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes of {} from {:#x} on", self.bytes, self.path.display(), self.offset_bytes)
    }
}

/// A BAR, by the addresses of its first and its last byte.
struct Bar {
    function: PciAddress,
    index: u8,
    first: u64,
    last: u64,
}

/// All memory BARs of this host, by the addresses of their functions.
fn bars(sysfs: &Path) -> Vec<Bar> {
    let Ok(folder) = std::fs::read_dir(sysfs.join("bus/pci/devices")) else { return Vec::new() };
    let names = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut functions: Vec<PciAddress> = names.filter_map(|name| name.parse().ok()).collect();
    functions.sort();
    let of = |function: PciAddress| {
        let path = sysfs.join("bus/pci/devices").join(function.to_string()).join("resource");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<_> = text.lines().take(BARS).map(parse).collect();
        let with_index = (0u8..).zip(lines);
        with_index
            .filter_map(move |(index, bar)| bar.map(|(first, last)| Bar { function, index, first, last }))
    };
    functions.into_iter().flat_map(of).collect()
}

/// `0x00000000fe000000 0x00000000fe003fff 0x0000000000040200`: the first byte, the last one, and what it is. `None` for no memory.
fn parse(line: &str) -> Option<(u64, u64)> {
    let mut fields =
        line.split_whitespace().map(|field| u64::from_str_radix(field.strip_prefix("0x")?, 16).ok());
    let (first, last, flags) = (fields.next()??, fields.next()??, fields.next()??);
    (flags & IORESOURCE_MEM != 0 && first < last).then_some((first, last))
}

/// Whether a file of sysfs is called as those of BARs are.
fn is_bars_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let index = name.strip_prefix("resource").map(|rest| rest.strip_suffix("_wc").unwrap_or(rest));
    let function = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    index.is_some_and(|index| matches!(index.as_bytes(), [b'0'..=b'5']))
        && function.parse::<PciAddress>().is_ok()
}

#[cfg(test)]
#[path = "bar_part_tests.rs"]
mod tests;
