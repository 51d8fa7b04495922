//! A part of a BAR by its address on the bus: found in sysfs, mapped, and passed to other processes by the BAR's files.
//!
//! Segments are made of it (`SCIAttachPhysicalMemory`, record 0053).
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

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::segment::{MappedSegment, SegmentError, SegmentOptions};
use crate::{BarKind, MapError, PciAddress, bar};

/// Flags of a line of the file `resource`: memory, not ports.
const IORESOURCE_MEM: u64 = 0x200;
/// What a PCI function has at most.
const BARS: usize = 6;
const WORD_BYTES: u64 = 8;

/// Where the kernel shows devices.
pub const SYSFS: &str = "/sys";

/// A part of a BAR, whose files are open.
#[derive(Clone, Debug)]
pub struct BarPart {
    uncached: File,
    /// Of a BAR whose stores may be combined.
    combining: Option<File>,
    offset_bytes: u64,
    bytes: u64,
    bus_address: u64,
}

/// A BAR's file.
#[derive(Clone, Debug)]
struct File {
    fd: Arc<OwnedFd>,
    /// Named in errors and logs.
    path: PathBuf,
}

/// Why a part of a BAR is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum BarPartError {
    #[error(
        "{bytes} bytes at {bus_address:#x} on the bus are in no memory BAR (`lspci -vv` shows BARs); addresses of the host's own memory \
         are given to nobody"
    )]
    NotABar { bus_address: u64, bytes: u64 },
    /// An address of the middle of a word.
    #[error(
        "{bus_address:#x} is no multiple of {WORD_BYTES}: a device would see each word in two parts; begin the memory at a word"
    )]
    Unaligned { bus_address: u64 },
    /// This process may not open its file.
    #[error("{0}")]
    NotPermitted(MapError),
    /// Its file is not opened.
    #[error(transparent)]
    Bar(MapError),
    /// What another process has passed is no file of a BAR.
    #[error("descriptor {fd} is no BAR's: {why}")]
    NotPassed { fd: i32, why: String },
    /// The file of the BAR is smaller.
    #[error("{bytes} bytes at offset {offset_bytes} are not in a BAR of {whole}")]
    Outside { bytes: u64, offset_bytes: u64, whole: u64 },
}

impl BarPart {
    /// Finds the BAR that has these bytes, and opens its files for loads and stores. `sysfs` is where the kernel shows devices,
    /// [`SYSFS`] mostly. Several domains may have the same address; the first of them is taken.
    ///
    /// # Errors
    /// [`BarPartError`]: there is no such BAR, or this process may not open it.
    pub fn find(sysfs: &Path, bus_address: u64, bytes: u64) -> Result<Self, BarPartError> {
        let not_a_bar = || BarPartError::NotABar { bus_address, bytes };
        let last =
            bytes.checked_sub(1).and_then(|more| bus_address.checked_add(more)).ok_or_else(not_a_bar)?;
        let found = bars(sysfs).into_iter().find(|bar| bar.first <= bus_address && last <= bar.last);
        let found = found.ok_or_else(not_a_bar)?;
        if !bus_address.is_multiple_of(WORD_BYTES) {
            return Err(BarPartError::Unaligned { bus_address });
        }
        let open = |kind| bar::open(sysfs, found.function, found.index, kind, true);
        let file = open(BarKind::Uncached).map_err(|error| {
            let path = folder_of(sysfs, found.function).join(format!("resource{}", found.index));
            let opens =
                rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty());
            match opens {
                Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => BarPartError::NotPermitted(error),
                _ => BarPartError::Bar(error),
            }
        })?;
        // One whose stores may not be combined has no such file.
        let combining = open(BarKind::WriteCombining).ok().map(File::of);
        let whole = file.bytes as u64;
        let (uncached, offset_bytes) = (File::of(file), bus_address - found.first);
        BarPart { uncached, combining, offset_bytes, bytes, bus_address }.check(whole)
    }

    /// Takes the files of a BAR that another process has passed, in the order of [`BarPart::fds`]. Only the kernel makes such files, and root
    /// opens them or says who may, so a peer passes none that it was not given. Where the BAR is on the bus is asked of the kernel, not of
    /// the peer. A descriptor of something else is found out without asking a program that may never answer; the caller closes it where
    /// that may take long.
    ///
    /// # Errors
    /// [`BarPartError::NotPassed`], [`BarPartError::Outside`].
    pub fn from_fds(
        sysfs: &Path,
        fds: &[BorrowedFd<'_>],
        offset_bytes: u64,
        bytes: u64,
    ) -> Result<Self, BarPartError> {
        let [uncached, combining @ ..] = fds else {
            return Err(BarPartError::NotPassed { fd: -1, why: "there is none".to_owned() });
        };
        let uncached = Passed::examine(sysfs, *uncached)?;
        let combining = match combining {
            [] => None,
            [combining] => Some(Passed::examine(sysfs, *combining)?),
            [_, more, ..] => return Err(not_passed(*more, "it is one too many".to_owned())),
        };
        let is_other =
            |it: &Passed| (it.function, it.index, it.combines) != (uncached.function, uncached.index, true);
        if uncached.combines || combining.as_ref().is_some_and(is_other) {
            return Err(not_passed(
                fds[0],
                "it and what follows it are not the two files of a BAR".to_owned(),
            ));
        }
        let (first, _) =
            bars_of(sysfs, uncached.function).nth(uncached.index.into()).flatten().ok_or_else(|| {
                not_passed(fds[0], format!("{} has no memory BAR {}", uncached.function, uncached.index))
            })?;
        let bus_address = first.saturating_add(offset_bytes);
        let whole = uncached.bytes;
        let (uncached, combining) = (uncached.file, combining.map(|passed| passed.file));
        BarPart { uncached, combining, offset_bytes, bytes, bus_address }.check(whole)
    }

    fn check(self, whole: u64) -> Result<Self, BarPartError> {
        let BarPart { offset_bytes, bytes, .. } = self;
        match offset_bytes.checked_add(bytes) {
            Some(end) if end <= whole && bytes > 0 => Ok(self),
            _ => Err(BarPartError::Outside { bytes, offset_bytes, whole }),
        }
    }

    /// The BAR's files, to be passed to a peer: the one that is uncached, and then the one that combines stores, if there is one. They
    /// give the peer all of the BAR.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [Some(&self.uncached), self.combining.as_ref()].into_iter().flatten().map(|file| file.fd.as_fd())
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

    /// Maps some of the part; `options` say which of the BAR's bytes. A BAR whose stores may not be combined is mapped uncached in any
    /// case.
    ///
    /// # Errors
    /// As for [`MappedSegment::bar`].
    pub fn map(&self, kind: BarKind, options: &SegmentOptions) -> Result<MappedSegment, SegmentError> {
        let end = self.offset_bytes + self.bytes;
        let combining = self.combining.as_ref().filter(|_| kind == BarKind::WriteCombining);
        let file = combining.unwrap_or(&self.uncached);
        MappedSegment::bar_file((&file.path, file.fd.as_fd()), end, options)
    }
}

impl fmt::Display for BarPart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} bytes of {} from {:#x} on",
            self.bytes,
            self.uncached.path.display(),
            self.offset_bytes
        )
    }
}

impl File {
    fn of(file: bar::BarFile) -> Self {
        File { fd: Arc::new(file.fd), path: file.path }
    }
}

/// A descriptor that is a BAR's, as the kernel says.
struct Passed {
    file: File,
    function: PciAddress,
    index: u8,
    combines: bool,
    /// Size of the whole BAR.
    bytes: u64,
}

fn not_passed(fd: BorrowedFd<'_>, why: String) -> BarPartError {
    BarPartError::NotPassed { fd: fd.as_raw_fd(), why }
}

impl Passed {
    fn examine(sysfs: &Path, fd: BorrowedFd<'_>) -> Result<Self, BarPartError> {
        let refused = |why: String| not_passed(fd, why);
        let failed = |errno: Errno| refused(errno.to_string());
        if rustix::fs::fcntl_getfl(fd).map_err(failed)? & (OFlags::RWMODE | OFlags::PATH) != OFlags::RDWR {
            return Err(refused("it is not open for loads and stores".to_owned()));
        }
        let path = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        let path = path.map_err(|error| refused(error.to_string()))?;
        let (function, index, combines) =
            named(&path).ok_or_else(|| refused(format!("{} is another file", path.display())))?;
        if !is_under(sysfs, &path, fd.as_raw_fd()) {
            return Err(refused("its file system is not the kernel's".to_owned()));
        }
        let stat = rustix::fs::fstat(fd).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(refused("it is no file".to_owned()));
        }
        let bytes = u64::try_from(stat.st_size).unwrap_or(0);
        let fd = Arc::new(rustix::io::fcntl_dupfd_cloexec(fd, 0).map_err(failed)?);
        Ok(Passed { file: File { fd, path }, function, index, combines, bytes })
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

fn folder_of(sysfs: &Path, function: PciAddress) -> PathBuf {
    sysfs.join("bus/pci/devices").join(function.to_string())
}

/// The BARs of a function, by the addresses of their first and their last bytes; nothing for one that is no memory.
fn bars_of(sysfs: &Path, function: PciAddress) -> impl Iterator<Item = Option<(u64, u64)>> {
    let path = folder_of(sysfs, function).join("resource");
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

/// The function and the BAR of a file that is called as those of BARs are, and whether it combines stores.
fn named(path: &Path) -> Option<(PciAddress, u8, bool)> {
    let rest = path.file_name()?.to_str()?.strip_prefix("resource")?;
    let function = path.parent()?.file_name()?.to_str()?.parse().ok()?;
    let (number, combines) = rest.strip_suffix("_wc").map_or((rest, false), |number| (number, true));
    match number.as_bytes() {
        [digit @ b'0'..=b'5'] => Some((function, digit - b'0', combines)),
        _ => None,
    }
}

/// Whether a descriptor's file is one of `sysfs`: of the kernel's own file system, or, where this process was told of a folder that
/// is none, in that folder.
fn is_under(sysfs: &Path, path: &Path, fd: i32) -> bool {
    if is_of_sysfs(fd) {
        return true;
    }
    let Ok(root) = sysfs.canonicalize() else { return false };
    let opened = rustix::fs::open(&root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    opened.is_ok_and(|root| !is_of_sysfs(root.as_raw_fd())) && path.starts_with(root)
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
