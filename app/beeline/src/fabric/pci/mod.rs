//! What of a machine's PCIe could carry a fabric, as sysfs tells it. Nothing is opened that a device would notice.
//!
//! A fabric needs memory of another host behind a window that plain stores reach: a non-transparent bridge has one, a function with
//! a prefetchable BAR may, and the ports of bridges say by which links they would go.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use beeline_mmio::PciAddress;
use serde::Serialize;

/// Where functions are listed, below the root of sysfs.
const FUNCTIONS: &str = "bus/pci/devices";
/// Where the kernel lists the non-transparent bridges that it drives.
const BRIDGES: &str = "bus/ntb/devices";
/// The most that is read of a file of sysfs: the kernel's text files are of one page.
const MAX_BYTES: u64 = 4096;
/// BARs of a function.
const BARS: usize = 6;

// Flags of a resource (`include/linux/ioport.h`).
const IORESOURCE_MEM: u64 = 0x200;
const IORESOURCE_PREFETCH: u64 = 0x2000;

// Classes (`include/linux/pci_ids.h`).
const BRIDGE_PCI: u32 = 0x0604;
const BRIDGE_OTHER: u32 = 0x0680;

/// A function of PCI, and what it could be to a fabric.
#[derive(Serialize, Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub address: String,
    pub vendor: u16,
    pub device: u16,
    pub role: Option<Role>,
    /// `16.0 GT/s PCIe x16`, where it has a link.
    pub link: Option<String>,
    /// BARs of prefetchable memory.
    pub windows: Vec<Window>,
}

/// What a function could be to a fabric.
#[derive(Serialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    NonTransparentBridge,
    /// A bridge that may be one, without a driver that says so.
    OtherBridge,
    /// A port of a root complex or a switch, with a link below it.
    Port,
    /// A function with memory that plain stores reach.
    Endpoint,
}

impl Role {
    pub fn words(self) -> &'static str {
        match self {
            Role::NonTransparentBridge => "non-transparent bridge",
            Role::OtherBridge => "bridge, may be non-transparent",
            Role::Port => "port",
            Role::Endpoint => "endpoint",
        }
    }
}

/// A BAR of prefetchable memory.
#[derive(Serialize, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub bar: usize,
    pub bytes: u64,
    /// The kernel maps it write-combining.
    pub is_write_combining: bool,
}

impl fmt::Display for Window {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Window { bar, bytes, is_write_combining } = self;
        let how = if *is_write_combining { "" } else { ", not write-combining" };
        write!(out, "BAR {bar}: {bytes} bytes{how}")
    }
}

/// Every function of this machine, sorted by address.
///
/// # Errors
/// They are not listed there.
pub fn functions(sysfs: &Path) -> io::Result<Vec<Function>> {
    let bridges = driven_bridges(sysfs);
    let mut functions = Vec::new();
    for entry in std::fs::read_dir(sysfs.join(FUNCTIONS))? {
        let entry = entry?;
        // Whatever else has a name there is no function.
        let Ok(address) = entry.file_name().to_string_lossy().parse::<PciAddress>() else { continue };
        functions.extend(function(&entry.path(), address, bridges.contains(&address)));
    }
    functions.sort_by(|a, b| a.address.cmp(&b.address));
    Ok(functions)
}

/// Functions that a driver for non-transparent bridges has: a device of the bus `ntb` has the address of its function.
fn driven_bridges(sysfs: &Path) -> Vec<PciAddress> {
    let entries = std::fs::read_dir(sysfs.join(BRIDGES)).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).collect()
}

/// What sysfs says of a function; `None` where it says nothing that can be read.
fn function(folder: &Path, address: PciAddress, is_driven_bridge: bool) -> Option<Function> {
    let number = |name: &str| {
        let text = read(&folder.join(name))?;
        u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
    };
    let id = |name: &str| u16::try_from(number(name)?).ok();
    let (vendor, device, class) = (id("vendor")?, id("device")?, number("class")? >> 8);
    let windows = windows(folder);
    let link = link(folder);
    let role = match class {
        _ if is_driven_bridge => Some(Role::NonTransparentBridge),
        BRIDGE_OTHER => Some(Role::OtherBridge),
        BRIDGE_PCI => link.is_some().then_some(Role::Port),
        _ => (!windows.is_empty()).then_some(Role::Endpoint),
    };
    Some(Function { address: address.to_string(), vendor, device, role, link, windows })
}

/// Lines of `start end flags`, the BARs first.
fn windows(folder: &Path) -> Vec<Window> {
    let text = read(&folder.join("resource")).unwrap_or_default();
    let window = |(bar, line): (usize, &str)| {
        let mut numbers = line.split(' ').map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
        let (start, end, flags) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let wanted = IORESOURCE_MEM | IORESOURCE_PREFETCH;
        let bytes = end.checked_sub(start)?.checked_add(1)?;
        let is_write_combining = folder.join(format!("resource{bar}_wc")).exists();
        (flags & wanted == wanted && start != 0).then_some(Window { bar, bytes, is_write_combining })
    };
    text.lines().take(BARS).enumerate().filter_map(window).collect()
}

fn link(folder: &Path) -> Option<String> {
    let speed = read(&folder.join("current_link_speed"))?;
    let width = read(&folder.join("current_link_width"))?;
    let (speed, width) = (speed.trim(), width.trim());
    // A port without anything below it has no link.
    (!speed.is_empty() && !speed.starts_with("Unknown") && !matches!(width, "" | "0"))
        .then(|| format!("{speed} x{width}"))
}

/// The text of a small file.
fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sysfs with one function, of these files.
    fn sysfs(functions: &[(&str, &[(&str, &str)])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (address, files) in functions {
            let folder = root.path().join(FUNCTIONS).join(address);
            std::fs::create_dir_all(&folder).unwrap();
            for (name, text) in *files {
                std::fs::write(folder.join(name), text).unwrap();
            }
        }
        root
    }

    const NIC: &[(&str, &str)] = &[
        ("vendor", "0x15b3\n"),
        ("device", "0x1021\n"),
        ("class", "0x020000\n"),
        ("current_link_speed", "16.0 GT/s PCIe\n"),
        ("current_link_width", "16\n"),
        (
            "resource",
            "0x00000000f0000000 0x00000000f1ffffff 0x000000000014220c\n\
             0x0000000000000000 0x0000000000000000 0x0000000000000000\n\
             0x00000000f2000000 0x00000000f2000fff 0x0000000000040200\n",
        ),
        ("resource0_wc", ""),
    ];
    const PORT: &[(&str, &str)] = &[
        ("vendor", "0x8086\n"),
        ("device", "0x09a2\n"),
        ("class", "0x060400\n"),
        ("current_link_speed", "8.0 GT/s PCIe\n"),
        ("current_link_width", "4\n"),
    ];

    #[test]
    fn endpoints_ports_and_bridges_are_told_apart() {
        let empty = [("current_link_speed", "Unknown\n"), ("current_link_width", "0\n")];
        let idle = [&PORT[..3], &empty].concat();
        let bridge = [&PORT[..2], &[("class", "0x068000\n")]].concat();
        let root = sysfs(&[
            ("0000:3b:00.0", NIC),
            ("0000:00:1c.0", PORT),
            ("0000:00:1d.0", &idle),
            ("0000:05:00.0", &bridge),
            ("0000:06:00.0", &bridge),
        ]);
        std::fs::create_dir_all(root.path().join(BRIDGES).join("0000:06:00.0")).unwrap();
        let found = functions(root.path()).unwrap();
        let roles: Vec<_> = found.iter().map(|it| (it.address.as_str(), it.role)).collect();
        assert_eq!(
            roles,
            [
                ("0000:00:1c.0", Some(Role::Port)),
                ("0000:00:1d.0", None),
                ("0000:05:00.0", Some(Role::OtherBridge)),
                ("0000:06:00.0", Some(Role::NonTransparentBridge)),
                ("0000:3b:00.0", Some(Role::Endpoint)),
            ]
        );
        let nic = &found[4];
        assert_eq!((nic.vendor, nic.device), (0x15b3, 0x1021));
        assert_eq!(nic.link.as_deref(), Some("16.0 GT/s PCIe x16"));
        assert_eq!(nic.windows, [Window { bar: 0, bytes: 32 << 20, is_write_combining: true }]);
        assert_eq!(nic.windows[0].to_string(), "BAR 0: 33554432 bytes");
    }

    #[test]
    fn what_is_no_function_or_says_nonsense_is_left_out() {
        let nonsense = "0x10 0x8 0x2200\n0xffffffffffffffff zero 0x2200\n0x1 0xffffffffffffffff 0x2200\n\n";
        let odd = [&NIC[..5], &[("resource", nonsense)]].concat();
        let root =
            sysfs(&[("0000:3b:00.0", &odd), ("../x", NIC), ("nonsense", NIC), ("0000:3c:00.0", &NIC[..2])]);
        let found = functions(root.path()).unwrap();
        assert_eq!(found.iter().map(|it| it.address.as_str()).collect::<Vec<_>>(), ["0000:3b:00.0"]);
        assert_eq!(found[0].windows, [Window { bar: 2, bytes: u64::MAX, is_write_combining: false }]);
        assert!(functions(&root.path().join("none")).is_err());
    }
}
