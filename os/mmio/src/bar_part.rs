//! A part of a BAR by its address on the bus: found in sysfs, mapped, and passed to other processes by the BAR's file.
//!
//! No other part of Beeline calls it yet: it is for `SCIAttachPhysicalMemory`, which answers `SCI_ERR_NOT_SUPPORTED` (record 0048).
//!
//! Only BARs have such addresses for who is no driver. Memory of the host has, too, and whoever could open it (`/dev/mem`) would have all
//! of it; a kernel that is strict about it (`STRICT_DEVMEM`) gives it to nobody. So it is not there.
//!
//! The addresses are those that sysfs lists: the CPU's. Where the host bridge does not translate, as on PCs, a device uses the same ones;
//! elsewhere (some Arm and POWER machines) what the registers of the BAR say and what another device would use differ from them.

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::segment::{MappedSegment, SegmentError, SegmentOptions};
use crate::{BarKind, MapError, PciAddress, bar};

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

    /// Takes the file of a BAR that another process has passed. Only the kernel makes such files, and root opens them or says who may, so a peer
    /// passes none that it was not given. Where the BAR is on the bus is asked of the kernel, not of the peer. A descriptor of something
    /// else is found out without asking a program that may never answer; the caller closes it where that may take long.
    ///
    /// # Errors
    /// [`BarPartError::NotPassed`], [`BarPartError::Outside`].
    pub fn from_fd(fd: BorrowedFd<'_>, offset_bytes: u64, bytes: u64) -> Result<Self, BarPartError> {
        let number = fd.as_raw_fd();
        let refused = |why: String| BarPartError::NotPassed { fd: number, why };
        let failed = |errno: Errno| refused(errno.to_string());
        if rustix::fs::fcntl_getfl(fd).map_err(failed)? & (OFlags::RWMODE | OFlags::PATH) != OFlags::RDWR {
            return Err(refused("it is not open for loads and stores".to_owned()));
        }
        let path = std::fs::read_link(format!("/proc/self/fd/{number}"));
        let path = path.map_err(|error| refused(error.to_string()))?;
        let (function, index) =
            named(&path).ok_or_else(|| refused(format!("{} is another file", path.display())))?;
        if !is_of_sysfs(number) {
            return Err(refused("its file system is not the kernel's".to_owned()));
        }
        let stat = rustix::fs::fstat(fd).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(refused("it is no file".to_owned()));
        }
        let (first, _) = bars_of(Path::new("/sys"), function)
            .nth(index.into())
            .flatten()
            .ok_or_else(|| refused(format!("{function} has no memory BAR {index}")))?;
        let file = Arc::new(rustix::io::fcntl_dupfd_cloexec(fd, 0).map_err(failed)?);
        let bus_address = first.saturating_add(offset_bytes);
        let part = BarPart { file, path, offset_bytes, bytes, bus_address };
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

    /// Where the part begins, as sysfs lists it: the address on the bus, too, where the host bridge does not translate.
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
    let of = |function| {
        let with_index = (0u8..).zip(bars_of(sysfs, function).collect::<Vec<_>>());
        with_index
            .filter_map(move |(index, bar)| bar.map(|(first, last)| Bar { function, index, first, last }))
    };
    functions.into_iter().flat_map(of).collect()
}

/// The BARs of a function, by the addresses of their first and their last bytes; nothing for one that is no memory.
fn bars_of(sysfs: &Path, function: PciAddress) -> impl Iterator<Item = Option<(u64, u64)>> {
    let path = sysfs.join("bus/pci/devices").join(function.to_string()).join("resource");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().take(BARS).map(parse).collect::<Vec<_>>().into_iter()
}

/// `0x00000000fe000000 0x00000000fe003fff 0x0000000000040200`: the first byte, the last one, and what it is. `None` for no memory.
fn parse(line: &str) -> Option<(u64, u64)> {
    let mut fields =
        line.split_whitespace().map(|field| u64::from_str_radix(field.strip_prefix("0x")?, 16).ok());
    let (first, last, flags) = (fields.next()??, fields.next()??, fields.next()??);
    (flags & IORESOURCE_MEM != 0 && first < last).then_some((first, last))
}

/// The function and the BAR of a file that is called as those of BARs are.
fn named(path: &Path) -> Option<(PciAddress, u8)> {
    let rest = path.file_name()?.to_str()?.strip_prefix("resource")?;
    let function = path.parent()?.file_name()?.to_str()?.parse().ok()?;
    match rest.strip_suffix("_wc").unwrap_or(rest).as_bytes() {
        [digit @ b'0'..=b'5'] => Some((function, digit - b'0')),
        _ => None,
    }
}

/// Whether a descriptor is of the kernel's own file system. A file of another kind is not asked, because it may belong to a program that
/// never answers: the kernel knows by which mount it was opened.
fn is_of_sysfs(fd: i32) -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read(&format!("/proc/self/fdinfo/{fd}"));
    let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:")).map(str::trim);
    mount.is_some_and(|mount| is_sysfs_mount(&read("/proc/self/mountinfo"), mount))
}

/// `25 30 0:23 / /sys rw,nosuid - sysfs sysfs rw`: whether the mount of this number is one of sysfs.
fn is_sysfs_mount(mounts: &str, number: &str) -> bool {
    let is_it = |line: &&str| line.split_whitespace().next() == Some(number);
    let mount = mounts.lines().find(is_it).and_then(|line| line.split_once(" - "));
    mount.is_some_and(|(_, rest)| rest.split_whitespace().next() == Some("sysfs"))
}

#[cfg(test)]
#[path = "bar_part_tests.rs"]
mod tests;
