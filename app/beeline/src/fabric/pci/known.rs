//! Functions of PCI that are known by their numbers: bridges between hosts, and memory that virtual machines share. The numbers are those
//! by which Linux's drivers find them (`drivers/ntb/hw`), and QEMU's for its `ivshmem` devices.

use super::function::Role;

const INTEL: u16 = 0x8086;
const AMD: u16 = 0x1022;
const HYGON: u16 = 0x1d94;
const IDT: u16 = 0x111d;
const MICROSEMI: u16 = 0x11f8;
const RED_HAT: u16 = 0x1af4;
const DOLPHIN: u16 = 0x11c8;

/// Function and role of Intel's processors: back to back, primary, secondary side.
const OF_INTEL: [u16; 18] = [
    0x3725, 0x3726, 0x3727, 0x3c0d, 0x3c0e, 0x3c0f, 0x0e0d, 0x0e0e, 0x0e0f, 0x2f0d, 0x2f0e, 0x2f0f, 0x6f0d,
    0x6f0e, 0x6f0f, 0x201c, 0x347e, 0x0db4,
];
const OF_AMD: [u16; 5] = [0x145b, 0x148b, 0x14c0, 0x14c3, 0x155a];
const OF_IDT: [u16; 8] = [0x8088, 0x808a, 0x808c, 0x808e, 0x808f, 0x8090, 0x8091, 0x8092];
const IVSHMEM: u16 = 0x1110;

/// What a function is by its numbers, and who drives such ones. `is_other_bridge` is its class, which tells the bridge of a switch from
/// other functions of the same numbers.
pub fn role_of(vendor: u16, device: u16, is_other_bridge: bool) -> Option<(Role, &'static str)> {
    let bridge = |driver| Some((Role::NonTransparentBridge, driver));
    match vendor {
        INTEL if OF_INTEL.contains(&device) => bridge("ntb_hw_intel"),
        AMD if OF_AMD.contains(&device) => bridge("ntb_hw_amd"),
        HYGON if device == OF_AMD[0] => bridge("ntb_hw_amd"),
        IDT if OF_IDT.contains(&device) && is_other_bridge => bridge("ntb_hw_idt"),
        MICROSEMI if is_other_bridge => bridge("ntb_hw_switchtec"),
        DOLPHIN => bridge("the vendor's driver"),
        RED_HAT if device == IVSHMEM => Some((Role::SharedMemory, "no driver, or uio_pci_generic")),
        _ => None,
    }
}
