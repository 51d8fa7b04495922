//! PCI functions and their BARs, as sysfs shows them.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use beeline_mmio::{BarKind, PciAddress};

use crate::text::{self, SysfsError};

/// Where the kernel shows devices.
pub const SYSFS: &str = beeline_mmio::SYSFS;
const FUNCTIONS: &str = "bus/pci/devices";
/// What a function has at most: a machine has hundreds of them, a hostile folder may have any number of names.
const MOST_FUNCTIONS: usize = 65_536;
const BARS: usize = 6;
/// A function with a ROM, six BARs of its virtual functions and four windows of a bridge has 17 lines.
const MOST_LINES: usize = 64;
const MOST_NAME_BYTES: usize = 64;

/// Flags of a line of `resource` (`include/linux/ioport.h`).
const IORESOURCE_MEM: u64 = 0x200;
const IORESOURCE_PREFETCH: u64 = 0x2000;
const IORESOURCE_DISABLED: u64 = 0x1000_0000;
const IORESOURCE_UNSET: u64 = 0x2000_0000;

/// A PCI function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub address: PciAddress,
    /// Class, subclass and programming interface, 24 bits.
    pub class: u32,
    pub vendor: u16,
    pub device: u16,
    /// The kernel driver that is bound to it.
    pub driver: Option<String>,
    pub iommu_group: Option<u32>,
    /// Whether it answers loads and stores: bit 1 of its command register. `None` where sysfs does not show the register.
    pub decodes_memory: Option<bool>,
    /// Whether a driver or root has enabled it. `None` where sysfs does not say.
    pub is_enabled: Option<bool>,
    /// Its memory BARs, by ascending index.
    pub regions: Vec<BarRegion>,
    /// Where sysfs shows it.
    pub folder: PathBuf,
}

/// A memory BAR of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarRegion {
    /// 0 to 5.
    pub index: u8,
    pub bytes: u64,
    /// Loads of it have no side effects, and stores may be combined.
    pub is_prefetchable: bool,
    /// It has an address on the bus.
    pub is_assigned: bool,
    /// `resourceN`, by which it is mapped uncached.
    pub file: Option<BarRights>,
    /// `resourceN_wc`, by which it is mapped write-combining.
    pub combining_file: Option<BarRights>,
}

/// Who may open a file of a BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarRights {
    /// Whether this process may, for loads and stores.
    pub may_open: bool,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

impl Function {
    /// Reads all functions that sysfs shows, by ascending address, each or why it cannot be understood. No function at all where
    /// there is no PCI.
    ///
    /// # Errors
    /// The folder of the functions is there and cannot be read, or has more names than a machine has functions.
    pub fn scan(sysfs: &Path) -> Result<Vec<Result<Function, SysfsError>>, SysfsError> {
        let folder = sysfs.join(FUNCTIONS);
        let unread = |error| SysfsError::Unread { path: folder.clone(), error };
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unread(error)),
        };
        let (mut addresses, mut found) = (Vec::new(), Vec::new());
        for entry in entries {
            let name = entry.map_err(unread)?.file_name();
            if addresses.len() + found.len() >= MOST_FUNCTIONS {
                let why = format!("there are more than {MOST_FUNCTIONS} names");
                return Err(SysfsError::text(&folder, 1, why));
            }
            match name.to_str().and_then(|name| name.parse::<PciAddress>().ok()) {
                Some(address) => addresses.push(address),
                None => {
                    let name = text::shown(&name.to_string_lossy());
                    found.push(Err(SysfsError::text(&folder, 1, format!("`{name}` is no PCI address"))));
                }
            }
        }
        addresses.sort();
        found.extend(addresses.into_iter().map(|address| Function::read(sysfs, address)));
        Ok(found)
    }

    /// Whether sysfs shows the function.
    pub fn is_there(sysfs: &Path, address: PciAddress) -> bool {
        folder_of(sysfs, address).is_dir()
    }

    /// Reads what sysfs says of a function.
    ///
    /// # Errors
    /// A file is missing, cannot be read, or has another text than the kernel's.
    pub fn read(sysfs: &Path, address: PciAddress) -> Result<Self, SysfsError> {
        let folder = folder_of(sysfs, address);
        let number = |name: &str, most: u64| text::hex_number(&folder.join(name), most);
        let sixteen_bits = |name| Ok::<_, SysfsError>(number(name, 0xffff)? as u16);
        Ok(Function {
            address,
            class: number("class", 0xff_ffff)? as u32,
            vendor: sixteen_bits("vendor")?,
            device: sixteen_bits("device")?,
            driver: link_name(&folder.join("driver"))?,
            iommu_group: iommu_group(&folder.join("iommu_group"))?,
            decodes_memory: decodes_memory(&folder.join("config"))?,
            is_enabled: is_enabled(&folder.join("enable"))?,
            regions: regions(&folder)?,
            folder,
        })
    }

    /// Its memory BAR of this index.
    pub fn region(&self, index: u8) -> Option<&BarRegion> {
        self.regions.iter().find(|region| region.index == index)
    }

    /// The file by which a BAR of it is mapped, whether it is there or not.
    pub fn file(&self, index: u8, kind: BarKind) -> PathBuf {
        let suffix = if kind == BarKind::WriteCombining { "_wc" } else { "" };
        self.folder.join(format!("resource{index}{suffix}"))
    }

    /// What its base class says that it is.
    pub fn class_name(&self) -> &'static str {
        match self.class >> 16 {
            0x01 => "storage",
            0x02 => "network",
            0x03 => "display",
            0x04 => "multimedia",
            0x05 => "memory",
            0x06 => "bridge",
            0x0b => "processor",
            0x0c => "serial bus",
            0x10 => "encryption",
            0x12 => "accelerator",
            _ => "other",
        }
    }
}

fn folder_of(sysfs: &Path, address: PciAddress) -> PathBuf {
    sysfs.join(FUNCTIONS).join(address.to_string())
}

/// Bit 1 of the command register, the word at 4 of the configuration space.
fn decodes_memory(path: &Path) -> Result<Option<bool>, SysfsError> {
    let Some(config) = text::bytes(path)? else { return Ok(None) };
    match config.get(4) {
        Some(command) => Ok(Some(command & 2 != 0)),
        None => Err(SysfsError::text(path, 1, format!("{} bytes have no command register", config.len()))),
    }
}

/// The file has how often the function was enabled.
fn is_enabled(path: &Path) -> Result<Option<bool>, SysfsError> {
    let Some(text) = text::read(path)? else { return Ok(None) };
    let refused = || SysfsError::text(path, 1, format!("`{}` is no count", text::shown(&text)));
    let count: u32 = text.trim_end().parse().map_err(|_| refused())?;
    Ok(Some(count > 0))
}

fn iommu_group(path: &Path) -> Result<Option<u32>, SysfsError> {
    let Some(name) = link_name(path)? else { return Ok(None) };
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    let group = name.parse().ok().filter(|_| is_number);
    let refused =
        || SysfsError::text(path, 1, format!("it leads to `{}`, which is no group", text::shown(&name)));
    group.map(Some).ok_or_else(refused)
}

/// The last name of what a link leads to; `None` where there is no link.
fn link_name(path: &Path) -> Result<Option<String>, SysfsError> {
    let target = match std::fs::read_link(path) {
        Ok(target) => target,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SysfsError::Unread { path: path.to_owned(), error }),
    };
    let name = target.file_name().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
    let is_name = (1..=MOST_NAME_BYTES).contains(&name.len()) && name.iter().all(u8::is_ascii_graphic);
    let refused = || SysfsError::text(path, 1, "the link leads to what is no name of the kernel's");
    String::from_utf8(name).ok().filter(|_| is_name).map(Some).ok_or_else(refused)
}

/// The memory BARs of the file `resource`, a line each: `0x00000000fe000000 0x00000000fe003fff 0x0000000000140204` are the first byte,
/// the last one, and what it is. All zeros: there is none.
fn regions(folder: &Path) -> Result<Vec<BarRegion>, SysfsError> {
    let path = folder.join("resource");
    let text = text::read(&path)?.ok_or_else(|| SysfsError::text(&path, 1, "the file is missing"))?;
    let mut regions = Vec::new();
    for at in 0..BARS {
        let line = text.lines().nth(at);
        let refused = |why: String| SysfsError::text(&path, at + 1, why);
        let line = line.ok_or_else(|| refused("the line of this BAR is missing".to_owned()))?;
        let resource = Resource::parse(line).map_err(refused)?;
        if let Some(resource) = resource {
            regions.push(resource.region(folder, at as u8));
        }
    }
    match text.lines().nth(MOST_LINES) {
        None => Ok(regions),
        Some(_) => Err(SysfsError::text(&path, MOST_LINES + 1, "no function has as many resources")),
    }
}

/// A line of `resource` that is memory.
struct Resource {
    bytes: u64,
    flags: u64,
}

impl Resource {
    fn parse(line: &str) -> Result<Option<Self>, String> {
        let mut fields = line.split(' ');
        let mut number = || fields.next().and_then(text::hex);
        let (Some(first), Some(last), Some(flags), None) = (number(), number(), number(), fields.next())
        else {
            return Err(format!("`{}` is not three numbers, as 0xfe000000", text::shown(line)));
        };
        if flags & IORESOURCE_MEM == 0 {
            return Ok(None);
        }
        match last.checked_sub(first).and_then(|more| more.checked_add(1)) {
            Some(bytes) => Ok(Some(Resource { bytes, flags })),
            None => Err(format!("{first:#x} to {last:#x} is no range of addresses")),
        }
    }

    fn region(&self, folder: &Path, index: u8) -> BarRegion {
        let file = |suffix: &str| BarRights::of(&folder.join(format!("resource{index}{suffix}")));
        BarRegion {
            index,
            bytes: self.bytes,
            is_prefetchable: self.flags & IORESOURCE_PREFETCH != 0,
            is_assigned: self.flags & (IORESOURCE_DISABLED | IORESOURCE_UNSET) == 0,
            file: file(""),
            combining_file: file("_wc"),
        }
    }
}

impl BarRights {
    /// Who may open this file; `None` where there is no such file. A link, which sysfs has none of there, is no file of a BAR.
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let data = std::fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
        let access = rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK;
        let may_open = rustix::fs::access(path, access).is_ok();
        Some(BarRights { may_open, mode: data.mode() & 0o7777, uid: data.uid(), gid: data.gid() })
    }
}
