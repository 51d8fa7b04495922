//! What of a machine's PCIe could carry a fabric, as sysfs tells it. Nothing is opened that a device would notice.
//!
//! A fabric needs memory of another host behind a window that plain stores reach: a non-transparent bridge has one, a function with
//! a prefetchable BAR may, and the ports of bridges say by which links they would go. Whether a store through such a BAR reaches another host
//! only its driver and the other side can tell; here is said what is there, and what stands in the way of mapping it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use beeline_mmio::PciAddress;

mod function;
mod known;
mod problems;

pub use function::Function;
use function::{Role, Window};
use problems::Facts;

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

/// Every function of this machine, sorted by address. `may_open` says whether this user may map a file of sysfs.
///
/// # Errors
/// They are not listed there.
pub fn functions(sysfs: &Path, may_open: impl Fn(&Path) -> bool) -> io::Result<Vec<Function>> {
    let bridges = driven_bridges(sysfs);
    let is_locked_down = is_locked_down(sysfs);
    let mut functions = Vec::new();
    for entry in std::fs::read_dir(sysfs.join(FUNCTIONS))? {
        let entry = entry?;
        // Whatever else has a name there is no function.
        let Ok(address) = entry.file_name().to_string_lossy().parse::<PciAddress>() else { continue };
        let folder = entry.path();
        let Some((mut function, known_driver)) = function(&folder, address, bridges.contains(&address))
        else {
            continue;
        };
        if function.role.is_some() {
            let is_enabled = read(&folder.join("enable")).is_none_or(|text| text.trim() != "0");
            let iommu_type = read(&folder.join("iommu_group/type")).map(|text| text.trim().to_owned());
            let may_map = function.windows.iter().all(|window| may_open(&folder.join(window.file())));
            let facts = Facts { known_driver, is_enabled, iommu_type, may_map, is_locked_down };
            function.problems = problems::of(&function, &facts);
        }
        functions.push(function);
    }
    functions.sort_by(|a, b| a.address.cmp(&b.address));
    Ok(functions)
}

/// Whether the kernel maps no BAR for anybody: all but the mode `none` of its lockdown.
fn is_locked_down(sysfs: &Path) -> bool {
    read(&sysfs.join("kernel/security/lockdown")).is_some_and(|text| !text.contains("[none]"))
}

/// Functions that a driver for non-transparent bridges has: a device of the bus `ntb` has the address of its function.
fn driven_bridges(sysfs: &Path) -> Vec<PciAddress> {
    let entries = std::fs::read_dir(sysfs.join(BRIDGES)).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).collect()
}

/// What sysfs says of a function, and the driver for such ones, where its numbers are known; `None` where sysfs says nothing that can be
/// read.
fn function(
    folder: &Path,
    address: PciAddress,
    is_driven_bridge: bool,
) -> Option<(Function, Option<&'static str>)> {
    let number = |name: &str| {
        let text = read(&folder.join(name))?;
        u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
    };
    let id = |name: &str| u16::try_from(number(name)?).ok();
    let (vendor, device, class) = (id("vendor")?, id("device")?, number("class")? >> 8);
    let windows = windows(folder);
    let known = known::role_of(vendor, device, class == BRIDGE_OTHER);
    let role = match (class, known) {
        _ if is_driven_bridge => Some(Role::NonTransparentBridge),
        (_, Some((role, _))) => Some(role),
        (BRIDGE_OTHER, _) => Some(Role::OtherBridge),
        (BRIDGE_PCI, _) => Some(Role::TransparentPort),
        _ => (!windows.is_empty()).then_some(Role::Endpoint),
    };
    let found = Function {
        address: address.to_string(),
        vendor,
        device,
        role,
        driver: name_of(&folder.join("driver")),
        link: link(folder, "current"),
        link_at_most: link(folder, "max"),
        buses: buses(folder),
        iommu_group: name_of(&folder.join("iommu_group")).and_then(|group| group.parse().ok()),
        windows,
        problems: Vec::new(),
    };
    Some((found, known.map(|(_, driver)| driver)))
}

/// What a link of sysfs leads to.
fn name_of(link: &Path) -> Option<String> {
    Some(std::fs::read_link(link).ok()?.file_name()?.to_string_lossy().into_owned())
}

/// The buses below a bridge.
fn buses(folder: &Path) -> Option<String> {
    let bus = |name: &str| read(&folder.join(name))?.trim().parse::<u8>().ok();
    let (first, last) = (bus("secondary_bus_number")?, bus("subordinate_bus_number")?);
    Some(if first == last { format!("{first:02x}") } else { format!("{first:02x}-{last:02x}") })
}

/// Lines of `start end flags`, the BARs first.
fn windows(folder: &Path) -> Vec<Window> {
    let text = read(&folder.join("resource")).unwrap_or_default();
    let window = |(bar, line): (usize, &str)| {
        let mut numbers = line.split(' ').map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
        let (start, end, flags) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let wanted = IORESOURCE_MEM | IORESOURCE_PREFETCH;
        let bytes = end.checked_sub(start)?.checked_add(1)?;
        let window = Window { bar, bytes, is_write_combining: true };
        let is_write_combining = folder.join(window.file()).exists();
        (flags & wanted == wanted && start != 0).then_some(Window { is_write_combining, ..window })
    };
    text.lines().take(BARS).enumerate().filter_map(window).collect()
}

/// The speed and width that a link has (`current`) or can have at most (`max`).
fn link(folder: &Path, which: &str) -> Option<String> {
    let speed = read(&folder.join(format!("{which}_link_speed")))?;
    let width = read(&folder.join(format!("{which}_link_width")))?;
    let (speed, width) = (speed.trim(), width.trim());
    // A port without anything below it has no link.
    (!speed.is_empty() && !speed.starts_with("Unknown") && !matches!(width, "" | "0" | "255"))
        .then(|| format!("{speed} x{width}"))
}

/// The text of a small file.
fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests;
