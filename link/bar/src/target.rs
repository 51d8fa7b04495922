//! What a person may call a BAR.

use std::path::{Path, PathBuf};

use beeline_mmio::{BarKind, PciAddress};

use crate::function::Function;

/// The file of a BAR, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarFile {
    pub address: PciAddress,
    pub index: u8,
    pub kind: BarKind,
}

impl BarFile {
    /// Understands `…/0000:00:05.0/resource2` and `resource2_wc`, whichever folder that is in; `None` for any other path.
    pub fn of_path(path: &Path) -> Option<Self> {
        let address = path.parent()?.file_name()?.to_str()?.parse().ok()?;
        let resource = path.file_name()?.to_str()?.strip_prefix("resource")?;
        let (index, kind) = match resource.strip_suffix("_wc") {
            Some(index) => (index, BarKind::WriteCombining),
            None => (resource, BarKind::Uncached),
        };
        match index.as_bytes() {
            [digit @ b'0'..=b'5'] => Some(BarFile { address, index: digit - b'0', kind }),
            _ => None,
        }
    }
}

/// What was named: a BAR, or a plain file in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A function, whose region is chosen.
    Function(PciAddress),
    /// A file of sysfs, which says region and memory type.
    Resource(BarFile),
    /// A plain file, which may not be there yet: no device's.
    File(PathBuf),
}

/// Why a text names neither a BAR nor a file that may stand for one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error(
        "/dev/mem is all of this machine's memory and is never opened; name a BAR by its PCI function, as 0000:3b:00.0, or by its \
         resource file in /sys/bus/pci/devices"
    )]
    DevMem,
    #[error("{} is {what}, not a BAR; name a PCI function, its resource file in sysfs, /dev/uioN or a plain file", path.display())]
    NotABar { path: PathBuf, what: &'static str },
    #[error("{} belongs to sysfs and is no BAR's file; those are called resource0 to resource5, or resource0_wc to resource5_wc", path.display())]
    OtherOfSysfs { path: PathBuf },
    #[error("there is no {}: UIO shows no device of this number; `ls /sys/class/uio` lists those there are", path.display())]
    NoUio { path: PathBuf },
    #[error(
        "{} belongs to no PCI function: what UIO maps of other devices is uncached registers, and no window", path.display()
    )]
    UioOfNoFunction { path: PathBuf },
    #[error("no PCI function has the address {address}; `lspci -D` lists those there are")]
    NoFunction { address: PciAddress },
}

impl Target {
    /// Finds out what a text names: a PCI address, a resource file of sysfs (by any path that leads to it), `/dev/uioN`, or a plain
    /// file. Nothing is opened.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn of_text(sysfs: &Path, text: &str) -> Result<Self, TargetError> {
        if let Ok(address) = text.parse::<PciAddress>() {
            return of_function(sysfs, address);
        }
        let path = Path::new(text);
        if path == Path::new("/dev/mem") {
            return Err(TargetError::DevMem);
        }
        if let Some(number) = uio_number(path) {
            return of_uio(sysfs, path, number);
        }
        // Links are followed: in `/sys/bus` each function is one, and whoever makes one to a BAR means the BAR.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_under = |root: &Path| root.canonicalize().is_ok_and(|root| real.starts_with(root));
        if is_under(sysfs) || real.starts_with("/sys") {
            let file = BarFile::of_path(&real).filter(|_| is_under(sysfs));
            return file.map(Target::Resource).ok_or(TargetError::OtherOfSysfs { path: path.to_owned() });
        }
        check_kind(path).map(|()| Target::File(path.to_owned()))
    }
}

fn of_function(sysfs: &Path, address: PciAddress) -> Result<Target, TargetError> {
    if Function::is_there(sysfs, address) {
        Ok(Target::Function(address))
    } else {
        Err(TargetError::NoFunction { address })
    }
}

/// `/dev/uio3`: 3.
fn uio_number(path: &Path) -> Option<u32> {
    let digits = path.to_str()?.strip_prefix("/dev/uio")?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// The function behind a UIO device. Its BARs are mapped by their own files: UIO maps everything uncached.
fn of_uio(sysfs: &Path, path: &Path, number: u32) -> Result<Target, TargetError> {
    let device = sysfs.join(format!("class/uio/uio{number}/device"));
    let path = path.to_owned();
    let Ok(real) = device.canonicalize() else { return Err(TargetError::NoUio { path }) };
    let address = real.file_name().and_then(|name| name.to_str()?.parse::<PciAddress>().ok());
    match address.filter(|address| Function::is_there(sysfs, *address)) {
        Some(address) => Ok(Target::Function(address)),
        None => Err(TargetError::UioOfNoFunction { path }),
    }
}

/// Whether a path may be a plain file's: it is one, or nothing is there.
fn check_kind(path: &Path) -> Result<(), TargetError> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    /// Number of `/dev/mem` under whatever name: `makedev(1, 1)`.
    const DEV_MEM: u64 = 0x101;
    let Ok(data) = path.metadata() else { return Ok(()) };
    let kind = data.file_type();
    let what = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_char_device() && data.rdev() == DEV_MEM => return Err(TargetError::DevMem),
        () if kind.is_dir() => "a folder",
        () if kind.is_char_device() => "a character device",
        () if kind.is_block_device() => "a block device, whose contents would be lost",
        () if kind.is_fifo() => "a pipe",
        () => "a socket or something else",
    };
    Err(TargetError::NotABar { path: path.to_owned(), what })
}
